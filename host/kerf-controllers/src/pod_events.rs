//! `status.lastPodEventTime`: when a pod last came to a claim's node or left it. consolidateAfter counts from it.
//!
//! Only real changes count: the first list after a restart says nothing about when its pods came, so it moves no
//! clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::hash_of::hash_of;
use crate::stages::Stages;
use crate::{clock, patch};

/// An event waits this long for the next, and for another write of the claim that takes it along: Consolidatable goes with the
/// first event and comes after the last. Writes per claim are as far apart (Karpenter: same, but the first event is written
/// at once). Who decides in this process knows every event without that.
const WRITE_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// How often waiting events are looked at.
const TICK: Duration = Duration::from_secs(1);
/// Node names that wait to be noted; one entry per event of a pod.
pub const BUFFER: usize = 4096;

/// Something came to a node or left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEvent {
    /// The Node's name.
    pub node: String,
    /// When it was seen.
    pub at: Timestamp,
}

/// What of a pod's life a node notices, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Bound,
    Terminating,
    Finished,
}

/// Remembers the stage of every bound pod.
#[derive(Debug, Default)]
pub struct Tracker {
    stages: Stages,
    was_listed: bool,
}

impl Tracker {
    /// The node that must be noted because of this change, if any.
    pub fn observe(&mut self, pod: &Pod, is_deleted: bool) -> Option<String> {
        let (key, stage, node) = place(pod)?;
        if is_deleted {
            // A pod that was leaving or had finished was noted then (Karpenter: same). One that is gone without a
            // word, by a forced deletion, is noted now.
            let before = self.stages.remove(key);
            return before
                .is_none_or(|before| before == Stage::Bound as u8)
                .then_some(node);
        }
        let before = self.stages.insert(key, stage as u8);
        before
            .is_none_or(|before| before < stage as u8)
            .then_some(node)
    }

    /// As `observe` for a whole list; the first one is where the memory starts.
    pub fn reset(&mut self, pods: &[Pod]) -> Vec<String> {
        let before = std::mem::take(&mut self.stages);
        let mut noted = Vec::new();
        for (key, stage, node) in pods.iter().filter_map(place) {
            self.stages.insert(key, stage as u8);
            if self.was_listed && before.get(key).is_none_or(|before| before < stage as u8) {
                noted.push(node);
            }
        }
        self.was_listed = true;
        noted
    }
}

/// Identity, stage and node of a bound pod that is not a daemon's.
fn place(pod: &Pod) -> Option<(u64, Stage, String)> {
    let node = pod
        .spec
        .as_ref()?
        .node_name
        .clone()
        .filter(|name| !name.is_empty())?;
    if pod
        .owner_references()
        .iter()
        .any(|owner| owner.kind == "DaemonSet" || owner.kind == "Node")
    {
        return None;
    }
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let stage = match phase {
        "Succeeded" | "Failed" => Stage::Finished,
        _ if pod.metadata.deletion_timestamp.is_some() => Stage::Terminating,
        _ => Stage::Bound,
    };
    Some((hash_of(&pod.uid()), stage, node))
}

/// Events of one node that are not written yet.
#[derive(Debug, Clone, Copy)]
struct Unwritten {
    first: Timestamp,
    last: Timestamp,
}

/// Writes what is noted until the process ends.
pub async fn run(mut events: mpsc::Receiver<PodEvent>, context: Arc<Context>) {
    let mut waiting: BTreeMap<String, Unwritten> = BTreeMap::new();
    let mut ticks = interval(TICK);
    loop {
        tokio::select! {
            event = events.recv() => {
                let Some(PodEvent { node, at }) = event else { return };
                let known = waiting.entry(node).or_insert(Unwritten { first: at, last: at });
                known.last = known.last.max(at);
            }
            _ = ticks.tick() => write_due(&mut waiting, &context).await,
        }
    }
}

async fn write_due(waiting: &mut BTreeMap<String, Unwritten>, context: &Context) {
    let now = clock::now();
    let is_due = |it: &Unwritten| now.duration_since(it.first) >= WRITE_PAUSE;
    let due = waiting.extract_if(.., |_, it| is_due(it));
    for (node, events) in due.collect::<Vec<_>>() {
        let Some(claim) = claim_on(&node, context) else {
            continue;
        };
        if context.stores.nodeclaims.is_behind(&claim) {
            waiting.insert(node, events);
            continue;
        }
        let written = claim.status.as_ref().and_then(|it| it.last_pod_event_time);
        if written >= Some(kerf_api::time::whole_seconds(events.last)) {
            continue;
        }
        match write(&claim, events.last, context).await {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                if !error.is_conflict() {
                    tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot note the pod event; tried again");
                }
                waiting.insert(node, events);
            }
        }
    }
}

fn claim_on(node: &str, context: &Context) -> Option<Arc<NodeClaim>> {
    let node = context.stores.nodes.get(node)?;
    context.claim_of(&node)
}

async fn write(claim: &NodeClaim, at: Timestamp, context: &Context) -> Result<(), Error> {
    let mut wanted = claim.clone();
    wanted.status.get_or_insert_default().last_pod_event_time =
        Some(kerf_api::time::whole_seconds(at));
    let written = patch::write(&Api::all(context.client.clone()), claim, &wanted).await?;
    context.stores.nodeclaims.note_written(&written);
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn pod(uid: &str, phase: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.uid = Some(uid.to_owned());
        pod.spec = Some(PodSpec {
            node_name: Some("node-1".to_owned()),
            ..PodSpec::default()
        });
        pod.status = Some(PodStatus {
            phase: Some(phase.to_owned()),
            ..PodStatus::default()
        });
        pod
    }

    #[test]
    fn a_restart_moves_no_clock() {
        let mut tracker = Tracker::default();

        assert!(tracker.reset(&[pod("a", "Running")]).is_empty());
        assert_eq!(tracker.observe(&pod("a", "Running"), false), None);
    }

    #[test]
    fn coming_finishing_and_leaving_are_noted_once_each() {
        let mut tracker = Tracker::default();
        tracker.reset(&[]);

        assert!(tracker.observe(&pod("a", "Pending"), false).is_some());
        assert!(tracker.observe(&pod("a", "Running"), false).is_none());
        assert!(tracker.observe(&pod("a", "Succeeded"), false).is_some());
        assert!(tracker.observe(&pod("a", "Succeeded"), true).is_none());
    }

    #[test]
    fn leaving_counts_when_it_begins_and_not_again_when_it_ends() {
        let mut tracker = Tracker::default();
        tracker.reset(&[pod("a", "Running"), pod("b", "Running")]);
        let mut leaving = pod("a", "Running");
        leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));

        assert!(tracker.observe(&leaving, false).is_some());
        assert_eq!(tracker.observe(&leaving, true), None);
        assert!(tracker.observe(&pod("b", "Running"), true).is_some());
    }

    #[test]
    fn what_came_while_the_watch_was_broken_is_noted() {
        let mut tracker = Tracker::default();
        tracker.reset(&[]);

        assert_eq!(tracker.reset(&[pod("a", "Running")]), ["node-1"]);
    }
}
