//! Telling pods what was planned for them: events that are not repeated while their content stays the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::plan::{Placement, PlacementTarget, Plan};
use kerf_core::pod::Pod;
use kube::ResourceExt;
use kube::runtime::events::EventType;
use tokio::time::Instant;

use crate::context::Context;
use crate::events::pod_reference;
use crate::hash_of::hash_of;
use crate::provision::nominated::Nominator;

/// An unchanged explanation is repeated after this time (Karpenter: same). Unlike there, a changed one is told at once.
const REPEAT_AFTER: Duration = Duration::from_secs(300);
/// Refusals per plan: more would flood the API server when thousands of pods come at once; the rest follows in the next.
const REFUSALS_PER_PLAN_MAX: usize = 100;
/// Explanations that are remembered; beyond, all are forgotten and may be repeated.
const REMEMBERED_MAX: usize = 20_000;
/// Room that is kept for more of them.
const SPARE_MAX: usize = 1_000;

/// Remembers what was told.
#[derive(Debug)]
pub struct Announcer {
    told: HashMap<u64, Instant>,
    nominator: Nominator,
}

impl Announcer {
    /// Nothing was told yet.
    #[must_use]
    pub fn new(nominator: Nominator) -> Self {
        Self {
            told: HashMap::new(),
            nominator,
        }
    }

    /// Publishes what is new in the plan. `created` has one entry per planned claim.
    pub async fn announce(
        &mut self,
        plan: &Plan,
        created: &[Option<NodeClaim>],
        context: &Context,
    ) {
        self.forget_old();
        let mut left = REFUSALS_PER_PLAN_MAX;
        for group in &plan.unschedulable {
            let note = format!("{}", group.reason);
            for pod in &group.pods {
                self.refuse(&mut left, pod, &note, context).await;
            }
            tracing::info!(pods = group.pods.len(), first = %group.pods.first().map(|it| it.name.clone()).unwrap_or_default(), reason = %note, "cannot schedule");
        }
        self.nominate(plan, created);
    }

    /// Says which node each pod is meant for.
    fn nominate(&mut self, plan: &Plan, created: &[Option<NodeClaim>]) {
        for (planned, claim) in plan.new_claims.iter().zip(created) {
            let Some(claim) = claim else { continue };
            let name = claim.name_any();
            let note = format!(
                "should schedule on NodeClaim {name}, which {}",
                planned.reason
            );
            let note = note.into();
            for pod in &planned.pods {
                self.nominate_pod(pod, &name, &note);
            }
        }
        for Placement { pod, node, reason } in &plan.placements {
            let (kind, name): (_, &str) = match node {
                PlacementTarget::Node(name) => ("node", name),
                PlacementTarget::InFlight(name) => ("NodeClaim", name),
            };
            let note = format!("should schedule on {kind} {name}: {reason}");
            self.nominate_pod(pod, name, &note.into());
        }
    }

    /// Once for each place: a later plan that keeps it has another reason for the same.
    fn nominate_pod(&mut self, pod: &Pod, place: &str, note: &Arc<str>) {
        let key = key(pod, event::NOMINATED, place);
        if pod.is_virtual() || self.told.contains_key(&key) || !self.nominator.offer(pod, note) {
            return;
        }
        self.told.insert(key, Instant::now());
    }

    async fn refuse(&mut self, left: &mut usize, pod: &Pod, note: &str, context: &Context) {
        let key = key(pod, event::FAILED_SCHEDULING, note);
        if pod.is_virtual() || *left == 0 || self.told.contains_key(&key) {
            return;
        }
        *left -= 1;
        self.told.insert(key, Instant::now());
        let reference = pod_reference(&pod.namespace, &pod.name, &pod.uid.text());
        let type_ = EventType::Warning;
        context
            .events
            .publish(type_, &reference, event::FAILED_SCHEDULING, note)
            .await;
    }

    fn forget_old(&mut self) {
        self.told
            .retain(|_, told_at| told_at.elapsed() < REPEAT_AFTER);
        // Room for the pods of a fleet that has just started would stay for ever.
        if self.told.capacity() > SPARE_MAX + 4 * self.told.len() {
            self.told.shrink_to(2 * self.told.len());
        }
        if self.told.len() > REMEMBERED_MAX {
            self.told.clear();
        }
    }
}

/// What makes two explanations one.
fn key(pod: &Pod, reason: &str, what: &str) -> u64 {
    hash_of(&(&pod.uid, reason, what))
}
