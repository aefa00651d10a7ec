//! One watch per kind: each event goes into the index, into the store, and to the reconcilers that it concerns.
//!
//! A watch that breaks starts again by itself. An object that does not deserialize is told once and left out: it never
//! stops the others.

use std::any::Any;
use std::collections::HashSet;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Container, Node, NodeStatus, Pod};
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_events};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::error::describe;
use crate::kept::Keeper;
use crate::lenient::Lenient;

/// What a kind must be to be watched.
pub trait Watched:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static>
    Watched for K
{
}

/// Watches until the process ends. `synced` is sent after the first whole list went through `handle`.
pub async fn run<K, F, Fut>(
    api: Api<Lenient<K>>,
    config: watcher::Config,
    mut keeper: Option<Box<dyn Keeper<K>>>,
    synced: oneshot::Sender<()>,
    mut handle: F,
) where
    K: Watched,
    F: FnMut(OwnedChange<K>) -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    let mut events = watch_events(api, config).default_backoff().boxed();
    let mut listing = Vec::new();
    let mut synced = Some(synced);
    let mut broken = HashSet::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "watch interrupted; it starts again");
                continue;
            }
        };
        let Some(event) = readable(event, &mut broken) else {
            continue;
        };
        if let Some(keeper) = &mut keeper {
            keeper.take_in(&event);
        }
        match event {
            Event::Init => listing.clear(),
            Event::InitApply(object) => listing.push(object),
            Event::InitDone => {
                handle(OwnedChange::Listed(std::mem::take(&mut listing))).await;
                if let Some(synced) = synced.take() {
                    // The receiver is gone only when the process ends.
                    let _ = synced.send(());
                }
            }
            Event::Apply(object) => handle(OwnedChange::Applied(Arc::new(object))).await,
            Event::Delete(object) => handle(OwnedChange::Deleted(Arc::new(object))).await,
        }
    }
}

/// What happened, without the details of how a list is delivered.
#[derive(Debug)]
pub enum OwnedChange<K> {
    /// The object is new or changed.
    Applied(Arc<K>),
    /// The object is gone.
    Deleted(Arc<K>),
    /// These are all objects; what is not among them is gone.
    Listed(Vec<K>),
}

impl<K> OwnedChange<K> {
    /// The objects that it speaks of.
    #[must_use]
    pub fn objects(&self) -> &[K] {
        match self {
            Self::Applied(object) | Self::Deleted(object) => std::slice::from_ref(object),
            Self::Listed(objects) => objects,
        }
    }
}

/// The event with its object, or none when that does not deserialize. An object that was readable and is not any more
/// stays as it was last understood.
fn readable<K: Watched>(
    event: Event<Lenient<K>>,
    broken: &mut HashSet<String>,
) -> Option<Event<K>> {
    let mut read = |guard: Lenient<K>| match guard.0 {
        Ok(mut object) => {
            broken.remove(&describe(&object));
            slim(&mut object);
            Some(object)
        }
        Err(invalid) => {
            let name = format!(
                "{} {}",
                K::kind(&()),
                invalid.metadata.name.clone().unwrap_or_default()
            );
            if broken.insert(name.clone()) {
                tracing::warn!(object = %name, error = %invalid.error, "object cannot be read and is left out; hint: compare it with the CRD's schema");
            }
            None
        }
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(guard) => Event::InitApply(read(guard)?),
        Event::Apply(guard) => Event::Apply(read(guard)?),
        Event::Delete(guard) => Event::Delete(read(guard)?),
    })
}

/// Takes off what nobody here asks for. A kubelet lists fifty images with all their names, which is most of a Node, and every
/// Node is kept; of a Pod the environment and the probes of its containers are most, and a list has all Pods at once.
fn slim<K: Any>(object: &mut K) {
    let object: &mut dyn Any = object;
    if let Some(node) = object.downcast_mut::<Node>() {
        slim_node(node);
    } else if let Some(pod) = object.downcast_mut::<Pod>() {
        slim_pod(pod);
    }
}

fn slim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        *status = NodeStatus {
            allocatable: status.allocatable.take(),
            capacity: status.capacity.take(),
            conditions: status.conditions.take(),
            ..NodeStatus::default()
        };
    }
}

fn slim_pod(pod: &mut Pod) {
    let Some(spec) = &mut pod.spec else { return };
    let init = spec.init_containers.iter_mut().flatten();
    for container in init.chain(&mut spec.containers) {
        *container = Container {
            name: std::mem::take(&mut container.name),
            ports: container.ports.take(),
            resources: container.resources.take(),
            restart_policy: container.restart_policy.take(),
            ..Container::default()
        };
    }
}

/// Keys of the objects, for a trigger.
pub fn names<K: Watched>(objects: &[K]) -> impl Iterator<Item = String> + '_ {
    objects.iter().map(ResourceExt::name_any)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_keeps_what_is_asked_for_and_not_its_images() {
        let node = json!({
            "metadata": {"name": "n"}, "spec": {"providerID": "r.i-1"},
            "status": {
                "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "images": [{"names": ["a", "b"]}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "Hostname", "address": "n"}],
            },
        });
        let mut node: Node = serde_json::from_value(node).unwrap();

        slim(&mut node);

        let kept = serde_json::to_value(&node.status).unwrap();
        let fields: Vec<&str> = kept
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(fields, ["allocatable", "capacity", "conditions"]);
        assert_eq!(node.spec.unwrap().provider_id.unwrap(), "r.i-1");
    }

    #[test]
    fn a_pod_keeps_what_its_containers_ask_for_and_not_their_environment() {
        let container = |name: &str| {
            json!({
                "name": name, "image": "i", "env": [{"name": "A", "value": "b"}], "restartPolicy": "Always",
                "ports": [{"containerPort": 1, "hostPort": 2}], "resources": {"requests": {"cpu": "1"}},
            })
        };
        let pod = json!({
            "metadata": {"name": "p", "labels": {"app": "a"}},
            "spec": {"nodeName": "n", "initContainers": [container("i")], "containers": [container("c")]},
        });
        let mut pod: Pod = serde_json::from_value(pod).unwrap();

        slim(&mut pod);

        let kept = serde_json::to_value(&pod).unwrap();
        for list in ["initContainers", "containers"] {
            let fields = kept["spec"][list][0].as_object().unwrap().keys();
            let fields: Vec<&str> = fields.map(String::as_str).collect();
            assert_eq!(fields, ["name", "ports", "resources", "restartPolicy"]);
        }
        assert_eq!(
            (
                &kept["spec"]["nodeName"],
                &kept["metadata"]["labels"]["app"]
            ),
            (&json!("n"), &json!("a"))
        );
    }
}
