//! Counting: what is there, and what a crash has done to it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::rig::World;

const LAUNCH_GROUP: &str = "karpenter.alibabacloud.com/launch-group";
const LAUNCH_SIZE: &str = "karpenter.alibabacloud.com/launch-size";
const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
const NODE_POOL: &str = "karpenter.sh/nodepool";

/// How many of each kind a trial has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    instances: usize,
    claims: usize,
    nodes: usize,
    pods: usize,
    bound: usize,
}

impl Sight {
    pub(crate) fn of(world: &World, run: &str) -> Self {
        let count = |list: &[Value]| list.iter().filter(|it| is_of_run(it, run)).count();
        Self {
            instances: alive(&world.instances)
                .filter(|it| it["tags"][NODE_POOL] == run)
                .count(),
            claims: count(&world.claims),
            nodes: count(&world.nodes),
            pods: count(&world.pods),
            bound: bound(world, run),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let Self {
            instances,
            claims,
            nodes,
            pods,
            bound,
        } = self;
        json!({"instances": instances, "claims": claims, "nodes": nodes, "pods": pods, "bound": bound})
    }
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instances,
            claims,
            nodes,
            pods,
            bound,
        } = self;
        write!(
            f,
            "{instances} instances, {claims} claims, {nodes} nodes, {bound}/{pods} pods"
        )
    }
}

/// What must not be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Harm {
    /// Instances beyond the first that were ever launched for one claim.
    pub(crate) double: u64,
    /// Instances that run and that no claim names.
    pub(crate) leaked: u64,
    /// Pods without a node, and claims whose instance does not run.
    pub(crate) lost: u64,
}

impl Harm {
    pub(crate) fn of(world: &World, run: &str, pods: usize) -> Self {
        let claims = world.claims.iter().filter(|it| is_of_run(it, run));
        let named: BTreeSet<&str> = claims.clone().filter_map(instance_of).collect();
        let all_named: BTreeSet<&str> = world.claims.iter().filter_map(instance_of).collect();
        let running: BTreeSet<&str> = alive(&world.instances)
            .filter_map(|it| it["id"].as_str())
            .collect();
        let dead = claims.filter(|it| instance_of(it).is_none()).count()
            + named.difference(&running).count();
        let missing = pods.saturating_sub(bound(world, run));
        Self {
            double: doubles(world),
            leaked: running.difference(&all_named).count() as u64,
            lost: (dead + missing) as u64,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Doubles and leaks are counted over all trials so far, so the latest count is the sum.
        self.double = self.double.max(other.double);
        self.leaked = self.leaked.max(other.leaked);
        self.lost += other.lost;
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "double {}, leaked {}, lost {}",
            self.double, self.leaked, self.lost
        )
    }
}

/// Instances that were launched for a claim that had one: of one name, or of a group of which more were launched than it
/// has members.
fn doubles(world: &World) -> u64 {
    let mut per_claim: BTreeMap<&str, u64> = BTreeMap::new();
    let mut per_group: BTreeMap<&str, u64> = BTreeMap::new();
    for tags in world.instances.iter().map(|it| &it["tags"]) {
        if let Some(claim) = tags[NODE_CLAIM].as_str() {
            *per_claim.entry(claim).or_default() += 1;
        }
        if let Some(group) = tags[LAUNCH_GROUP].as_str() {
            *per_group.entry(group).or_default() += 1;
        }
    }
    let of_claims: u64 = per_claim.values().map(|count| count - 1).sum();
    let of_groups: u64 = per_group
        .into_iter()
        .map(|(group, count)| count.saturating_sub(size(world, group)))
        .sum();
    of_claims.max(of_groups)
}

/// How many claims a group was frozen with. Of one whose claims are all gone nothing is known any more but that it had one.
fn size(world: &World, group: &str) -> u64 {
    let annotations = world.claims.iter().map(|it| &it["metadata"]["annotations"]);
    let mut sizes = annotations
        .filter(|it| it[LAUNCH_GROUP] == group)
        .filter_map(|it| it[LAUNCH_SIZE].as_str()?.parse().ok());
    match sizes.next() {
        Some(size) => size,
        None if group.starts_with("g-") => u64::MAX,
        None => 1,
    }
}

