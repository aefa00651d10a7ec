//! The state of one pass: what is decided already, and what is left of budgets and room.

use std::collections::{BTreeMap, BTreeSet};

use crate::disruption::balanced::PoolTotals;
use crate::disruption::book::BudgetBook;
use crate::disruption::candidate::{Candidate, World};
use crate::disruption::command::{Command, CommandCandidate, CommandKind, Promise, PromisedPlace};
use crate::disruption::kept::KeptReason;
use crate::disruption::report::PassReport;
use crate::ids::{NodeClaimName, PodUid};
use crate::labels;
use crate::node::Replaced;
use crate::plan::PlannedClaim;
use crate::preferences::OfferingKey;
use crate::price::Price;
use crate::schedule::simulate::Simulator;

/// A pass over all nodes.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) totals: PoolTotals<'a>,
    pub(super) book: BudgetBook<'a>,
    pub(super) simulator: Simulator<'a>,
    /// Whether policies order offerings otherwise than by real prices.
    pub(super) has_preferences: bool,
    pub(super) commands: Vec<Command>,
    pub(super) kept: BTreeMap<NodeClaimName, KeptReason>,
    /// Nodes that pods were promised a place on, or that go.
    pub(super) busy: BTreeSet<usize>,
    /// Nodes that go.
    pub(super) gone: BTreeSet<usize>,
    /// What the pass was like so far.
    pub(super) report: PassReport,
}

impl<'a> Pass<'a> {
    /// Turns the simulator's trial, whose claims are these, into a command, and makes it last.
    pub(super) fn start(
        &mut self,
        kind: CommandKind,
        candidates: &[&Candidate<'_>],
        mut replacements: Vec<PlannedClaim>,
        note: &str,
    ) {
        self.remember_replaced(candidates, &mut replacements);
        let mut promises: Vec<Promise> = Vec::new();
        for placement in self.simulator.placements() {
            promises.push(Promise {
                pod: placement.pod.clone(),
                place: PromisedPlace::Node(placement.node.clone()),
            });
        }
        for (idx, replacement) in replacements.iter().enumerate() {
            promises.extend(replacement.pods.iter().map(|pod| Promise {
                pod: pod.clone(),
                place: PromisedPlace::Replacement(idx),
            }));
        }
        promises.sort_by(|a, b| a.pod.uid.cmp(&b.pod.uid));
        self.busy.extend(self.simulator.receivers());
        self.simulator.keep();
        let mut going = Vec::new();
        for candidate in candidates {
            self.book.take(&candidate.pool.name, 1);
            self.busy.extend(self.simulator.node(&candidate.claim));
            self.gone.extend(self.simulator.node(&candidate.claim));
            self.kept.remove(&candidate.claim);
            going.push(CommandCandidate {
                node_claim: candidate.claim.clone(),
                node: candidate.node.name.clone(),
                pool: candidate.pool.name.clone(),
                price: candidate.price,
                note: note.to_owned(),
            });
        }
        going.sort_by(|a, b| a.node_claim.cmp(&b.node_claim));
        self.commands.push(Command {
            kind,
            price_before: going.iter().map(|it| it.price).sum(),
            price_after: replacements.iter().map(PlannedClaim::price).sum(),
            candidates: going,
            replacements,
            promises,
        });
    }

    /// Writes on each replacement what it takes the place of: the nodes whose pods it takes in, and what those had taken
    /// the place of themselves.
    fn remember_replaced(&self, candidates: &[&Candidate<'_>], replacements: &mut [PlannedClaim]) {
        let Some(guard) = self.world.settings.flip_guard else {
            return;
        };
        let now = self.world.now;
        let is_recent = |it: &&Replaced| it.at.checked_add(guard).map_or(true, |end| now < end);
        let mut source: BTreeMap<&PodUid, &Candidate<'_>> = BTreeMap::new();
        for candidate in candidates {
            source.extend(candidate.node.pods.iter().map(|pod| (&pod.uid, *candidate)));
        }
        for replacement in replacements {
            let pods = replacement.pods.iter().map(|pod| &pod.uid);
            let from: BTreeMap<&NodeClaimName, &Candidate<'_>> = pods
                .filter_map(|uid| source.get(uid))
                .map(|it| (&it.claim, *it))
                .collect();
            let mut memory: BTreeMap<OfferingKey, Replaced> = BTreeMap::new();
            for candidate in from.values() {
                let own = candidate
                    .offering
                    .clone()
                    .map(|offering| Replaced { offering, at: now });
                let earlier = candidate.node.replaced.iter().filter(is_recent).cloned();
                for it in own.into_iter().chain(earlier) {
                    let known = memory
                        .entry(it.offering.clone())
                        .or_insert_with(|| it.clone());
                    known.at = known.at.max(it.at);
                }
            }
            if !memory.is_empty() {
                let memory: Vec<Replaced> = memory.into_values().collect();
                let annotation = Replaced::write_all(&memory);
                replacement
                    .annotations
                    .insert(labels::REPLACED.to_owned(), annotation);
            }
        }
    }

    /// Whether the saving is what the pools ask for, and worth the disruption.
    pub(super) fn is_worth_it(
        &mut self,
        candidates: &[&Candidate<'_>],
        before: Price,
        after: Price,
    ) -> Result<(), KeptReason> {
        let saving = before.micros().saturating_sub(after.micros());
        let mut least = 0_u64;
        for candidate in candidates {
            let hysteresis = self.world.hysteresis(candidate.pool);
            let absolute = hysteresis.saving_min.map_or(0, Price::micros);
            let percent = u64::from(hysteresis.saving_min_percent.unwrap_or(0));
            let relative = before.micros().saturating_mul(percent).div_ceil(100);
            least = least.max(absolute).max(relative);
        }
        if saving < least {
            return Err(KeptReason::SavingTooSmall {
                saving: Price::from_micros(saving),
                least: Price::from_micros(least),
            });
        }
        let saving = Price::from_micros(saving).per_hour().unwrap_or(0.0);
        let judged = self.totals.judge(candidates, saving, self.world);
        let refusal = judged.iter().find(|it| !it.is_approved);
        let refusal = refusal.map(|it| KeptReason::NotWorthIt {
            score_percent: it.percent,
        });
        self.report.scores.extend(judged);
        refusal.map_or(Ok(()), Err)
    }

    /// The work that was done since the last search was for this one.
    pub(super) fn spent_on(&mut self, kind: CommandKind) {
        let known: u64 = self.report.work.values().sum();
        let new = self.simulator.work().saturating_sub(known);
        *self.report.work.entry(kind).or_default() += new;
    }
}
