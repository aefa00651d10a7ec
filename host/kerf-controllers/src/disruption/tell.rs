//! Why nodes stay: one reason per claim, in a condition and, when somebody can do something about it, in an event.

mod budgets;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_api::condition::find;
use kerf_api::names::{condition, event, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::{KeptKind, KeptNode, KeptReason};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::context::Context;
use crate::disruption::edit::with_conditions;
use crate::error::chain;
use crate::failpoint;
use crate::hash_of::hash_of;
use crate::kept::version_of;
use crate::lifecycle::registration::left;
use crate::pace::Pace;
use crate::patch;

pub use self::budgets::BudgetTeller;

/// The same is told again after this time (Karpenter: same).
const REPEAT_AFTER: Duration = Duration::from_secs(15 * 60);
/// A condition whose kind stays is written at most this often: prices in its message move all the time.
const REWRITE_AFTER: Duration = Duration::from_secs(60);
/// What ends by itself sooner than this is not written: every new node waits for its consolidateAfter.
const SAID_FROM: SignedDuration = SignedDuration::from_secs(60);
/// Why a node stays that is younger than this is not told either: of its first moments most is over before anybody reads it, and
/// a node that came for a short job is gone.
const NEW_FOR: Duration = Duration::from_secs(15);
/// Claims of which something is told at once, after a while in which there was nothing to tell.
const BURST: u32 = 100;
/// After that, one in this time. Of a fleet of thousands each may have something else to say at once, in three requests each,
/// and nobody waits for it: launches and deletions go at the same API server.
const PAUSE: Duration = Duration::from_millis(500);

/// What the newest decision kept, and why.
pub type Kept = Arc<[KeptNode]>;

/// Tells until the process ends. A task of its own: whoever decides does not wait for what is said about it.
pub async fn run(mut newest: watch::Receiver<Kept>, context: Arc<Context>) {
    let mut teller = Teller::new();
    while newest.changed().await.is_ok() {
        let kept = Arc::clone(&newest.borrow_and_update());
        let is_old = || newest.has_changed().unwrap_or(true);
        teller.tell(&kept, &is_old, &context).await;
    }
    // Who decides has died, which is what the supervisor shall say.
    std::future::pending::<()>().await;
}

/// Remembers what was told.
#[derive(Debug)]
struct Teller {
    told: Told,
    written: HashMap<Box<str>, Instant>,
    settled: HashMap<Box<str>, Settled>,
    pace: Pace,
    /// Where the next look begins, so that the last of a list that is always new are told of too.
    next: usize,
}

/// A claim of which there was nothing to say. Reading all claims of a large fleet takes a tenth of a second each time.
#[derive(Debug)]
struct Settled {
    version: u64,
    /// A hash of why it stays.
    why: u64,
    until: Instant,
}

impl Teller {
    fn new() -> Self {
        Self {
            told: Told::default(),
            written: HashMap::new(),
            settled: HashMap::new(),
            pace: Pace::new(PAUSE, BURST),
            next: 0,
        }
    }

    /// Says why the claims stay, until `is_old`.
    async fn tell(&mut self, kept: &[KeptNode], is_old: &impl Fn() -> bool, context: &Context) {
        self.forget(kept);
        let (later, first) = kept.split_at(self.next % kept.len().max(1));
        for (nth, node) in first.iter().chain(later).enumerate() {
            if is_old() {
                self.next = later.len() + nth;
                return;
            }
            if self.tell_one(node, context).await {
                self.pace.take(Instant::now());
                sleep_until(self.pace.due(Instant::now())).await;
            }
        }
    }

    fn forget(&mut self, kept: &[KeptNode]) {
        self.told.forget_old();
        self.written.retain(|_, at| at.elapsed() < REWRITE_AFTER);
        let names: BTreeSet<&str> = kept.iter().map(|it| &*it.node_claim).collect();
        self.settled.retain(|name, _| names.contains(&**name));
    }

    /// Says why the claim stays; whether there was something to say.
    async fn tell_one(&mut self, kept: &KeptNode, context: &Context) -> bool {
        let KeptNode { node_claim, reason } = kept;
        let why = hash_of(&reason.to_string());
        let claims = &context.stores.nodeclaims;
        let version = claims.version(node_claim);
        if version.is_some_and(|version| self.is_settled(node_claim, version, why)) {
            return false;
        }
        let Some(claim) = claims.get(node_claim) else {
            return false;
        };
        if let Some(wait) = new_for(&claim, clock::now()) {
            self.settle_until(node_claim, version_of(&*claim), why, Instant::now() + wait);
            yield_now().await;
            return false;
        }
        context.reach(failpoint::KEPT_UNTOLD).await;
        let has_told = self.tell_event(&claim, reason, context).await;
        let has_written = self.write(&claim, reason, context).await;
        if has_told || has_written {
            return true;
        }
        self.settle(node_claim, version_of(&*claim), why);
        // It was read, which takes a while, and others may be many.
        yield_now().await;
        false
    }

    fn is_settled(&self, name: &str, version: u64, why: u64) -> bool {
        self.settled
            .get(name)
            .is_some_and(|it| it.version == version && it.why == why && Instant::now() < it.until)
    }

    /// Each for another time, so that they do not come up all at once.
    fn settle(&mut self, name: &str, version: Option<u64>, why: u64) {
        let spread = hash_of(name) % REWRITE_AFTER.as_secs();
        let mut until = Instant::now() + REWRITE_AFTER / 2 + Duration::from_secs(spread);
        // What was written just now may be all that stands against writing.
        if let Some(written_at) = self.written.get(name)
            && written_at.elapsed() < REWRITE_AFTER
        {
            until = until.min(*written_at + REWRITE_AFTER);
        }
        self.settle_until(name, version, why, until);
    }

    fn settle_until(&mut self, name: &str, version: Option<u64>, why: u64, until: Instant) {
        let Some(version) = version else { return };
        let settled = Settled {
            version,
            why,
            until,
        };
        self.settled.insert(name.into(), settled);
    }

    async fn tell_event(&mut self, claim: &NodeClaim, why: &KeptReason, context: &Context) -> bool {
        let reason = match why.kind() {
            KeptKind::Passing => return false,
            KeptKind::Blocked => event::DISRUPTION_BLOCKED,
            KeptKind::Unconsolidatable => event::UNCONSOLIDATABLE,
        };
        let note = why.to_string();
        if !self
            .told
            .is_news(&claim.uid().unwrap_or_default(), reason, &note)
        {
            return false;
        }
        context.events.normal(claim, reason, &note).await;
        let id = claim.provider_id();
        for node in id.map(|id| context.nodes_of(id)).unwrap_or_default() {
            context.events.normal(&*node, reason, &note).await;
        }
        true
    }

    async fn write(&mut self, claim: &NodeClaim, why: &KeptReason, context: &Context) -> bool {
        let name = claim.name_any();
        let is_recent = self
            .written
            .get(&*name)
            .is_some_and(|at| at.elapsed() < REWRITE_AFTER);
        let Some(wanted) = said(claim, why, is_recent, clock::now()) else {
            return false;
        };
        if context.stores.nodeclaims.is_behind(claim) {
            return false;
        }
        self.written.insert(name.into(), Instant::now());
        let api: Api<NodeClaim> = Api::all(context.client.clone());
        match patch::write(&api, claim, &wanted).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => {
                tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot write why the node stays; tried again");
            }
            Ok(written) => context.stores.nodeclaims.note_written(&written),
            Err(_) => {}
        }
        true
    }
}

