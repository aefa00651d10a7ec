//! Why nodes stay: one reason per claim, in a condition and, when somebody can do something about it, in an event.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_api::condition::find;
use kerf_api::names::{condition, event, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::disruption::budget::{Budget, BudgetWindow, DisruptionReason, allowed_disruptions};
use kerf_core::disruption::emptiness::allowed_now;
use kerf_core::disruption::{KeptKind, KeptNode, KeptReason};
use kerf_core::snapshot::Snapshot;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use crate::clock;
use crate::context::Context;
use crate::disruption::edit::with_conditions;
use crate::error::chain;
use crate::hash_of::hash_of;
use crate::kept::version_of;
use crate::metrics::disruption::{AllowedLabels, reason_name};
use crate::patch;

/// The same is told again after this time (Karpenter: same).
const REPEAT_AFTER: Duration = Duration::from_secs(15 * 60);
/// A condition whose kind stays is written at most this often: prices in its message move all the time.
const REWRITE_AFTER: Duration = Duration::from_secs(60);
/// What ends by itself sooner than this is not written: every new node waits for its consolidateAfter.
const SAID_FROM: SignedDuration = SignedDuration::from_secs(60);
/// Events and conditions per pass: more would hold up commands; the rest follows in the next.
const PER_PASS_MAX: usize = 100;

const REASONS: [DisruptionReason; 3] = [
    DisruptionReason::Underutilized,
    DisruptionReason::Empty,
    DisruptionReason::Drifted,
];

/// Remembers what was told.
#[derive(Debug, Default)]
pub struct Teller {
    told: BTreeMap<(String, String), Instant>,
    written: BTreeMap<String, Instant>,
    settled: HashMap<Box<str>, Settled>,
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
    /// Says why the claims stay.
    pub async fn tell_kept(&mut self, kept: &[KeptNode], context: &Context) {
        self.told.retain(|_, at| at.elapsed() < REPEAT_AFTER);
        let names: BTreeSet<&str> = kept.iter().map(|it| &*it.node_claim).collect();
        self.written.retain(|name, _| names.contains(name.as_str()));
        self.settled.retain(|name, _| names.contains(&**name));
        let claims = &context.stores.nodeclaims;
        let mut left = PER_PASS_MAX;
        for KeptNode { node_claim, reason } in kept {
            let why = hash_of(&reason.to_string());
            let version = claims.version(node_claim);
            if version.is_some_and(|version| self.is_settled(node_claim, version, why)) {
                continue;
            }
            let Some(claim) = claims.get(node_claim) else {
                continue;
            };
            if left == 0 {
                return;
            }
            let has_told = self.tell_event(&claim, reason, context).await;
            let has_written = self.write(&claim, reason, context).await;
            if has_told || has_written {
                left -= 1;
            } else if let Some(version) = version_of(&*claim) {
                self.settle(node_claim, version, why);
            }
        }
    }

    fn is_settled(&self, name: &str, version: u64, why: u64) -> bool {
        self.settled
            .get(name)
            .is_some_and(|it| it.version == version && it.why == why && Instant::now() < it.until)
    }

    /// Each for another time, so that they do not come up all at once.
    fn settle(&mut self, name: &str, version: u64, why: u64) {
        let spread = hash_of(name) % REWRITE_AFTER.as_secs();
        let mut until = Instant::now() + REWRITE_AFTER / 2 + Duration::from_secs(spread);
        // What was written just now may be all that stands against writing.
        if let Some(written_at) = self.written.get(name)
            && written_at.elapsed() < REWRITE_AFTER
        {
            until = until.min(*written_at + REWRITE_AFTER);
        }
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
        if !self.is_news(&claim.uid().unwrap_or_default(), reason, &note) {
            return false;
        }
        context.events.normal(claim, reason, &note).await;
        let id = claim.provider_id();
        for node in id.map(|id| context.nodes_of(id)).unwrap_or_default() {
            context.events.normal(&*node, reason, &note).await;
        }
        true
    }

    fn is_news(&mut self, object: &str, reason: &str, note: &str) -> bool {
        let key = (object.to_owned(), format!("{reason} {note}"));
        let is_news = !self.told.contains_key(&key);
        self.told.entry(key).or_insert_with(Instant::now);
        is_news
    }

    async fn write(&mut self, claim: &NodeClaim, why: &KeptReason, context: &Context) -> bool {
        let name = claim.name_any();
        let is_recent = self
            .written
            .get(&name)
            .is_some_and(|at| at.elapsed() < REWRITE_AFTER);
        let Some(wanted) = said(claim, why, is_recent, clock::now()) else {
            return false;
        };
        if context.stores.nodeclaims.is_behind(claim) {
            return false;
        }
        self.written.insert(name, Instant::now());
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

    /// Says on each pool for which reasons its budgets allow nothing now, and until when.
    pub async fn tell_budgets(&mut self, snapshot: &Snapshot, context: &Context, now: Timestamp) {
        for pool in &snapshot.pools {
            let counted = snapshot.nodes.iter().filter(|node| {
                node.pool.as_ref() == Some(&pool.name) && node.is_managed() && node.is_initialized
            });
            let total = u32::try_from(counted.count()).unwrap_or(u32::MAX);
            for reason in REASONS {
                let allowed = allowed_now(pool, snapshot, reason, now);
                let labels = AllowedLabels {
                    nodepool: pool.name.to_string(),
                    reason: reason_name(reason),
                };
                context.metrics.disruption.allow(&labels, allowed);
            }
            let note = closed(&pool.disruption.budgets, total, now);
            let object = context
                .stores
                .nodepools
                .get(&ObjectRef::<NodePool>::new(&pool.name));
            let (Some(note), Some(object)) = (note, object) else {
                continue;
            };
            let reason = event::DISRUPTION_BLOCKED;
            if self.is_news(&object.uid().unwrap_or_default(), reason, &note) {
                tracing::info!(nodepool = %pool.name, %note, "disruption blocked");
                context.events.normal(&*object, reason, &note).await;
            }
        }
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

fn ends_soon(why: &KeptReason, now: Timestamp) -> bool {
    let end = why.ends_at();
    end.is_some_and(|end| end.duration_since(now) < SAID_FROM)
}

/// For which reasons the budgets allow nothing of `total` nodes, and until when; none when they allow something for each.
/// Pure.
fn closed(budgets: &[Budget], total: u32, now: Timestamp) -> Option<String> {
    let is_closed =
        |reason: &DisruptionReason| allowed_disruptions(budgets, total, *reason, now) == 0;
    let reasons: Vec<DisruptionReason> = REASONS.into_iter().filter(is_closed).collect();
    if total == 0 || reasons.is_empty() {
        return None;
    }
    let names: Vec<&str> = reasons.iter().map(|it| it.as_str()).collect();
    let until = match reopens(budgets, total, &reasons, now) {
        Some(at) => format!("until {at}"),
        None => "until the budgets are changed".to_owned(),
    };
    Some(format!(
        "disruption budgets allow no node to go for {} {until}",
        names.join(", ")
    ))
}

/// The first end of a window after which one of the reasons is free again.
fn reopens(
    budgets: &[Budget],
    total: u32,
    reasons: &[DisruptionReason],
    now: Timestamp,
) -> Option<Timestamp> {
    let mut ends: Vec<Timestamp> = budgets
        .iter()
        .filter_map(|budget| match &budget.window {
            BudgetWindow::Scheduled { schedule, duration } => {
                let opened = schedule.next_after(now.checked_sub(*duration).ok()?)?;
                opened.checked_add(*duration).ok()
            }
            BudgetWindow::Always | BudgetWindow::Invalid { .. } => None,
        })
        .filter(|end| *end > now)
        .collect();
    ends.sort_unstable();
    let is_open = |at: &Timestamp| {
        reasons
            .iter()
            .any(|reason| allowed_disruptions(budgets, total, *reason, *at) > 0)
    };
    ends.into_iter().find(is_open)
}

#[cfg(test)]
mod tests {
    use kerf_core::disruption::budget::BudgetNodes;
    use kerf_core::disruption::cron::Cron;

    use super::*;

    fn budget(nodes: u32, reasons: &[DisruptionReason], window: Option<(&str, i64)>) -> Budget {
        Budget {
            nodes: BudgetNodes::Count(nodes),
            reasons: reasons.to_vec(),
            window: match window {
                None => BudgetWindow::Always,
                Some((schedule, hours)) => BudgetWindow::Scheduled {
                    schedule: Cron::parse(schedule).unwrap(),
                    duration: SignedDuration::from_hours(hours),
                },
            },
        }
    }

    #[test]
    fn a_budget_of_zero_says_until_when_it_blocks() {
        let now = "2026-08-20T10:00:00Z".parse().unwrap();
        let drifted = [DisruptionReason::Drifted];
        for (budgets, expected) in [
            (vec![budget(1, &[], None)], None),
            (
                vec![budget(0, &[], None)],
                Some("Underutilized, Empty, Drifted until the budgets are changed"),
            ),
            (
                vec![budget(0, &[], Some(("0 9 * * *", 8))), budget(5, &[], None)],
                Some("Underutilized, Empty, Drifted until 2026-08-20T17:00:00Z"),
            ),
            (
                vec![budget(0, &drifted, None)],
                Some("Drifted until the budgets are changed"),
            ),
            (vec![budget(0, &[], Some(("0 1 * * *", 8)))], None),
        ] {
            let note = closed(&budgets, 10, now);

            match expected {
                None => assert_eq!(note, None),
                Some(expected) => assert!(note.unwrap().ends_with(expected)),
            }
        }
        assert_eq!(closed(&[budget(0, &[], None)], 0, now), None);
    }

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
    fn the_same_is_told_once_and_another_reason_at_once() {
        let mut teller = Teller::default();

        assert!(teller.is_news("a", "Unconsolidatable", "x"));
        assert!(!teller.is_news("a", "Unconsolidatable", "x"));
        assert!(teller.is_news("a", "Unconsolidatable", "y"));
        assert!(teller.is_news("b", "Unconsolidatable", "x"));
    }
}
