//! Consolidation: nodes whose pods fit elsewhere for less go.
//!
//! Three searches, each on what the ones before have left: nodes whose pods fit on others are deleted, one by one in
//! Karpenter's order; sets of the nodes that cost most for what their pods are worth are replaced by what those pods
//! need (n nodes by m); each node that is left is tried alone. Work is counted, so a large cluster takes longer but the
//! same input gives the same answer.
//!
//! Karpenter: differs, because it starts one command a pass, tries only prefixes of one sorted list, stops at one
//! replacement, and gives up after one or three minutes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::disruption::budget::DisruptionReason;
use crate::disruption::candidate::{Candidate, utilization_percent};
use crate::disruption::command::CommandKind;
use crate::disruption::kept::KeptReason;
use crate::disruption::offers::keep_cheaper;
use crate::disruption::pass::Pass;
use crate::plan::PlannedClaim;
use crate::pod::{OwnerKind, PodPhase};
use crate::price::Price;
use crate::schedule::simulate::Packing;

/// Nodes of one command at most. Karpenter: same. All replacements must join before any of them goes.
const SET_MAX: usize = 100;
/// A set is not tried with fewer nodes than that: single nodes have a search of their own.
const SET_MIN: usize = 2;
/// Several new nodes for old ones move many pods, so they must save at least this share of what goes: a fiftieth.
const SHARE_MIN: u64 = 50;
/// Nodes that waste less than this share are not searched hard: what they waste is the most that can be saved.
const WASTE_MIN: u64 = SHARE_MIN;
/// A set that saves this share of what it wastes is taken as it is.
const QUICK_ENOUGH: f64 = 0.75;
/// How often a set is tried again without the nodes that it would only rebuild.
const REBUILD_TRIES: usize = 3;

/// Karpenter: same. The dearest for the least disruption first; ties by name.
pub(super) fn removal_order(a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
    let worth = |it: &Candidate<'_>| it.price.per_hour().unwrap_or(0.0) / it.cost;
    worth(b)
        .total_cmp(&worth(a))
        .then_with(|| a.claim.cmp(&b.claim))
}

/// A candidate with its place in the simulation.
#[derive(Debug)]
struct Entry<'c, 'a> {
    candidate: &'c Candidate<'a>,
    node: usize,
    /// What it costs above what its pods are worth, by its price.
    waste: f64,
}

