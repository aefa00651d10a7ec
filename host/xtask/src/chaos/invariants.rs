//! What must hold at every moment, judged from outside: by what the API server and the cloud show. Pure.
//!
//! Nothing of the controller is used here, on purpose: a rule that it understands wrongly must not be wrong twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::guards::Heard;
use super::stage::{GUARD_PODS, GUARDS, LIMIT_CPU, STEADY, WILD};
use crate::crash::tally::alive;
use crate::rig::World;

const NODE_POOL: &str = "karpenter.sh/nodepool";
/// The tag of a machine, which is the name of its claim.
const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// The tag of a machine and the annotation of its claim, which is written before the machine is asked for.
const LAUNCH_GROUP: &str = "karpenter.alibabacloud.com/launch-group";
const COMMAND: &str = "karpenter.alibabacloud.com/disruption-command";
/// A machine may be without a claim for the controller's grace (20 s here), for a look at the cloud that failed a few times,
/// and for the outages that lie within.
const UNCLAIMED_MAX: Duration = Duration::from_secs(100);
/// Who launches may not have held the lease for this long: the lease is looked at less often than launches happen.
const LEASE_SLACK: SignedDuration = SignedDuration::from_secs(2);

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Breach {
    pub(super) kind: &'static str,
    pub(super) what: String,
}

impl Breach {
    pub(super) fn to_json(&self) -> Value {
        json!({"kind": self.kind, "what": self.what})
    }
}

/// The cluster and the cloud at one moment, and what we did to them.
#[derive(Debug, Default)]
pub(super) struct Sight {
    pub(super) world: World,
    /// Pods named by the lease, with the time of the look.
    pub(super) holder: Option<String>,
    /// Launches that each controller asked for, since its start.
    pub(super) launches: BTreeMap<String, Vec<Timestamp>>,
    /// Machines that we took back.
    pub(super) taken: BTreeSet<String>,
}

/// What was seen so far, and what was wrong with it.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    breaches: BTreeSet<Breach>,
    /// The machine that was first seen with a claim's name.
    first_of: BTreeMap<String, String>,
    /// Machines without a claim, and since when.
    unclaimed: BTreeMap<String, Timestamp>,
    gone: BTreeSet<String>,
    /// Launches that a claim was ever seen with.
    recorded: BTreeSet<String>,
    /// Machines of no such launch, at the last look.
    unrecorded: BTreeSet<String>,
    /// Guard Deployments that have had all their pods.
    complete: BTreeSet<String>,
    /// The guards' pods by uid, as far as was heard.
    guards: BTreeMap<String, Value>,
    holders: Vec<(Timestamp, Option<String>)>,
    /// Launches that were judged.
    judged: BTreeMap<String, usize>,
}

impl Invariants {
    pub(super) fn breaches(&self) -> &BTreeSet<Breach> {
        &self.breaches
    }

    /// Looks at one moment. Moments must come in order.
    pub(super) fn see(&mut self, sight: &Sight, now: Timestamp) {
        self.one_machine_per_claim(&sight.world);
        self.no_machine_without_claim(&sight.world, now);
        self.no_machine_without_record(&sight.world);
        self.no_machine_taken_from_its_claim(sight);
        self.one_node_of_the_budget(&sight.world);
        self.limits_hold(&sight.world);
        self.only_the_leader_launches(sight, now);
    }

    /// Judges what was heard of the guards between two looks, in its order.
    pub(super) fn hear(&mut self, news: Heard) {
        match news {
            Heard::All(pods) => {
                let by_uid = |pod: Value| Some((uid_of(&pod)?, pod));
                self.guards = pods.into_iter().filter_map(by_uid).collect();
            }
            Heard::Changed(pod) => self.guards.extend(uid_of(&pod).map(|uid| (uid, pod))),
            Heard::Gone(pod) => {
                if let Some(uid) = uid_of(&pod) {
                    self.guards.remove(&uid);
                }
            }
        }
        self.guards_stand();
    }

    fn breach(&mut self, kind: &'static str, what: String) {
        self.breaches.insert(Breach { kind, what });
    }

    fn one_machine_per_claim(&mut self, world: &World) {
        for machine in &world.instances {
            let (Some(id), Some(claim)) =
                (text(&machine["id"]), text(&machine["tags"][NODE_CLAIM]))
            else {
                continue;
            };
            let first = self
                .first_of
                .entry(claim.to_owned())
                .or_insert_with(|| id.to_owned());
            if first != id {
                let what = format!("claim {claim} got {first} and {id}");
                self.breach("double", what);
            }
        }
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for claim in &world.claims {
            let (Some(id), Some(name)) = (machine_of(claim), name_of(claim)) else {
                continue;
            };
            if let Some(other) = owners.insert(id, name) {
                let what = format!("machine {id} belongs to {other} and {name}");
                self.breach("shared", what);
            }
        }
    }