/// What was told, by hash, and when.
#[derive(Debug, Default)]
struct Told(HashMap<u64, Instant>);

impl Told {
    fn is_news(&mut self, object: &str, reason: &str, note: &str) -> bool {
        let key = hash_of(&(object, reason, note));
        let is_news = !self.0.contains_key(&key);
        self.0.entry(key).or_insert_with(Instant::now);
        is_news
    }

    fn forget(&mut self, object: &str, reason: &str, note: &str) {
        self.0.remove(&hash_of(&(object, reason, note)));
    }

    fn forget_old(&mut self) {
        self.0.retain(|_, at| at.elapsed() < REPEAT_AFTER);
    }
}

/// The claim with the reason in its condition; none when it says so already, or said something of the kind just now.
/// Pure.
fn said(claim: &NodeClaim, why: &KeptReason, is_recent: bool, now: Timestamp) -> Option<NodeClaim> {
    let reason = match why {
        // Gone with the next look.
        KeptReason::Leaving
        | KeptReason::NotInitialized
        | KeptReason::Nominated
        | KeptReason::TakesInPods
        | KeptReason::NotLookedAt => return None,
        other if ends_soon(other, now) => return None,
        other => match other.kind() {
            KeptKind::Passing => reason::DISRUPTION_WAITS,
            KeptKind::Blocked => reason::DISRUPTION_BLOCKED,
            KeptKind::Unconsolidatable => reason::UNCONSOLIDATABLE,
        },
    };
    let message = why.to_string();
    if let Some(before) = find(claim.conditions(), condition::DISRUPTABLE) {
        let is_same_kind = before.reason == reason;
        if is_same_kind && (before.message == message || is_recent) {
            return None;
        }
    }
    let wanted = with_conditions(claim, now, |draft| {
        let type_ = condition::DISRUPTABLE;
        draft.conditions.set_false(type_, reason, &message);
    });
    Some(wanted)
}