/// Whether an object of the cluster belongs to the trial.
pub(crate) fn is_of_run(object: &Value, run: &str) -> bool {
    object["metadata"]["labels"]["run"] == run
}

/// Instances that the account pays for.
pub(crate) fn alive(instances: &[Value]) -> impl Iterator<Item = &Value> {
    instances.iter().filter(|it| it["status"] != "Gone")
}

fn instance_of(claim: &Value) -> Option<&str> {
    let provider_id = claim["status"]["providerID"].as_str()?;
    provider_id.rsplit_once('.').map(|(_, id)| id)
}

fn bound(world: &World, run: &str) -> usize {
    let nodes: BTreeSet<&str> = world
        .nodes
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    let is_bound = |pod: &&Value| {
        is_of_run(pod, run)
            && pod["metadata"]["deletionTimestamp"].is_null()
            && pod["spec"]["nodeName"]
                .as_str()
                .is_some_and(|node| nodes.contains(node))
    };
    world.pods.iter().filter(is_bound).count()
}

/// Whether nothing is left to happen in the trial.
pub(crate) fn is_settled(world: &World, run: &str, pods: usize) -> bool {
    let ours = |list: &[Value]| -> Vec<Value> {
        list.iter()
            .filter(|it| is_of_run(it, run))
            .cloned()
            .collect()
    };
    let (claims, nodes, all_pods) = (ours(&world.claims), ours(&world.nodes), ours(&world.pods));
    let is_ready = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    let stays = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
    let is_fine = |list: &[Value]| list.iter().all(|it| stays(it) && is_ready(it));
    is_fine(&claims)
        && is_fine(&nodes)
        && claims.len() == nodes.len()
        && all_pods.len() == pods
        && bound(world, run) == pods
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(instance: &str) -> Value {
        json!({"metadata": {"labels": {"run": "a"}}, "status": {"providerID": format!("cn-hangzhou.{instance}")}})
    }

    fn instance(id: &str, group: &str, status: &str) -> Value {
        json!({"id": id, "status": status, "tags": {LAUNCH_GROUP: group, NODE_POOL: "a"}})
    }

    #[test]
    fn a_second_launch_for_one_claim_is_counted_even_when_it_is_gone_again() {
        let world = World {
            instances: vec![
                instance("i-1", "g", "Running"),
                instance("i-2", "g", "Gone"),
            ],
            claims: vec![claim("i-1")],
            ..World::default()
        };

        assert_eq!(
            Harm::of(&world, "a", 0),
            Harm {
                double: 1,
                leaked: 0,
                lost: 0
            }
        );
    }

    #[test]
    fn a_group_has_as_many_instances_as_members_and_one_more_is_a_double() {
        let mut member = claim("i-1");
        member["metadata"]["annotations"] = json!({LAUNCH_GROUP: "g-1", LAUNCH_SIZE: "2"});
        let mut world = World {
            instances: vec![
                instance("i-1", "g-1", "Running"),
                instance("i-2", "g-1", "Gone"),
            ],
            claims: vec![member],
            ..World::default()
        };
        assert_eq!(Harm::of(&world, "a", 0).double, 0);

        world.instances.push(instance("i-3", "g-1", "Gone"));
        assert_eq!(Harm::of(&world, "a", 0).double, 1);
        world.instances.pop();
        for instance in &mut world.instances {
            instance["tags"][NODE_CLAIM] = json!("general-1");
        }
        assert_eq!(Harm::of(&world, "a", 0).double, 1);
    }

    #[test]
    fn instances_without_claims_leak_and_claims_without_instances_are_lost_and_so_are_pods() {
        let world = World {
            instances: vec![instance("i-1", "g", "Running")],
            claims: vec![claim("i-9")],
            ..World::default()
        };

        assert_eq!(
            Harm::of(&world, "a", 2),
            Harm {
                double: 0,
                leaked: 1,
                lost: 3
            }
        );
    }
}
