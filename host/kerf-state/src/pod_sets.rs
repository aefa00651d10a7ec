//! What a snapshot wants of all pods, kept as they come and go: nobody walks through a large fleet for the few that count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_core::pod::PodPhase;

use crate::convert::pod::PodEntry;
use crate::counted::Counted;
use crate::problem::ObjectKey;

/// Kinds of pods of the index. Keys and uids are shared with the pods.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PodSets {
    /// Those that wait for a node.
    waiting: BTreeSet<ObjectKey>,
    /// When kube-scheduler last said anything about each.
    verdicts: Counted<Timestamp>,
    /// Live pods of DaemonSets, by the DaemonSet's uid. The last of each set is the newest, by name the first of these.
    daemons: BTreeMap<Arc<str>, BTreeSet<(Timestamp, Reverse<ObjectKey>)>>,
}

impl PodSets {
    /// The pods that wait for a node, by namespace and name.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &ObjectKey> {
        self.waiting.iter()
    }

    /// When kube-scheduler last said anything about any pod.
    pub(crate) fn last_verdict(&self) -> Option<Timestamp> {
        self.verdicts.most()
    }

    /// The newest live pod of the DaemonSet with this uid.
    pub(crate) fn newest_daemon(&self, uid: &str) -> Option<&ObjectKey> {
        let (_, Reverse(newest)) = self.daemons.get(uid)?.last()?;
        Some(newest)
    }

    /// Takes in a pod.
    pub(crate) fn add(&mut self, key: &ObjectKey, entry: &PodEntry) {
        if waits(entry) {
            self.waiting.insert(key.clone());
        }
        if let Some(at) = entry.verdict_at {
            self.verdicts.add(at);
        }
        if let Some(uid) = live_daemon(entry) {
            let pods = self.daemons.entry(Arc::clone(uid)).or_default();
            pods.insert((entry.pod.created_at, Reverse(key.clone())));
        }
    }

    /// Forgets a pod that was taken in like this.
    pub(crate) fn remove(&mut self, key: &ObjectKey, entry: &PodEntry) {
        if waits(entry) {
            self.waiting.remove(key);
        }
        if let Some(at) = entry.verdict_at {
            self.verdicts.remove(at);
        }
        if let Some(uid) = live_daemon(entry)
            && let Some(pods) = self.daemons.get_mut(uid)
        {
            pods.remove(&(entry.pod.created_at, Reverse(key.clone())));
            if pods.is_empty() {
                self.daemons.remove(uid);
            }
        }
    }
}

impl<'a> FromIterator<(&'a ObjectKey, &'a PodEntry)> for PodSets {
    fn from_iter<I: IntoIterator<Item = (&'a ObjectKey, &'a PodEntry)>>(pods: I) -> Self {
        let mut sets = Self::default();
        for (key, entry) in pods {
            sets.add(key, entry);
        }
        sets
    }
}

fn waits(entry: &PodEntry) -> bool {
    entry.node.is_none() && entry.waiting.is_some()
}

/// The uid of its DaemonSet, if it tells what the DaemonSet's next pod asks for.
fn live_daemon(entry: &PodEntry) -> Option<&Arc<str>> {
    let is_usable = entry.pod.phase == PodPhase::Active && entry.pod.invalid.is_none();
    entry.daemon_set().filter(|_| is_usable)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as k8s;
    use serde_json::{from_value, json};

    use super::*;
    use crate::cluster::Cluster;

    /// `created` in seconds of a minute; of a DaemonSet where it has a node.
    fn pod(name: &str, created: u32, node: Option<&str>, phase: &str) -> k8s::Pod {
        let owner = node.map(|_| {
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agents", "controller": true}])
        });
        let verdict = format!("2026-11-30T10:01:{created:02}Z");
        let (status, reason) = match node {
            Some(_) => ("True", None),
            None => ("False", Some("Unschedulable")),
        };
        from_value(json!({
            "metadata": {
                "namespace": "shop", "name": name, "uid": format!("uid of {name}"), "ownerReferences": owner,
                "creationTimestamp": format!("2026-11-30T10:00:{created:02}Z"),
            },
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": [{
                "type": "PodScheduled", "status": status, "reason": reason, "lastTransitionTime": verdict,
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn sets_follow_pods_that_come_change_end_and_go() {
        let mut cluster = Cluster::new();
        let newest = |cluster: &Cluster| {
            let newest = cluster.sets.newest_daemon("agents");
            newest.map(|key| key.name.to_string())
        };
        let waiting = |cluster: &Cluster| -> Vec<String> {
            cluster
                .sets
                .waiting()
                .map(|key| key.name.to_string())
                .collect()
        };
        let seen: Vec<_> = [
            pod("web", 1, None, "Pending"),
            pod("agent-b", 2, Some("node-1"), "Running"),
            pod("agent-a", 2, Some("node-2"), "Running"),
            pod("agent-c", 3, Some("node-3"), "Running"),
            pod("agent-c", 3, Some("node-3"), "Failed"),
            pod("web", 1, Some("node-1"), "Running"),
            // Others of these names.
            pod("agent-a", 0, Some("node-4"), "Running"),
            pod("web", 4, None, "Pending"),
        ]
        .iter()
        .map(|step| {
            cluster.apply(step);
            assert_eq!(cluster.sets, cluster.pods.iter().collect::<PodSets>());
            (waiting(&cluster), newest(&cluster))
        })
        .collect();

        let some = |name: &str| Some(name.to_owned());
        let web = || vec!["web".to_owned()];
        assert_eq!(seen[0], (web(), None));
        assert_eq!(seen[1], (web(), some("agent-b")));
        assert_eq!(seen[2], (web(), some("agent-a")), "of two as new the first");
        assert_eq!(seen[3], (web(), some("agent-c")));
        assert_eq!(seen[4], (web(), some("agent-a")), "the newest has failed");
        assert_eq!(seen[5].0, [""; 0], "bound");
        assert_eq!(seen[7], (web(), some("agent-b")));

        cluster.repack();
        assert_eq!(cluster.sets, cluster.pods.iter().collect::<PodSets>());
        cluster.reset::<k8s::Pod>([]);
        assert_eq!(cluster.sets, PodSets::default());
    }
}