impl Pass<'_> {
    /// Consolidates the candidates, which are in removal order.
    pub(super) fn consolidate(&mut self, candidates: &[Candidate<'_>]) {
        let mut entries: Vec<Entry<'_, '_>> = candidates
            .iter()
            .filter_map(|candidate| {
                Some(Entry {
                    candidate,
                    node: self.simulator.node(&candidate.claim)?,
                    waste: 1.0,
                })
            })
            .collect();
        self.delete_each(&mut entries);
        self.spent_on(CommandKind::Single);
        self.replace_sets(&mut entries);
        self.spent_on(CommandKind::Multi);
        let is_out_of_work = self.simulator.is_out_of_work();
        self.replace_each(&entries);
        self.spent_on(CommandKind::Single);
        if !entries.is_empty() && self.simulator.is_out_of_work() {
            let multi = is_out_of_work.then_some(CommandKind::Multi);
            let cut_off = multi.into_iter().chain([CommandKind::Single]);
            self.report.cut_off.extend(cut_off);
        }
    }

    /// Deletes every node whose pods fit on the others. Those that went are taken out of the entries.
    fn delete_each(&mut self, entries: &mut Vec<Entry<'_, '_>>) {
        let mut kept = Vec::new();
        for entry in entries.drain(..) {
            match self.delete_one(&entry) {
                Ok(true) => {}
                Ok(false) => kept.push(entry),
                Err(reason) => {
                    self.kept.insert(entry.candidate.claim.clone(), reason);
                }
            }
        }
        *entries = kept;
    }

    fn delete_one(&mut self, entry: &Entry<'_, '_>) -> Result<bool, KeptReason> {
        self.may_go(entry)?;
        if !self.simulator.try_on_nodes(&[entry.node]) {
            self.simulator.undo();
            return Ok(false);
        }
        let before = [entry.candidate.price].into_iter().sum();
        let worth = self.is_worth_it(&[entry.candidate], before, Price::ZERO);
        if let Err(reason) = worth {
            self.simulator.undo();
            return Err(reason);
        }
        let note = "its pods fit on other nodes";
        self.start(CommandKind::Single, &[entry.candidate], Vec::new(), note);
        Ok(true)
    }

    /// Whether the pass may still take the node.
    fn may_go(&mut self, entry: &Entry<'_, '_>) -> Result<(), KeptReason> {
        let pool = entry.candidate.pool;
        if self.busy.contains(&entry.node) {
            return Err(KeptReason::TakesInPods);
        }
        if self.book.left(pool, DisruptionReason::Underutilized) == 0 {
            return Err(KeptReason::Budget);
        }
        if self.simulator.is_out_of_work() {
            return Err(KeptReason::NotLookedAt);
        }
        Ok(())
    }

    /// Replaces sets of nodes, pool by pool, those that waste most first.
    fn replace_sets(&mut self, entries: &mut Vec<Entry<'_, '_>>) {
        let mut pools: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (idx, entry) in entries.iter().enumerate() {
            if entry.candidate.price.is_known() && !self.busy.contains(&entry.node) {
                pools
                    .entry(entry.candidate.pool.name.to_string())
                    .or_default()
                    .push(idx);
            }
        }
        for (pool, members) in pools {
            self.find_waste(&pool, &members, entries);
            let mut wasteful: Vec<&Entry<'_, '_>> =
                members.iter().map(|idx| &entries[*idx]).collect();
            wasteful.retain(|entry| is_wasteful(entry));
            wasteful.sort_by(|a, b| {
                b.waste
                    .total_cmp(&a.waste)
                    .then_with(|| a.candidate.claim.cmp(&b.candidate.claim))
            });
            self.replace_sets_of(&wasteful);
        }
        entries.retain(|entry| !self.gone.contains(&entry.node));
    }

    fn replace_sets_of(&mut self, wasteful: &[&Entry<'_, '_>]) {
        let mut left = wasteful;
        while left.len() >= SET_MIN && !self.simulator.is_out_of_work() {
            let allowed = self
                .book
                .left(left[0].candidate.pool, DisruptionReason::Underutilized);
            let mut size = left.len().min(SET_MAX).min(allowed);
            if size < SET_MIN {
                return;
            }
            let whole = size;
            while size >= SET_MIN {
                let set: Vec<&Entry<'_, '_>> = left[..size]
                    .iter()
                    .copied()
                    .filter(|entry| !self.busy.contains(&entry.node))
                    .collect();
                if set.len() < SET_MIN || self.replace_set(set) {
                    break;
                }
                size /= 2;
            }
            // What did not work together is not tried in other company: its nodes have their own search.
            left = &left[if size >= SET_MIN { size } else { whole }..];
        }
    }

    /// Finds what each of a pool's candidates costs above what its pods are worth.
    fn find_waste(&mut self, pool: &str, members: &[usize], entries: &mut [Entry<'_, '_>]) {
        let nodes: Vec<usize> = members.iter().map(|idx| entries[*idx].node).collect();
        let values = self.simulator.values(pool, &nodes);
        for (place, idx) in members.iter().enumerate() {
            let entry = &mut entries[*idx];
            let price = price_micros(entry);
            entry.waste = match values.get(place) {
                Some(value) => 1.0 - value / price,
                None => 1.0 - f64::from(utilization_percent(entry.candidate.node)) / 100.0,
            };
        }
    }

    /// Replaces the set if that is worth it. Nodes that it would only rebuild are left out where that saves as much.
    fn replace_set<'c, 'a>(&mut self, mut set: Vec<&'c Entry<'c, 'a>>) -> bool {
        let Some(mut saving) = self.try_set(&set) else {
            self.simulator.undo();
            return false;
        };
        for _ in 0..REBUILD_TRIES {
            let smaller = self.without_rebuilt(&set);
            if smaller.len() == set.len() || smaller.is_empty() {
                break;
            }
            self.simulator.undo();
            match self.try_set(&smaller) {
                Some(then) if then >= saving - saving / 10 => {
                    saving = then;
                    set = smaller;
                }
                _ => {
                    self.simulator.undo();
                    if self.try_set(&set).is_none() {
                        self.simulator.undo();
                        return false;
                    }
                    break;
                }
            }
        }
        let candidates: Vec<&Candidate<'_>> = set.iter().map(|entry| entry.candidate).collect();
        let kind = match candidates.len() {
            1 => CommandKind::Single,
            _ => CommandKind::Multi,
        };
        self.finish(kind, &candidates).is_ok()
    }

    /// Tries the set; what it saves per hour in millionths, if anything. The trial stays open.
    fn try_set(&mut self, set: &[&Entry<'_, '_>]) -> Option<u64> {
        // Packing all pods together takes long, so it is for sets that lose much of what they waste without it.
        let possible: f64 = set
            .iter()
            .map(|entry| entry.waste * price_micros(entry))
            .sum();
        let quick = self.try_packed(set, Packing::Quick);
        #[expect(
            clippy::cast_precision_loss,
            reason = "prices have far fewer than 53 bits"
        )]
        let is_enough = quick.is_some_and(|saving| saving as f64 >= possible * QUICK_ENOUGH);
        if is_enough {
            return quick;
        }
        self.simulator.undo();
        self.try_packed(set, Packing::Thorough)
    }

    fn try_packed(&mut self, set: &[&Entry<'_, '_>], packing: Packing) -> Option<u64> {
        let nodes: Vec<usize> = set.iter().map(|entry| entry.node).collect();
        let before: Price = set.iter().map(|entry| entry.candidate.price).sum();
        let after = self.simulator.try_with_claims(&nodes, packing).ok()?;
        let saving = before.micros().checked_sub(after.micros())?;
        let saves_daemons = self.simulator.claim_types().len() < set.len()
            && set.iter().all(|entry| has_daemons(entry.candidate));
        (saving > 0 || saves_daemons).then_some(saving)
    }

    /// The set without the nodes of which the open trial plans one of the same type: keeping them saves a launch.
    fn without_rebuilt<'c, 'a>(&self, set: &[&'c Entry<'c, 'a>]) -> Vec<&'c Entry<'c, 'a>> {
        let mut rebuilt: BTreeMap<String, usize> = BTreeMap::new();
        for name in self.simulator.claim_types() {
            *rebuilt.entry(name).or_default() += 1;
        }
        // The set is sorted by waste, so that the fullest are kept.
        let mut left: Vec<&Entry<'_, '_>> = Vec::new();
        for entry in set.iter().rev() {
            let offering = entry.candidate.offering.as_ref();
            let again = offering.and_then(|it| rebuilt.get_mut(&*it.instance_type));
            match again {
                Some(count) if *count > 0 => *count -= 1,
                _ => left.push(entry),
            }
        }
        left.reverse();
        left
    }

    /// Tries each of the others alone, and says why it stays.
    fn replace_each(&mut self, entries: &[Entry<'_, '_>]) {
        for entry in entries {
            if let Err(reason) = self.replace_one(entry) {
                self.kept.insert(entry.candidate.claim.clone(), reason);
            }
        }
    }

    fn replace_one(&mut self, entry: &Entry<'_, '_>) -> Result<(), KeptReason> {
        self.may_go(entry)?;
        let candidate = entry.candidate;
        // Several new nodes must save a share, and no packing costs less than what the pods are worth.
        let packing = match is_wasteful(entry) {
            true => Packing::Thorough,
            false => Packing::Quick,
        };
        match self.simulator.try_with_claims(&[entry.node], packing) {
            Err(no_place) => {
                self.simulator.undo();
                Err(KeptReason::NoPlace {
                    pod: no_place.pod,
                    why: no_place.why,
                })
            }
            // Most end here, before anything is written down. Where policies order, the first offering may be dear.
            Ok(needed) if !self.has_preferences && needed > candidate.price => {
                self.simulator.undo();
                Err(match candidate.price.is_known() {
                    true => KeptReason::NotCheaper {
                        price: candidate.price,
                        needed,
                    },
                    false => KeptReason::UnknownPrice,
                })
            }
            Ok(_) => self.finish(CommandKind::Single, &[candidate]),
        }
    }

    /// Makes a command of the open trial if its prices allow; otherwise takes it back and says why not.
    fn finish(
        &mut self,
        kind: CommandKind,
        candidates: &[&Candidate<'_>],
    ) -> Result<(), KeptReason> {
        let mut replacements = self.simulator.planned();
        let judged = self.judge(candidates, &mut replacements);
        match judged {
            Ok(after) => {
                let note = match replacements.len() {
                    0 => "its pods fit on other nodes".to_owned(),
                    count => format!(
                        "its pods need {count} new nodes at {after} per hour together with those of {} nodes",
                        candidates.len()
                    ),
                };
                self.start(kind, candidates, replacements, &note);
                Ok(())
            }
            Err(reason) => {
                self.simulator.undo();
                Err(reason)
            }
        }
    }

    fn judge(
        &mut self,
        candidates: &[&Candidate<'_>],
        replacements: &mut [PlannedClaim],
    ) -> Result<Price, KeptReason> {
        let before: Price = candidates.iter().map(|it| it.price).sum();
        if replacements.is_empty() {
            self.is_worth_it(candidates, before, Price::ZERO)?;
            return Ok(Price::ZERO);
        }
        let saves_daemons =
            replacements.len() < candidates.len() && candidates.iter().all(|it| has_daemons(it));
        let after = keep_cheaper(candidates, replacements, self.world, saves_daemons)?;
        let saving = before.micros().saturating_sub(after.micros());
        if replacements.len() > 1 && saving.saturating_mul(SHARE_MIN) < before.micros() {
            return Err(KeptReason::SavingTooSmall {
                saving: Price::from_micros(saving),
                least: Price::from_micros(before.micros() / SHARE_MIN),
            });
        }
        self.is_worth_it(candidates, before, after)?;
        Ok(after)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "prices have far fewer than 53 bits"
)]
fn price_micros(entry: &Entry<'_, '_>) -> f64 {
    (entry.candidate.price.micros() as f64).max(1.0)
}

/// Whether it costs so much above what its pods are worth that several new nodes could be worth their while.
#[expect(clippy::cast_precision_loss, reason = "a small constant")]
fn is_wasteful(entry: &Entry<'_, '_>) -> bool {
    entry.waste > 1.0 / WASTE_MIN as f64
}

/// Whether the node runs daemons, which fewer nodes would save.
fn has_daemons(candidate: &Candidate<'_>) -> bool {
    let mut pods = candidate.node.pods.iter();
    pods.any(|pod| pod.spec.owner == OwnerKind::DaemonSet && pod.phase == PodPhase::Active)
}
