//! What the controller of a cluster said about an object: conditions, and its own events. Nothing is decided here.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::names::label;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_controllers::clock;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::api_server::{Rate, connect};
use crate::explain::args::{Explain, Kind};
use crate::explain::story::{Said, Story, ago};

/// A handful of requests.
const RATE: Rate = Rate {
    per_second: 20,
    burst: 30,
};
/// For all requests together; who asks at night wants to know sooner that nobody answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the controller signs its events with.
const CONTROLLER: &str = "kerf";
/// The latest events that are shown of an object.
const EVENTS_MAX: usize = 5;
const SILENCE: &str = "the controller has said nothing about it; API servers keep events for an hour. Hint: is kerf \
running, and has it the lease? (kubectl -n kerf-system get pods,leases)";

/// Asks the cluster.
///
/// # Errors
/// When the cluster cannot be asked or the object is not there.
pub(crate) fn tell(args: &Explain) -> Result<Story> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        let told = timeout(PATIENCE, ask(args)).await;
        told.map_err(|_| {
            anyhow!(
                "the API server did not answer within {} s",
                PATIENCE.as_secs()
            )
        })?
    })
}

async fn ask(args: &Explain) -> Result<Story> {
    // A second installer would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = connect(args.kubeconfig.as_deref(), RATE).await?;
    let cluster = Cluster {
        client,
        now: clock::now(),
    };
    let name = args.name.as_str();
    match args.kind {
        Kind::Pod => cluster.pod(&args.namespace, name).await,
        Kind::NodeClaim => cluster.claim(name).await,
        Kind::Node => cluster.node(name).await,
        Kind::NodePool => cluster.pool(name).await,
    }
}

struct Cluster {
    client: Client,
    now: Timestamp,
}

