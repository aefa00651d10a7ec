//! What the cluster and the cloud show at one moment, reduced to what a person wants to see.

use anyhow::{Context, Result};
use serde_json::Value;

use super::api_server;
use super::stack::Stack;

#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    pub(super) pods: Vec<Pod>,
    /// What the Deployments ask for, which may be more than there is yet.
    pub(super) pods_wanted: u64,
    pub(super) claims: Vec<Claim>,
    pub(super) nodes: Vec<Node>,
    pub(super) instances: Vec<Instance>,
    /// NodePools and ECSNodeClasses that are not ready, with the reason.
    pub(super) unready: Vec<String>,
    /// What kerf said about objects, oldest first.
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) node: Option<String>,
    pub(super) is_running: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) stage: Stage,
    /// Why it is not further, where it says so.
    pub(super) message: String,
    pub(super) instance_id: Option<String>,
    pub(super) node: Option<String>,
}

/// How far a NodeClaim has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    #[default]
    Planned,
    Launched,
    Registered,
    Ready,
    Deleting,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) is_ready: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) status: String,
    pub(super) price_per_hour: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) time: String,
    pub(super) uid: String,
    pub(super) is_warning: bool,
    /// `Pod web-1`
    pub(super) about: String,
    /// `Reason: message`
    pub(super) said: String,
}

impl Look {
    pub(super) fn take(stack: &Stack) -> Result<Self> {
        let list = |path: &str| stack.api.list(path);
        let claims = list("/apis/karpenter.sh/v1/nodeclaims")?;
        let mut unready: Vec<String> =
            list("/apis/karpenter.alibabacloud.com/v1alpha1/ecsnodeclasses")?
                .iter()
                .filter_map(unready_text)
                .collect();
        unready.extend(
            list("/apis/karpenter.sh/v1/nodepools")?
                .iter()
                .filter_map(unready_text),
        );
        let mut events: Vec<Event> = list("/api/v1/events")?
            .iter()
            .filter(|event| is_from_kerf(event))
            .map(event)
            .collect();
        events.sort();
        Ok(Self {
            pods: list("/api/v1/pods")?.iter().map(pod).collect(),
            pods_wanted: list("/apis/apps/v1/deployments")?
                .iter()
                .filter_map(|deployment| deployment["spec"]["replicas"].as_u64())
                .sum(),
            claims: claims.iter().map(claim).collect(),
            nodes: list("/api/v1/nodes")?.iter().map(node).collect(),
            instances: instances(&stack.sim_url)?,
            unready,
            events,
        })
    }

    pub(super) fn price_per_hour(&self) -> f64 {
        let prices = self
            .instances
            .iter()
            .map(|instance| instance.price_per_hour);
        // Not `sum`, which makes -0 of nothing.
        prices.fold(0.0, |sum, price| sum + price)
    }

    pub(super) fn pods_bound(&self) -> usize {
        self.pods.iter().filter(|pod| pod.node.is_some()).count()
    }

    pub(super) fn pods_on(&self, node: &str) -> usize {
        self.pods
            .iter()
            .filter(|pod| pod.node.as_deref() == Some(node))
            .count()
    }
}

/// ecs-sim's own view, for people and tests; the controller never sees it.
fn instances(sim_url: &str) -> Result<Vec<Instance>> {
    let path = "/_sim/state";
    let answer = api_server::answer(ureq::get(format!("{sim_url}{path}")).call(), path)?;
    let list = answer["instances"]
        .as_array()
        .context("ecs-sim shows no instances")?;
    let mut instances: Vec<Instance> = list.iter().map(instance).collect();
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(instances)
}

fn instance(object: &Value) -> Instance {
    Instance {
        id: text(object, "/id"),
        instance_type: text(object, "/instanceType"),
        zone: text(object, "/zone"),
        status: text(object, "/status"),
        price_per_hour: object["pricePerHour"].as_f64().unwrap_or(0.0),
    }
}

fn pod(object: &Value) -> Pod {
    Pod {
        name: text(object, "/metadata/name"),
        node: some_text(object, "/spec/nodeName"),
        is_running: text(object, "/status/phase") == "Running",
    }
}

