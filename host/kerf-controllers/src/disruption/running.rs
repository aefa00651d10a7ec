//! Commands that are being carried out. What matters of them is in the objects; this only saves looking for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kerf_api::names::condition;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::Command;
use kerf_core::ids::NodeClaimName;
use kerf_core::plan::PlacementTarget;
use kube::ResourceExt;
use tokio::time::Instant;

use crate::clock;
use crate::context::Context;
use crate::disruption::execute;
use crate::disruption::record::Record;
use crate::disruption::step::{self, Failure, Replacement, Sight, Step, UNSEEN_MAX};
use crate::lifecycle::registration::since;

/// Commands whose steps are carried out at the same time.
const CONCURRENCY: usize = 8;

/// Nodes that take in pods are kept for this long at a time, which is renewed while the command runs and its nodes drain:
/// what was evicted last is created and bound anew within a second or two.
const NOMINATION: Duration = Duration::from_secs(5);
/// They are kept for drains for this long in all: one that waits for a budget must not keep others from going.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// A command that is being carried out.
#[derive(Debug)]
pub struct Running {
    /// What its candidates remember of it.
    pub record: Record,
    /// Nodes that its pods were promised.
    pub promised: Vec<PlacementTarget>,
    /// Since when this process carries it out.
    since: Instant,
    /// Replacements that the watch has shown.
    seen: BTreeSet<String>,
    /// Replacements that were told to be waited for.
    pub told: BTreeSet<String>,
    /// Since when all candidates are being deleted.
    draining_since: Option<Instant>,
    /// Candidates that were deleted.
    pub deleted: BTreeSet<String>,
    /// Whether the candidates count as going. After a restart nobody knows, and doing it again does no harm.
    is_marked: bool,
    /// Set when it is being taken back.
    failure: Option<Failure>,
}

impl Running {
    /// A command that goes on now; `is_marked` when its candidates count as going already.
    #[must_use]
    pub fn new(record: Record, promised: Vec<PlacementTarget>, is_marked: bool) -> Self {
        Self {
            record,
            promised,
            since: Instant::now(),
            seen: BTreeSet::new(),
            told: BTreeSet::new(),
            draining_since: None,
            deleted: BTreeSet::new(),
            is_marked,
            failure: None,
        }
    }

    /// A command that must be taken back.
    #[must_use]
    pub fn broken(record: Record, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            ..Self::new(record, Vec::new(), true)
        }
    }

    fn look(&mut self, context: &Context) -> Sight {
        let claim = |name: &String| context.stores.nodeclaims.get(name);
        let is_staying =
            |claim: &NodeClaim| -> bool { claim.metadata.deletion_timestamp.is_none() };
        let staying = self.record.candidates.iter().filter_map(claim);
        let staying = staying.filter(|claim| is_staying(claim)).count();
        let mut replacements = Vec::new();
        for name in &self.record.replacements {
            let found = claim(name);
            if found.is_some() {
                self.seen.insert(name.clone());
            }
            let state = match found {
                Some(claim) if !is_staying(&claim) => Replacement::Lost,
                Some(claim) if claim.is_true(condition::INITIALIZED) => Replacement::Ready,
                Some(_) => Replacement::Starting,
                None if self.seen.contains(name) || self.since.elapsed() >= UNSEEN_MAX => {
                    Replacement::Lost
                }
                None => Replacement::Unseen,
            };
            replacements.push((name.clone(), state));
        }
        Sight {
            staying,
            replacements,
            age: since(self.record.started_at, clock::now()),
        }
    }

    fn nominate(&self, context: &Context) {
        let replacements = self.record.replacements.iter();
        let replacements =
            replacements.map(|name| PlacementTarget::InFlight(NodeClaimName::from(name.as_str())));
        let targets: Vec<PlacementTarget> =
            replacements.chain(self.promised.iter().cloned()).collect();
        context.cluster.nominate(&targets, clock::now(), NOMINATION);
    }

    /// Keeps the promised nodes while pods leave the candidates; whether any still do.
    fn drains(&mut self, context: &Context) -> bool {
        let since = *self.draining_since.get_or_insert_with(Instant::now);
        let pods_of = |name: &String| {
            let claim = context.stores.nodeclaims.get(name)?;
            let node = claim.status.as_ref()?.node_name.clone()?;
            Some(context.cluster.reschedulable_pods(&node))
        };
        let mut pods = self.record.candidates.iter().filter_map(pods_of);
        let is_draining = since.elapsed() < DRAIN_MAX && pods.any(|count| count > 0);
        if is_draining {
            self.nominate(context);
        }
        is_draining
    }

    /// One step; whether the command goes on.
    async fn advance(&mut self, context: &Context) -> bool {
        if let Some(failure) = self.failure.clone() {
            return !execute::roll_back(&self.record, &failure, context).await;
        }
        let sight = self.look(context);
        let step = step::next(&sight);
        let is_going_on = matches!(step, Step::Wait(_) | Step::Finish);
        if is_going_on && !self.is_marked && sight.is_all_seen() {
            match execute::mark(&self.record, context).await {
                Ok(()) => self.is_marked = true,
                Err(failure) => self.failure = Some(failure),
            }
            return true;
        }
        match step {
            Step::Done => return self.drains(context),
            Step::Wait(missing) => {
                self.nominate(context);
                execute::tell_waiting(self, &missing, context).await;
                return true;
            }
            Step::Finish => {
                self.nominate(context);
                match execute::finish(self, context).await {
                    Ok(()) => return true,
                    Err(failure) => self.failure = Some(failure),
                }
            }
            Step::RollBack(failure) => self.failure = Some(failure),
        }
        match self.failure.clone() {
            Some(failure) => !execute::roll_back(&self.record, &failure, context).await,
            None => true,
        }
    }
}

