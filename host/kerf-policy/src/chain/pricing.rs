//! A chain of PricingPreference policies: each sees the prices of the earlier ones.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::hook::Hook;
use crate::pricing::{Adjustment, PricingInput};
use std::collections::BTreeMap;

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
        let mut verdict = PriceVerdict::default();
        let mut input = input.clone();
        for link in self.links_for(Hook::PricingPreference, node_pool) {
            input.context.as_of_unix_s = link.as_of(now);
            let asked = ask(
                link,
                &self.memos.prices,
                (now, &verdict.runs),
                &input,
                |policy, config, limits| policy.adjust(config, limits, &input),
            );
            let mut adjusted = None;
            let changes = |answer: &Vec<Adjustment>| {
                answer.iter().any(|it| it.price_micros != price(&input, it))
            };
            let run = asked.into_run(link, changes, |answer| adjusted = Some(answer.clone()))?;
            for it in adjusted.unwrap_or_default() {
                input.candidates[it.candidate].offerings[it.offering].price_micros =
                    it.price_micros;
                verdict
                    .prices_micros
                    .insert((it.candidate, it.offering), it.price_micros);
            }
            verdict.runs.push(run);
        }
        Ok(verdict)
    }
}

fn price(input: &PricingInput, adjustment: &Adjustment) -> u32 {
    input.candidates[adjustment.candidate].offerings[adjustment.offering].price_micros
}
