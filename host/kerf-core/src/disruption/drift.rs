//! Drift: nodes that differ from what their pools ask for are made anew, replacements first. No price rule.

use crate::disruption::budget::DisruptionReason;
use crate::disruption::candidate::Candidate;
use crate::disruption::command::CommandKind;
use crate::disruption::kept::KeptReason;
use crate::disruption::pass::Pass;
use crate::schedule::simulate::Packing;

impl Pass<'_> {
    /// Starts as many commands as the budgets allow, pool by pool, the longest drifted first; nodes without pods that
    /// must move go before the others.
    ///
    /// Karpenter: differs, because it starts one command a pass, so that one pool's drift waits for another's, and lets
    /// pods move to nodes that have drifted themselves, so that they move again soon.
    pub(super) fn drift(&mut self, mut drifted: Vec<Candidate<'_>>) {
        drifted.sort_by(|a, b| {
            let order = |it: &Candidate<'_>| {
                let since = it.node.drifted.as_ref().map(|drift| drift.since);
                (self.has_movers(it), since, it.claim.clone())
            };
            order(a).cmp(&order(b))
        });
        let nodes: Vec<usize> = drifted
            .iter()
            .filter_map(|it| self.simulator.node(&it.claim))
            .collect();
        let closed: Vec<usize> = nodes
            .into_iter()
            .filter(|node| self.simulator.close(*node))
            .collect();
        for candidate in &drifted {
            if let Err(reason) = self.drift_one(candidate) {
                self.kept.insert(candidate.claim.clone(), reason);
            }
        }
        for node in closed.iter().filter(|node| !self.busy.contains(node)) {
            self.simulator.open(*node);
        }
    }

    fn drift_one(&mut self, candidate: &Candidate<'_>) -> Result<(), KeptReason> {
        let pool = candidate.pool;
        if pool.unhealthy.is_some() {
            return Err(KeptReason::Unhealthy {
                pool: pool.name.to_string(),
            });
        }
        if self.book.left(pool, DisruptionReason::Drifted) == 0 {
            return Err(KeptReason::Budget);
        }
        if self.simulator.is_out_of_work() {
            return Err(KeptReason::NotLookedAt);
        }
        let node = self.simulator.node(&candidate.claim);
        let node = node.ok_or(KeptReason::NotInitialized)?;
        if self.busy.contains(&node) {
            return Err(KeptReason::TakesInPods);
        }
        match self.simulator.try_with_claims(&[node], Packing::Thorough) {
            Ok(_) => {
                let replacements = self.simulator.planned();
                let reason = candidate.node.drifted.as_ref();
                let note = reason.map_or_else(String::new, |it| format!("drifted: {}", it.reason));
                self.start(CommandKind::Drift, &[candidate], replacements, &note);
                Ok(())
            }
            Err(no_place) => {
                self.simulator.undo();
                Err(KeptReason::NoPlace {
                    pod: no_place.pod,
                    why: no_place.why,
                })
            }
        }
    }

    fn has_movers(&self, candidate: &Candidate<'_>) -> bool {
        let node = self.simulator.node(&candidate.claim);
        node.is_some_and(|node| self.simulator.movers(node) > 0)
    }
}