/// All commands that are being carried out.
#[derive(Debug, Default)]
pub struct Commands {
    running: Vec<Running>,
}

impl Commands {
    /// Those that a predecessor left behind, as their candidates remember them.
    #[must_use]
    pub fn adopt(context: &Context) -> Self {
        let claims = context.stores.nodeclaims.iter();
        let records = claims.filter_map(|claim| Record::of(&claim));
        let by_id: BTreeMap<String, Record> =
            records.map(|record| (record.id.clone(), record)).collect();
        let mut running = Vec::new();
        for record in by_id.into_values() {
            tracing::info!(command = %record.id, note = %record.note, "carrying on with a command of the last run");
            running.push(Running::new(record, Vec::new(), false));
        }
        Self { running }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Names of the claims that commands are about to remove.
    #[must_use]
    pub fn candidates(&self) -> BTreeSet<String> {
        let candidates = self.running.iter().flat_map(|it| &it.record.candidates);
        candidates.cloned().collect()
    }

    /// Starts the commands; those whose first steps fail are taken back. Whether all of them go on.
    pub async fn start(&mut self, commands: Vec<Command>, context: &Context) -> bool {
        let starts: Vec<_> = commands
            .into_iter()
            .map(|command| execute::start(command, context))
            .collect();
        let started: Vec<Option<Running>> = stream::iter(starts)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        let goes_on = |it: &Option<Running>| it.as_ref().is_some_and(|it| it.failure.is_none());
        let do_all = started.iter().all(goes_on);
        self.running.extend(started.into_iter().flatten());
        do_all
    }

    /// Moves every command on by one step.
    pub async fn advance(&mut self, context: &Context) {
        let running = std::mem::take(&mut self.running);
        let steps: Vec<_> = running
            .into_iter()
            .map(|mut it| async move { it.advance(context).await.then_some(it) })
            .collect();
        let left: Vec<Option<Running>> = stream::iter(steps)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        self.running = left.into_iter().flatten().collect();
    }
}

/// Names of the candidates that are still there, with their claims.
pub(super) fn staying(record: &Record, context: &Context) -> Vec<std::sync::Arc<NodeClaim>> {
    let claims = record
        .candidates
        .iter()
        .filter_map(|name| context.stores.nodeclaims.get(name));
    claims
        .filter(|claim| claim.metadata.deletion_timestamp.is_none())
        .collect()
}

/// As [`staying`], by name only.
pub(super) fn names(claims: &[std::sync::Arc<NodeClaim>]) -> Vec<String> {
    claims.iter().map(|claim| claim.name_any()).collect()
}