fn claim(object: &Value) -> Claim {
    let label = |name: &str| {
        object["metadata"]["labels"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let stage = stage(object);
    Claim {
        name: text(object, "/metadata/name"),
        instance_type: label("node.kubernetes.io/instance-type"),
        zone: label("topology.kubernetes.io/zone"),
        stage,
        message: if stage == Stage::Ready {
            String::new()
        } else {
            waiting_for(object)
        },
        // "cn-hangzhou.i-…"
        instance_id: some_text(object, "/status/providerID")
            .map(|id| id.rsplit(['.', '/']).next().unwrap_or_default().to_owned()),
        node: some_text(object, "/status/nodeName"),
    }
}

fn stage(claim: &Value) -> Stage {
    let is_true =
        |kind: &str| condition(claim, kind).is_some_and(|found| found["status"] == "True");
    if some_text(claim, "/metadata/deletionTimestamp").is_some() {
        Stage::Deleting
    } else if is_true("Ready") {
        Stage::Ready
    } else if is_true("Registered") {
        Stage::Registered
    } else if is_true("Launched") {
        Stage::Launched
    } else {
        Stage::Planned
    }
}

/// The message of the first condition on a claim's way that is not true.
fn waiting_for(claim: &Value) -> String {
    let ways = ["Launched", "Registered", "Initialized"];
    let open = ways
        .iter()
        .filter_map(|kind| condition(claim, kind))
        .find(|found| found["status"] != "True");
    open.map(|found| text(found, "/message"))
        .unwrap_or_default()
}

fn node(object: &Value) -> Node {
    let is_ready = condition(object, "Ready").is_some_and(|found| found["status"] == "True");
    Node {
        name: text(object, "/metadata/name"),
        is_ready,
    }
}

fn unready_text(object: &Value) -> Option<String> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let kind = if kind.is_empty() {
        if object["spec"].get("template").is_some() {
            "NodePool"
        } else {
            "ECSNodeClass"
        }
        .to_owned()
    } else {
        kind
    };
    let Some(ready) = condition(object, "Ready") else {
        return Some(format!("{kind} {name} has no Ready yet"));
    };
    let (reason, message) = (text(ready, "/reason"), text(ready, "/message"));
    (ready["status"] != "True").then(|| format!("{kind} {name} is not ready: {reason}: {message}"))
}

fn is_from_kerf(event: &Value) -> bool {
    [
        text(event, "/reportingComponent"),
        text(event, "/source/component"),
    ]
    .iter()
    .any(|name| name == "kerf")
}

fn event(object: &Value) -> Event {
    let time = [
        "/eventTime",
        "/lastTimestamp",
        "/metadata/creationTimestamp",
    ]
    .iter()
    .find_map(|pointer| some_text(object, pointer))
    .unwrap_or_default();
    let (kind, name) = (
        text(object, "/involvedObject/kind"),
        text(object, "/involvedObject/name"),
    );
    let (reason, message) = (text(object, "/reason"), text(object, "/message"));
    Event {
        time,
        uid: text(object, "/metadata/uid"),
        is_warning: text(object, "/type") == "Warning",
        about: format!("{kind} {name}"),
        said: format!("{reason}: {message}"),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn some_text(object: &Value, pointer: &str) -> Option<String> {
    object
        .pointer(pointer)?
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn text(object: &Value, pointer: &str) -> String {
    some_text(object, pointer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_shows_how_far_it_is_and_what_it_waits_for() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"node.kubernetes.io/instance-type": "ecs.g7.large"}},
            "status": {
                "providerID": "cn-hangzhou.i-1",
                "conditions": [
                    {"type": "Launched", "status": "True"},
                    {"type": "Registered", "status": "Unknown", "message": "no node yet"},
                ],
            },
        });

        let claim = claim(&object);

        assert_eq!(claim.stage, Stage::Launched);
        assert_eq!(claim.message, "no node yet");
        assert_eq!(claim.instance_id.as_deref(), Some("i-1"));
    }

    #[test]
    fn a_pool_that_is_not_ready_says_why() {
        let pool = json!({
            "metadata": {"name": "default"}, "spec": {"template": {}},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotReady", "message": "no image"}]},
        });

        assert_eq!(
            unready_text(&pool).unwrap(),
            "NodePool default is not ready: NodeClassNotReady: no image"
        );
    }
}