/// How long its node is still new; none once nothing speaks against telling.
fn new_for(claim: &NodeClaim, now: Timestamp) -> Option<Duration> {
    let initialized = find(claim.conditions(), condition::INITIALIZED)?;
    let at = initialized
        .is_true()
        .then_some(initialized.last_transition_time)?;
    left(NEW_FOR, now.duration_since(at).unsigned_abs())
}

fn ends_soon(why: &KeptReason, now: Timestamp) -> bool {
    let end = why.ends_at();
    end.is_some_and(|end| end.duration_since(now) < SAID_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_written_once_and_a_changed_number_in_it_not_at_once() {
        let now = Timestamp::from_second(10).unwrap();
        let claim = NodeClaim::new("general-1", Default::default());
        let pods = |count| KeptReason::HasPods { count };

        let written = said(&claim, &pods(1), false, now).unwrap();

        assert_eq!(said(&written, &pods(1), false, now), None);
        assert_eq!(said(&written, &pods(2), true, now), None);
        assert!(said(&written, &pods(2), false, now).is_some());
        assert!(said(&written, &KeptReason::NodeForbids, true, now).is_some());
        assert_eq!(said(&written, &KeptReason::Leaving, false, now), None);
        let waits = |seconds: i64| KeptReason::Waiting {
            until: Timestamp::from_second(10 + seconds).unwrap(),
        };
        assert_eq!(said(&claim, &waits(59), false, now), None);
        assert!(said(&claim, &waits(60), false, now).is_some());
    }

    #[test]
    fn of_a_node_that_came_just_now_nothing_is_told() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let claim = NodeClaim::new("general-1", Default::default());
        let ready = with_conditions(&claim, at(10), |draft| {
            draft.conditions.set_true(condition::INITIALIZED);
        });

        assert_eq!(new_for(&ready, at(24)), Some(Duration::from_secs(1)));
        assert_eq!(new_for(&ready, at(25)), None);
        assert_eq!(new_for(&claim, at(10)), None, "what it waits for is told");
    }

    #[test]
    fn the_same_is_told_once_and_another_reason_at_once() {
        let mut told = Told::default();

        assert!(told.is_news("a", "Unconsolidatable", "x"));
        assert!(!told.is_news("a", "Unconsolidatable", "x"));
        assert!(told.is_news("a", "Unconsolidatable", "y"));
        assert!(told.is_news("b", "Unconsolidatable", "x"));
    }
}