    fn no_machine_without_claim(&mut self, world: &World, now: Timestamp) {
        let claimed: BTreeSet<&str> = world.claims.iter().filter_map(machine_of).collect();
        let ids = alive(&world.instances).filter_map(|it| text(&it["id"]));
        let unclaimed: BTreeSet<&str> = ids.filter(|id| !claimed.contains(id)).collect();
        self.unclaimed
            .retain(|id, _| unclaimed.contains(id.as_str()));
        for id in unclaimed {
            let since = *self.unclaimed.entry(id.to_owned()).or_insert(now);
            if now.duration_since(since).unsigned_abs() > UNCLAIMED_MAX {
                let what = format!("machine {id} has had no claim since {since}");
                self.breach("leaked", what);
            }
        }
    }

    /// Machines are read before claims, so two looks are more than enough for what was written before the launch.
    fn no_machine_without_record(&mut self, world: &World) {
        let groups = world.claims.iter();
        let groups = groups.filter_map(|it| text(&it["metadata"]["annotations"][LAUNCH_GROUP]));
        self.recorded.extend(groups.map(str::to_owned));
        let is_unrecorded = |machine: &&Value| {
            text(&machine["tags"][LAUNCH_GROUP]).is_some_and(|it| !self.recorded.contains(it))
        };
        let found = alive(&world.instances).filter(is_unrecorded);
        let found: BTreeSet<String> = found
            .filter_map(|it| text(&it["id"]).map(str::to_owned))
            .collect();
        let again: Vec<String> = found.intersection(&self.unrecorded).cloned().collect();
        self.unrecorded = found;
        for id in again {
            let what = format!("no claim was seen with the launch of machine {id}");
            self.breach("unrecorded", what);
        }
    }

    fn no_machine_taken_from_its_claim(&mut self, sight: &Sight) {
        let stays = |claim: &&Value| claim["metadata"]["deletionTimestamp"].is_null();
        let staying: BTreeSet<&str> = sight
            .world
            .claims
            .iter()
            .filter(stays)
            .flat_map(|claim| [name_of(claim), machine_of(claim)])
            .flatten()
            .collect();
        let mut lost = Vec::new();
        for machine in &sight.world.instances {
            let Some(id) = text(&machine["id"]).filter(|_| machine["status"] == "Gone") else {
                continue;
            };
            if !self.gone.insert(id.to_owned()) || sight.taken.contains(id) {
                continue;
            }
            let claim = text(&machine["tags"][NODE_CLAIM]).unwrap_or_default();
            if staying.contains(claim) || staying.contains(id) {
                lost.push(format!("machine {id} was deleted under its claim {claim}"));
            }
        }
        for what in lost {
            self.breach("deleted", what);
        }
    }

    /// The steady pool's budget is one node, and we delete none of its claims.
    fn one_node_of_the_budget(&mut self, world: &World) {
        let leaves = |claim: &&Value| {
            is_of(claim, STEADY)
                && !claim["metadata"]["deletionTimestamp"].is_null()
                && !claim["status"]["nodeName"].is_null()
        };
        let leaving: Vec<&str> = world
            .claims
            .iter()
            .filter(leaves)
            .filter_map(name_of)
            .collect();
        if leaving.len() > 1 {
            let what = format!("{} leave at once", leaving.join(" and "));
            self.breach("budget", what);
        }
    }

    /// Their budgets let one pod of each be away, and we take none.
    fn guards_stand(&mut self) {
        for guard in 0..GUARDS {
            let name = format!("guard-{guard}");
            let is_up = |pod: &&Value| {
                pod["metadata"]["labels"]["app"] == name.as_str()
                    && pod["metadata"]["deletionTimestamp"].is_null()
                    && is_true(pod, "Ready")
            };
            let up = self.guards.values().filter(is_up).count();
            if up == GUARD_PODS {
                self.complete.insert(name.clone());
            }
            if up + 1 < GUARD_PODS && self.complete.contains(&name) {
                let what = format!("{name} had {up} of {GUARD_PODS} pods");
                self.breach("podBudget", what);
            }
        }
    }