impl Cluster {
    async fn pod(&self, namespace: &str, name: &str) -> Result<Story> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pod = get(&api, name).await?;
        let events = self.events("Pod", Some(namespace), name).await?;
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let mut story = Story {
            object: format!("Pod {namespace}/{name}"),
            ..Story::default()
        };
        if let Some(node) = spec.node_name {
            story.state = format!("is on node {node}");
            story.events = events;
            story.related.push(self.node(&node).await?);
            return Ok(story);
        }
        story.state = "waits for a node".to_owned();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let refused = conditions.filter(|it| it.type_ == "PodScheduled" && it.status == "False");
        story.conditions = refused
            .map(|it| Said {
                what: "kube-scheduler".to_owned(),
                message: it.message.unwrap_or_default(),
                at: it.last_transition_time.as_ref().map(|time| time.0),
                ago: String::new(),
            })
            .collect();
        let target = events.first().and_then(|it| nominated(&it.message));
        match target {
            Some(Target::Claim(claim)) => story.related.extend(self.claim(claim).await.ok()),
            Some(Target::Node(node)) => story.related.extend(self.node(node).await.ok()),
            None => {}
        }
        story.events = events;
        story.say_silence();
        Ok(story)
    }

    async fn claim(&self, name: &str) -> Result<Story> {
        let claim: NodeClaim = get(&Api::all(self.client.clone()), name).await?;
        self.claim_story(&claim).await
    }

    async fn claim_story(&self, claim: &NodeClaim) -> Result<Story> {
        let name = claim.name_any();
        let known = [
            label::NODEPOOL,
            kerf_core::labels::INSTANCE_TYPE,
            kerf_core::labels::ZONE,
            kerf_core::labels::CAPACITY_TYPE,
        ];
        let mut parts: Vec<String> = known
            .iter()
            .filter_map(|key| claim.labels().get(*key).cloned())
            .collect();
        let node = claim.status.as_ref().and_then(|it| it.node_name.clone());
        parts.push(match node {
            Some(node) => format!("node {node}"),
            None => "no node yet".to_owned(),
        });
        if claim.metadata.deletion_timestamp.is_some() {
            parts.push("is being removed".to_owned());
        }
        let mut story = Story {
            object: format!("NodeClaim {name}"),
            state: parts.join(", "),
            conditions: self.conditions(claim.conditions()),
            events: self.events("NodeClaim", None, &name).await?,
            ..Story::default()
        };
        story.say_silence();
        Ok(story)
    }

    async fn node(&self, name: &str) -> Result<Story> {
        let node: Node = get(&Api::all(self.client.clone()), name).await?;
        let own_id = node.spec.as_ref().and_then(|it| it.provider_id.clone());
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let claims = claims.list(&ListParams::default()).await;
        let claims = claims.context("cannot list NodeClaims")?.items;
        let claim = claims.iter().find(|it| {
            let status = it.status.as_ref();
            let is_named = status.and_then(|it| it.node_name.as_deref()) == Some(name);
            is_named || (own_id.is_some() && it.provider_id() == own_id.as_deref())
        });
        let mut story = Story {
            object: format!("Node {name}"),
            state: "is not managed by kerf: no NodeClaim is for it".to_owned(),
            ..Story::default()
        };
        if let Some(claim) = claim {
            // What is said of a node is said of its claim too.
            story.state = format!("is NodeClaim {}", claim.name_any());
            story.related.push(self.claim_story(claim).await?);
        } else {
            story.events = self.events("Node", None, name).await?;
        }
        Ok(story)
    }

    async fn pool(&self, name: &str) -> Result<Story> {
        let pool: NodePool = get(&Api::all(self.client.clone()), name).await?;
        let status = pool.status.clone().unwrap_or_default();
        let limits = pool.spec.limits.iter().flatten().map(|(resource, limit)| {
            let used = status.resources.get(resource);
            let used = used.map_or("0", |it| it.0.as_str());
            format!("limits.{resource}: {used} of {} used", limit.0)
        });
        Ok(Story {
            object: format!("NodePool {name}"),
            state: format!("{} nodes", status.nodes),
            reasons: limits.collect(),
            conditions: self.conditions(pool.conditions()),
            events: self.events("NodePool", None, name).await?,
            ..Story::default()
        })
    }

    fn conditions(&self, conditions: &[Condition]) -> Vec<Said> {
        let said = conditions.iter().map(|it| {
            let is_plain = it.status == ConditionStatus::True && it.reason == it.type_;
            let reason = if is_plain || it.reason.is_empty() {
                String::new()
            } else {
                format!(" {}", it.reason)
            };
            Said {
                what: format!("{}={}{reason}", it.type_, it.status.as_str()),
                message: it.message.clone(),
                at: Some(it.last_transition_time),
                ago: ago(it.last_transition_time, self.now),
            }
        });
        said.collect()
    }

    /// The controller's latest events about an object, latest first.
    async fn events(&self, kind: &str, namespace: Option<&str>, name: &str) -> Result<Vec<Said>> {
        // Events about objects without a namespace are in `default`.
        let namespace = namespace.unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
        let found = api.list(&ListParams::default().fields(&fields)).await;
        let found = found.with_context(|| format!("cannot list events about {kind} {name}"))?;
        let mut events: Vec<Said> = found
            .items
            .into_iter()
            .filter(|it| it.reporting_component.as_deref() == Some(CONTROLLER))
            .map(|it| self.said(it))
            .collect();
        events.sort_by_key(|it| std::cmp::Reverse(it.at));
        events.truncate(EVENTS_MAX);
        Ok(events)
    }

    fn said(&self, event: Event) -> Said {
        let series = event.series.and_then(|it| it.last_observed_time);
        let last = event.last_timestamp.map(|it| it.0);
        let at = series.or(event.event_time).map(|it| it.0).max(last);
        Said {
            what: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            at,
            ago: at.map(|at| ago(at, self.now)).unwrap_or_default(),
        }
    }
}

impl Story {
    fn say_silence(&mut self) {
        if self.events.is_empty() {
            self.reasons.push(SILENCE.to_owned());
        }
    }
}

async fn get<K>(api: &Api<K>, name: &str) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let found = api.get_opt(name).await;
    let found = found.with_context(|| format!("cannot read {} {name}", K::kind(&())))?;
    found.with_context(|| {
        format!(
            "there is no {} {name}; hint: `kubectl get {} -A` lists them, and pods need -n",
            K::kind(&()),
            K::plural(&())
        )
    })
}

/// Where a pod was told to go.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    Claim(&'a str),
    Node(&'a str),
}

/// The target in the text of an event with the reason Nominated.
fn nominated(message: &str) -> Option<Target<'_>> {
    let rest = message.strip_prefix("should schedule on ")?;
    let (kind, rest) = rest.split_once(' ')?;
    let name = rest.split([',', ':', ' ']).next()?;
    match kind {
        "NodeClaim" => Some(Target::Claim(name)),
        "node" => Some(Target::Node(name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nomination_names_its_target() {
        assert_eq!(
            nominated("should schedule on NodeClaim general-x1, which holds 2 pods"),
            Some(Target::Claim("general-x1"))
        );
        assert_eq!(
            nominated("should schedule on node cn-hangzhou.10.0.0.1: first that fits"),
            Some(Target::Node("cn-hangzhou.10.0.0.1"))
        );
        assert_eq!(nominated("NodePool general: too large"), None);
    }
}
