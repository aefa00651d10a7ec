//! For which reasons the budgets of a pool allow nothing now, and until when: an event on the NodePool.

use jiff::Timestamp;
use kerf_api::names::event;
use kerf_api::nodepool::NodePool;
use kerf_core::disruption::budget::{Budget, BudgetWindow, DisruptionReason, allowed_disruptions};
use kerf_core::disruption::emptiness::allowed_now;
use kerf_core::snapshot::Snapshot;
use kube::runtime::events::EventType;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};

use super::Told;
use crate::context::Context;
use crate::metrics::disruption::{AllowedLabels, reason_name};

const REASONS: [DisruptionReason; 3] = [
    DisruptionReason::Underutilized,
    DisruptionReason::Empty,
    DisruptionReason::Drifted,
];

/// Remembers what was told of budgets.
#[derive(Debug, Default)]
pub struct BudgetTeller {
    told: Told,
}

impl BudgetTeller {
    /// Says what the budgets of each pool allow now. Waits for nobody.
    pub fn tell(&mut self, snapshot: &Snapshot, context: &Context, now: Timestamp) {
        self.told.forget_old();
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
            let pools = &context.stores.nodepools;
            let object = pools.get(&ObjectRef::<NodePool>::new(&pool.name));
            let (Some(note), Some(object)) = (note, object) else {
                continue;
            };
            let reason = event::DISRUPTION_BLOCKED;
            let uid = object.uid().unwrap_or_default();
            if self.told.is_news(&uid, reason, &note) {
                tracing::info!(nodepool = %pool.name, %note, "disruption blocked");
                let object = object.object_ref(&());
                let events = &context.events;
                if !events.offer(EventType::Normal, &object, reason, &note) {
                    self.told.forget(&uid, reason, &note);
                }
            }
        }
    }
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
    use jiff::SignedDuration;
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
}
