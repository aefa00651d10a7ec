//! A chain of PricingPreference policies: each sees the prices of the earlier ones.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::hook::Hook;
use crate::memo::Fingerprint;
use crate::pricing::{Prices, PricingInput};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The prices that all policies together want ordering to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceVerdict {
    /// By index of the candidate and of its offering; offerings that no policy named are not in it.
    pub prices_micros: BTreeMap<(usize, usize), u32>,
    pub runs: Vec<PolicyRun>,
}

impl Chain {
    /// Whether any PricingPreference policy would be asked for this pool.
    pub fn has_pricing_for(&self, node_pool: &str) -> bool {
        self.links_for(Hook::PricingPreference, node_pool)
            .next()
            .is_some()
    }

    /// Asks all PricingPreference policies that apply to the pool. The question does not name the pool, so the pools of a
    /// NodeClass share one answer.
    pub fn adjust(
        &self,
        node_pool: &str,
        input: &PricingInput,
        now: Now,
    ) -> Result<PriceVerdict, ChainError> {
        let catalog = input.fingerprint_of_catalog();
        self.adjust_in(node_pool, catalog, &mut || input.clone(), now)
    }

    /// The same for a caller who has the [`PricingInput::fingerprint_of_catalog`] already. `make` makes the question where
    /// some policy has not heard it before.
    pub(crate) fn adjust_in(
        &self,
        node_pool: &str,
        catalog: Fingerprint,
        make: &mut dyn FnMut() -> PricingInput,
        now: Now,
    ) -> Result<PriceVerdict, ChainError> {
        let mut question = Question {
            catalog,
            make,
            made: None,
            pending: vec![],
        };
        let mut verdict = PriceVerdict::default();
        for link in self.links_for(Hook::PricingPreference, node_pool) {
            let as_of = link.as_of(now);
            let asked = ask(
                link,
                &self.memos.prices,
                (now, &verdict.runs),
                Fingerprint::of(&(question.catalog, as_of)),
                |policy, config, limits| {
                    let input = question.at(as_of);
                    link.record(|| input.clone());
                    let report = policy.adjust(config, limits, input);
                    report.and_then(|adjustments| Ok(Prices::new(adjustments, input)))
                },
            );
            let mut prices = None;
            let changes = |it: &Prices| it.is_change;
            let run = asked.into_run(link, changes, |it| prices = Some(it))?;
            verdict.runs.push(run);
            if let Some(prices) = prices {
                let new = prices.adjustments.iter();
                let new = new.map(|it| ((it.candidate, it.offering), it.price_micros));
                verdict.prices_micros.extend(new);
                question.apply(prices);
            }
        }
        Ok(verdict)
    }
}

/// The question to the next policy. It is made only when one has to be called.
struct Question<'a> {
    /// Of the catalog with the prices so far.
    catalog: Fingerprint,
    make: &'a mut dyn FnMut() -> PricingInput,
    made: Option<PricingInput>,
    /// What is not yet in `made`.
    pending: Vec<Arc<Prices>>,
}

impl Question<'_> {
    fn at(&mut self, as_of: u32) -> &PricingInput {
        let made = self.made.get_or_insert_with(&mut self.make);
        made.context.as_of_unix_s = as_of;
        for it in self.pending.drain(..).flat_map(|it| it.adjustments.clone()) {
            made.candidates[it.candidate].offerings[it.offering].price_micros = it.price_micros;
        }
        made
    }

    fn apply(&mut self, prices: Arc<Prices>) {
        self.catalog = Fingerprint::of(&(self.catalog, &prices.adjustments));
        self.pending.push(prices);
    }
}
