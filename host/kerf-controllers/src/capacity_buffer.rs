//! CapacityBuffer: room that is kept for pods which do not exist yet.
//!
//! A pass over a buffer asks which pods it stands for and hands them to the cluster index, where every plan finds them
//! after the real ones. Where they went is told back in the condition `Provisioning`.

mod resolve;
mod status;

pub use resolve::buffer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kerf_api::capacitybuffer::{ACTIVE_CAPACITY, CapacityBuffer};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::buffer::Buffer;
use kerf_core::plan::{Placement, PlacementTarget, Plan};
use kerf_core::pod::Pod;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};

use crate::cluster::Effect;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::reconciler::{Action, Trigger};
use crate::{clock, patch};

/// Workloads and templates are read again this often (Karpenter: same).
const RECHECK: Duration = Duration::from_secs(30);

/// Where the pods of a buffer went in the last plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// On nodes that are there.
    pub on_nodes: usize,
    /// On nodes that are on their way.
    pub on_the_way: usize,
    /// Nowhere.
    pub without_place: usize,
    /// Why those have no place.
    pub reason: Option<String>,
}

/// What the last plan said about each buffer, by uid.
#[derive(Debug)]
pub struct Buffers {
    outcomes: Mutex<BTreeMap<String, Outcome>>,
    trigger: Trigger<CapacityBuffer>,
}

impl Buffers {
    /// Nothing planned yet. The trigger makes a buffer tell what a plan said about it.
    #[must_use]
    pub fn new(trigger: Trigger<CapacityBuffer>) -> Self {
        Self {
            outcomes: Mutex::default(),
            trigger,
        }
    }

    fn outcome(&self, uid: &str) -> Option<Outcome> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.get(uid).cloned()
    }

    /// Takes in what a plan said; the uids of the buffers for which it is news.
    fn replace(&self, now: BTreeMap<String, Outcome>) -> BTreeSet<String> {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = now
            .iter()
            .filter(|(uid, outcome)| outcomes.get(*uid) != Some(outcome));
        let changed = changed.map(|(uid, _)| uid.clone()).collect();
        *outcomes = now;
        changed
    }
}

/// Resolves all buffers before anything is planned or removed, so that a restart does not take their room away.
pub async fn prime(context: &Context) {
    let buffers = context.stores.buffers.state();
    if !buffers.is_empty() {
        context.cluster.update(|index| {
            index.expect_buffers();
            Effect::Changed
        });
    }
    for buffer in buffers {
        if let Err(error) = resolve::resolve(&buffer, context)
            .await
            .map(|resolved| put(&buffer, resolved.ok().as_ref(), context))
        {
            tracing::warn!(buffer = %buffer.name_any(), error = %chain(&error), "CapacityBuffer not resolved yet; its room may be given up until it is");
        }
    }
}

/// One pass over one buffer.
///
/// # Errors
/// When what it refers to cannot be read, or its status cannot be written.
pub async fn reconcile(
    buffer: Arc<CapacityBuffer>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let strategy = buffer.spec.provisioning_strategy.as_deref();
    if strategy.is_some_and(|it| it != ACTIVE_CAPACITY) {
        // It is some other controller's.
        put(&buffer, None, &context);
        return Ok(Action::requeue(RECHECK));
    }
    let resolved = resolve::resolve(&buffer, &context).await?;
    put(&buffer, resolved.as_ref().ok(), &context);
    let outcome = context.buffers.outcome(&buffer.uid().unwrap_or_default());
    let mut wanted = (*buffer).clone();
    wanted.status = Some(status::status(
        &buffer,
        &resolved,
        outcome.as_ref(),
        clock::now(),
    ));
    let namespace = buffer.namespace().unwrap_or_default();
    let api = Api::namespaced(context.client.clone(), &namespace);
    patch::write(&api, &*buffer, &wanted).await?;
    Ok(Action::requeue(RECHECK))
}

/// Hands the pods to the index, or takes them away.
fn put(buffer: &CapacityBuffer, resolved: Option<&resolve::Resolved>, context: &Context) {
    let key = key(buffer);
    let pods = resolved
        .map(|it| it.buffer.clone())
        .filter(|it| it.pods > 0);
    context
        .cluster
        .update(|index| match index.set_buffer(key, pods) {
            true => Effect::Demand,
            false => Effect::None,
        });
}

/// Forgets a buffer that was deleted.
pub fn remove(buffer: &CapacityBuffer, context: &Context) {
    put(buffer, None, context);
}

/// Forgets all buffers but these, after a list.
pub fn retain(buffers: &[CapacityBuffer], context: &Context) {
    let keys: BTreeSet<String> = buffers.iter().map(key).collect();
    context
        .cluster
        .update(|index| match index.retain_buffers(&keys) {
            true => Effect::Demand,
            false => Effect::None,
        });
}

fn key(buffer: &CapacityBuffer) -> String {
    format!(
        "{}/{}",
        buffer.namespace().unwrap_or_default(),
        buffer.name_any()
    )
}

/// Takes in where a plan put virtual pods: their nodes are not empty from now on, and buffers tell it. `created` has one
/// entry per planned claim.
pub fn remember(plan: &Plan, created: &[Option<NodeClaim>], context: &Context) {
    if !context.settings.gates.capacity_buffer {
        return;
    }
    let mut places: BTreeMap<PlacementTarget, u32> = BTreeMap::new();
    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    let mut outcome_of = |pod: &Pod, change: &mut dyn FnMut(&mut Outcome)| {
        if let Some(uid) = Buffer::uid_of(pod) {
            change(outcomes.entry(uid).or_default());
        }
    };
    for Placement { pod, node, .. } in plan.placements.iter().filter(|it| it.pod.is_virtual()) {
        *places.entry(node.clone()).or_default() += 1;
        outcome_of(pod, &mut |it| match node {
            PlacementTarget::Node(_) => it.on_nodes += 1,
            PlacementTarget::InFlight(_) => it.on_the_way += 1,
        });
    }
    for (planned, claim) in plan.new_claims.iter().zip(created) {
        for pod in planned.pods.iter().filter(|it| it.is_virtual()) {
            if let Some(claim) = claim {
                let target = PlacementTarget::InFlight(claim.name_any().into());
                *places.entry(target).or_default() += 1;
            }
            outcome_of(pod, &mut |it| it.on_the_way += 1);
        }
    }
    for group in &plan.unschedulable {
        for pod in group.pods.iter().filter(|it| it.is_virtual()) {
            outcome_of(pod, &mut |it| {
                it.without_place += 1;
                it.reason.get_or_insert_with(|| group.reason.to_string());
            });
        }
    }
    context
        .cluster
        .update(|index| match index.set_buffer_places(places) {
            true => Effect::Changed,
            false => Effect::None,
        });
    let changed = context.buffers.replace(outcomes);
    for buffer in context.stores.buffers.state() {
        if buffer.uid().is_some_and(|uid| changed.contains(&uid)) {
            let namespace = buffer.namespace().unwrap_or_default();
            let reference = ObjectRef::new(&buffer.name_any()).within(&namespace);
            context.buffers.trigger.send(&reference);
        }
    }
}