    /// What leaves or is being replaced may overlap with what comes for it.
    fn limits_hold(&mut self, world: &World) {
        let counts = |claim: &&Value| {
            is_of(claim, WILD)
                && claim["metadata"]["deletionTimestamp"].is_null()
                && claim["metadata"]["annotations"][COMMAND].is_null()
        };
        let cpus: u64 = world.claims.iter().filter(counts).map(cpus_of).sum();
        if cpus > LIMIT_CPU {
            let what = format!("{cpus} CPUs, and the limit is {LIMIT_CPU}");
            self.breach("limit", what);
        }
    }

    fn only_the_leader_launches(&mut self, sight: &Sight, now: Timestamp) {
        self.holders.push((now, sight.holder.clone()));
        for (name, launches) in &sight.launches {
            let judged = self.judged.entry(name.clone()).or_default();
            let new: Vec<Timestamp> = launches.iter().skip(*judged).copied().collect();
            *judged = launches.len();
            for at in new {
                if let Some(holder) = other_holder(&self.holders, name, at) {
                    let what = format!("{name} launched at {at}, and {holder} held the lease");
                    self.breaches.insert(Breach {
                        kind: "staleLaunch",
                        what,
                    });
                }
            }
        }
    }
}

/// Who held the lease all the time around `at`, if that was somebody else.
fn other_holder(
    holders: &[(Timestamp, Option<String>)],
    name: &str,
    at: Timestamp,
) -> Option<String> {
    let around: Vec<&Option<String>> = holders
        .iter()
        .filter(|(time, _)| (at - LEASE_SLACK..=at).contains(time))
        .map(|(_, holder)| holder)
        .collect();
    let is_others = |holder: &&Option<String>| {
        holder
            .as_deref()
            .is_some_and(|it| !it.is_empty() && it != name)
    };
    if around.len() < 2 || !around.iter().all(is_others) {
        return None;
    }
    around.last().and_then(|it| (*it).clone())
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

fn uid_of(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn name_of(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str()
}

fn is_of(claim: &Value, pool: &str) -> bool {
    claim["metadata"]["labels"][NODE_POOL] == pool
}

fn machine_of(claim: &Value) -> Option<&str> {
    let provider_id = claim["status"]["providerID"].as_str()?;
    provider_id.rsplit_once('.').map(|(_, id)| id)
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|it| it["type"] == kind && it["status"] == "True")
}

/// By the size in the type's name; a claim without a machine counts for nothing yet.
fn cpus_of(claim: &Value) -> u64 {
    let kind = claim["metadata"]["labels"]["node.kubernetes.io/instance-type"].as_str();
    let size = kind
        .and_then(|kind| kind.rsplit('.').next())
        .unwrap_or_default();
    match size {
        "large" => 2,
        "xlarge" => 4,
        "" => 0,
        other => {
            other
                .strip_suffix("xlarge")
                .and_then(|it| it.parse::<u64>().ok())
                .unwrap_or(0)
                * 4
        }
    }
}

/// What is not as it must be when all trouble is over; empty when everything has come to its end.
pub(super) fn unsettled(world: &World, explained: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let nodes: BTreeSet<&str> = world.nodes.iter().filter_map(name_of).collect();
    let machines: BTreeSet<&str> = alive(&world.instances)
        .filter_map(|it| text(&it["id"]))
        .collect();
    for claim in &world.claims {
        let name = name_of(claim).unwrap_or_default();
        let is_whole = claim["metadata"]["deletionTimestamp"].is_null()
            && is_true(claim, "Ready")
            && machine_of(claim).is_some_and(|id| machines.contains(id))
            && text(&claim["status"]["nodeName"]).is_some_and(|node| nodes.contains(node));
        if !is_whole {
            wrong.push(format!("claim {name} is not whole"));
        }
    }
    if machines.len() != world.claims.len() || nodes.len() != world.claims.len() {
        wrong.push(format!(
            "{} machines, {} claims, {} nodes",
            machines.len(),
            world.claims.len(),
            nodes.len()
        ));
    }
    for pod in &world.pods {
        let name = name_of(pod).unwrap_or_default();
        let is_bound = text(&pod["spec"]["nodeName"]).is_some_and(|node| nodes.contains(node));
        let uid = text(&pod["metadata"]["uid"]).unwrap_or_default();
        if pod["metadata"]["deletionTimestamp"].is_null() && !is_bound && !explained.contains(uid) {
            wrong.push(format!("pod {name} has neither a node nor an explanation"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
