//! Where watch events go: into the index, and to the reconcilers that they concern.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::label;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kerf_api::nodepool::NodePool;
use kerf_state::Tracked;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio::sync::{mpsc, oneshot};

use crate::capacity_buffer;
use crate::clock;
use crate::cluster::Effect;
use crate::context::Context;
use crate::hot;
use crate::kept::{Keeper, KeptWriter};
use crate::lenient::Lenient;
use crate::metrics::conditions::Observed;
use crate::pod_events::{self, PodEvent, Tracker};
use crate::reconciler::{Trigger, Triggered};
use crate::stores::{self, Stores};
use crate::supervise::Supervisor;
use crate::watch::{self, OwnedChange, Watched, names};

mod indexed;

use indexed::applied;

/// Each change of a claim names its pool, and a launch of hundreds changes each several times; a pool's status is a
/// count of all its claims.
const POOL_GATHER: Duration = Duration::from_millis(250);

/// The receiving ends for the reconcilers.
#[derive(Debug)]
pub struct Keys {
    /// For the ECSNodeClass reconciler.
    pub node_classes: Triggered<EcsNodeClass>,
    /// For the NodePool reconciler.
    pub nodepools: Triggered<NodePool>,
    /// For the NodeOverlay reconciler.
    pub overlays: Triggered<NodeOverlay>,
    /// For the CapacityBuffer reconciler.
    pub buffers: Triggered<CapacityBuffer>,
    /// For the NodeClaim reconciler.
    pub nodeclaims: Triggered<NodeClaim>,
    /// For the Node reconciler.
    pub nodes: Triggered<Node>,
    /// For the recorder of pod events.
    pub pod_events: mpsc::Receiver<PodEvent>,
}

#[derive(Debug, Clone)]
struct Triggers {
    node_classes: Trigger<EcsNodeClass>,
    nodepools: Trigger<NodePool>,
    overlays: Trigger<NodeOverlay>,
    buffers: Trigger<CapacityBuffer>,
    nodeclaims: Trigger<NodeClaim>,
    nodes: Trigger<Node>,
    pod_events: mpsc::Sender<PodEvent>,
}

struct Writers {
    node_classes: Writer<EcsNodeClass>,
    nodepools: Writer<NodePool>,
    overlays: Writer<NodeOverlay>,
    buffers: Writer<CapacityBuffer>,
    nodeclaims: KeptWriter<NodeClaim>,
    nodes: KeptWriter<Node>,
    config_maps: Writer<ConfigMap>,
}

/// All watches of the process.
pub struct Intake {
    triggers: Triggers,
    keys: Keys,
    writers: Option<Writers>,
    syncing: Vec<(&'static str, oneshot::Receiver<()>)>,
}

impl std::fmt::Debug for Intake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake").finish_non_exhaustive()
    }
}

impl Intake {
    /// Intake that has not started, and the stores that it will fill.
    #[must_use]
    pub fn new() -> (Self, Stores) {
        let (node_classes, node_class_keys) = Trigger::new();
        let (nodepools, nodepool_keys) = Trigger::gathering(POOL_GATHER);
        let (overlays, overlay_keys) = Trigger::new();
        let (buffers, buffer_keys) = Trigger::new();
        let (nodeclaims, nodeclaim_keys) = Trigger::new();
        let (nodes, node_keys) = Trigger::new();
        let (pod_events, pod_event_keys) = mpsc::channel(pod_events::BUFFER);
        let (node_class_store, node_class_writer) = reflector::store();
        let (nodepool_store, nodepool_writer) = reflector::store();
        let (overlay_store, overlay_writer) = reflector::store();
        let (buffer_store, buffer_writer) = reflector::store();
        let (nodeclaim_store, nodeclaim_writer) = stores::nodeclaims();
        let (node_store, node_writer) = stores::nodes();
        let (config_map_store, config_map_writer) = reflector::store();
        let stores = Stores {
            nodeclaims: nodeclaim_store,
            nodes: node_store,
            nodepools: nodepool_store,
            overlays: overlay_store,
            buffers: buffer_store,
            node_classes: node_class_store,
            config_maps: config_map_store,
        };
        let intake = Self {
            triggers: Triggers {
                node_classes,
                nodepools,
                overlays,
                buffers,
                nodeclaims,
                nodes,
                pod_events,
            },
            keys: Keys {
                node_classes: node_class_keys,
                nodepools: nodepool_keys,
                overlays: overlay_keys,
                buffers: buffer_keys,
                nodeclaims: nodeclaim_keys,
                nodes: node_keys,
                pod_events: pod_event_keys,
            },
            writers: Some(Writers {
                node_classes: node_class_writer,
                nodepools: nodepool_writer,
                overlays: overlay_writer,
                buffers: buffer_writer,
                nodeclaims: nodeclaim_writer,
                nodes: node_writer,
                config_maps: config_map_writer,
            }),
            syncing: Vec::new(),
        };
        (intake, stores)
    }

    /// Starts all watches; a second call does nothing.
    pub fn start(&mut self, supervisor: &Supervisor, context: &Arc<Context>) {
        let Some(writers) = self.writers.take() else {
            return;
        };
        let triggers = self.triggers.clone();
        let mut start = Start {
            supervisor,
            context,
            syncing: &mut self.syncing,
        };
        start.indexed("nodeclaims", Some(Box::new(writers.nodeclaims)), {
            let triggers = triggers.clone();
            move |change: OwnedChange<NodeClaim>, context| {
                on_nodeclaims(change, triggers.clone(), context)
            }
        });
        start.indexed("nodes", Some(Box::new(writers.nodes)), {
            let triggers = triggers.clone();
            move |change: OwnedChange<Node>, context| on_nodes(change, triggers.clone(), context)
        });
        start.indexed("nodepools", Some(Box::new(writers.nodepools)), {
            let triggers = triggers.clone();
            move |change: OwnedChange<NodePool>, context| {
                on_nodepools(change, triggers.clone(), context)
            }
        });
        start.indexed("ecsnodeclasses", Some(Box::new(writers.node_classes)), {
            let triggers = triggers.clone();
            move |change: OwnedChange<EcsNodeClass>, context| {
                on_node_classes(change, triggers.clone(), context)
            }
        });
        start.indexed("pods", None, {
            let (tracker, events) = (Mutex::new(Tracker::default()), triggers.pod_events.clone());
            move |change: OwnedChange<Pod>, context| {
                note_pods(&change, &tracker, &events, &context);
                std::future::ready(())
            }
        });
        start.index::<DaemonSet>("daemonsets");
        start.index::<Namespace>("namespaces");
        start.index::<PersistentVolume>("persistentvolumes");
        start.index::<PersistentVolumeClaim>("persistentvolumeclaims");
        start.index::<StorageClass>("storageclasses");
        start.index::<PodDisruptionBudget>("poddisruptionbudgets");
        start.index::<CSINode>("csinodes");
        if !context.settings.default_spread.is_empty() {
            start.selecting();
        }
        if context.settings.gates.node_overlay {
            start.overlays(writers.overlays, triggers.clone());
        }
        if context.settings.gates.capacity_buffer {
            start.buffers(writers.buffers, triggers.buffers.clone());
        }
        start.config_maps(writers.config_maps, triggers);
        start.hot_settings();
    }

    /// Where to ask for a look at a CapacityBuffer.
    #[must_use]
    pub fn buffer_trigger(&self) -> Trigger<CapacityBuffer> {
        self.triggers.buffers.clone()
    }

    /// Where to ask for a look at an ECSNodeClass.
    #[must_use]
    pub fn class_trigger(&self) -> Trigger<EcsNodeClass> {
        self.triggers.node_classes.clone()
    }

    /// Waits until every watch has delivered its first list; says every `patience` what is missing.
    pub async fn synced(&mut self, patience: Duration) {
        for (kind, synced) in &mut self.syncing {
            while tokio::time::timeout(patience, &mut *synced).await.is_err() {
                tracing::warn!(%kind, "still waiting for the first list; hint: are the CRDs installed, and may we list them?");
            }
        }
    }

    /// The receiving ends, for the reconcilers.
    #[must_use]
    pub fn into_keys(self) -> Keys {
        self.keys
    }
}

struct Start<'a> {
    supervisor: &'a Supervisor,
    context: &'a Arc<Context>,
    syncing: &'a mut Vec<(&'static str, oneshot::Receiver<()>)>,
}

impl Start<'_> {
    /// Watches a kind cluster-wide: index first, then whoever wants to know.
    fn indexed<K, F, Fut>(
        &mut self,
        kind: &'static str,
        writer: Option<Box<dyn Keeper<K>>>,
        tell: F,
    ) where
        K: Watched + Tracked,
        F: Fn(OwnedChange<K>, Arc<Context>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let api: Api<Lenient<K>> = Api::all(self.context.client.clone());
        let context = Arc::clone(self.context);
        let handle = move |change: OwnedChange<K>| {
            context.cluster.update(|index| {
                applied::<K>(index, |index| match &change {
                    OwnedChange::Applied(object) => index.apply(&**object),
                    OwnedChange::Deleted(object) => index.delete(&**object),
                    OwnedChange::Listed(objects) => index.reset(objects),
                })
            });
            tell(change, Arc::clone(&context))
        };
        self.watch(kind, api, watcher::Config::default(), writer, handle);
    }

    /// Watches a kind that only the index wants to know about.
    fn index<K: Watched + Tracked>(&mut self, kind: &'static str) {
        self.indexed(kind, None, |_: OwnedChange<K>, _| std::future::ready(()));
    }

    /// What default spread constraints look at to tell which pods belong together.
    fn selecting(&mut self) {
        self.index::<Service>("services");
        self.index::<ReplicationController>("replicationcontrollers");
        self.index::<ReplicaSet>("replicasets");
        self.index::<StatefulSet>("statefulsets");
    }

    /// Overlays are in no index: they are applied to the catalog that the index is asked with.
    fn overlays(&mut self, writer: Writer<NodeOverlay>, triggers: Triggers) {
        let api = Api::all(self.context.client.clone());
        let context = Arc::clone(self.context);
        let handle = move |_: OwnedChange<NodeOverlay>| {
            // Prices and capacities are others now: whatever was decided before is decided anew.
            context.cluster.update(|_| Effect::Demand);
            tell_overlays(&triggers, &context);
            std::future::ready(())
        };
        let config = watcher::Config::default();
        self.watch("nodeoverlays", api, config, Some(Box::new(writer)), handle);
    }

    /// Buffers come into the index by their reconciler, which knows the pods that they stand for.
    fn buffers(&mut self, writer: Writer<CapacityBuffer>, trigger: Trigger<CapacityBuffer>) {
        let api = Api::all(self.context.client.clone());
        let context = Arc::clone(self.context);
        let handle = move |change: OwnedChange<CapacityBuffer>| {
            note_conditions(&change, &context);
            match &change {
                OwnedChange::Deleted(buffer) => capacity_buffer::remove(buffer, &context),
                OwnedChange::Listed(buffers) => capacity_buffer::retain(buffers, &context),
                OwnedChange::Applied(_) => {}
            }
            for buffer in change.objects() {
                let namespace = buffer.namespace().unwrap_or_default();
                trigger.send(&ObjectRef::new(&buffer.name_any()).within(&namespace));
            }
            std::future::ready(())
        };
        let config = watcher::Config::default();
        self.watch(
            "capacitybuffers",
            api,
            config,
            Some(Box::new(writer)),
            handle,
        );
    }

    /// Policies live in our own namespace only, under a label.
    fn config_maps(&mut self, writer: Writer<ConfigMap>, triggers: Triggers) {
        let namespace = &self.context.settings.namespace;
        let api = Api::namespaced(self.context.client.clone(), namespace);
        let config = watcher::Config::default().labels(&format!("{}=true", label::POLICY));
        let context = Arc::clone(self.context);
        let handle = move |_: OwnedChange<ConfigMap>| {
            let (triggers, context) = (triggers.clone(), Arc::clone(&context));
            async move {
                // Which class uses which ConfigMap is the class's business; there are few classes.
                for class in context
                    .stores
                    .node_classes
                    .state()
                    .iter()
                    .filter(|it| !it.spec.policies.is_empty())
                {
                    triggers
                        .node_classes
                        .send(&ObjectRef::new(&class.name_any()));
                }
            }
        };
        self.watch(
            "policy configmaps",
            api,
            config,
            Some(Box::new(writer)),
            handle,
        );
    }

    /// One ConfigMap, by its name.
    fn hot_settings(&mut self) {
        let namespace = &self.context.settings.namespace;
        let api = Api::namespaced(self.context.client.clone(), namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", hot::NAME));
        let context = Arc::clone(self.context);
        let handle =
            move |change: OwnedChange<ConfigMap>| hot::on_config_map(change, Arc::clone(&context));
        self.watch("settings configmap", api, config, None, handle);
    }

    fn watch<K, F, Fut>(
        &mut self,
        kind: &'static str,
        api: Api<Lenient<K>>,
        config: watcher::Config,
        writer: Option<Box<dyn Keeper<K>>>,
        handle: F,
    ) where
        K: Watched,
        F: FnMut(OwnedChange<K>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (synced_tx, synced_rx) = oneshot::channel();
        self.syncing.push((kind, synced_rx));
        self.supervisor
            .spawn(kind, watch::run(api, config, writer, synced_tx, handle));
    }
}

async fn on_nodeclaims(change: OwnedChange<NodeClaim>, triggers: Triggers, context: Arc<Context>) {
    note_conditions(&change, &context);
    for claim in change.objects() {
        triggers.nodeclaims.send(&ObjectRef::new(&claim.name_any()));
        if let Some(pool) = claim.labels().get(label::NODEPOOL) {
            triggers.nodepools.send(&ObjectRef::new(pool));
        }
        let nodes = claim.provider_id().map(|id| context.cluster.nodes_of(id));
        for node in nodes.unwrap_or_default() {
            triggers.nodes.send(&ObjectRef::new(&node));
        }
    }
    if matches!(change, OwnedChange::Deleted(_)) {
        context.cluster.demand_changed();
    }
}

async fn on_nodes(change: OwnedChange<Node>, triggers: Triggers, context: Arc<Context>) {
    note_conditions(&change, &context);
    for node in change.objects() {
        triggers.nodes.send(&ObjectRef::new(&node.name_any()));
        for claim in context.claims_of(node) {
            triggers.nodeclaims.send(&ObjectRef::new(&claim));
        }
    }
}

async fn on_nodepools(change: OwnedChange<NodePool>, triggers: Triggers, context: Arc<Context>) {
    note_conditions(&change, &context);
    for name in names(change.objects()) {
        triggers.nodepools.send(&ObjectRef::new(&name));
    }
    tell_overlays(&triggers, &context);
}

/// What is true of one overlay depends on the others and on the pools.
fn tell_overlays(triggers: &Triggers, context: &Context) {
    for overlay in context.stores.overlays.state() {
        triggers.overlays.send(&ObjectRef::new(&overlay.name_any()));
    }
}

async fn on_node_classes(
    change: OwnedChange<EcsNodeClass>,
    triggers: Triggers,
    context: Arc<Context>,
) {
    note_conditions(&change, &context);
    let mut concerned: Vec<String> = names(change.objects()).collect();
    if let OwnedChange::Deleted(class) = &change {
        context.classes.remove(&class.name_any());
        context.policies.remove(&class.name_any());
    }
    for name in &concerned {
        triggers.node_classes.send(&ObjectRef::new(name));
    }
    concerned.sort_unstable();
    for pool in context.stores.nodepools.state() {
        if concerned
            .binary_search(&pool.spec.template.spec.node_class_ref.name)
            .is_ok()
        {
            triggers.nodepools.send(&ObjectRef::new(&pool.name_any()));
        }
    }
}

fn note_conditions<K: Observed>(change: &OwnedChange<K>, context: &Context) {
    if let Some(conditions) = &context.metrics.conditions {
        conditions.observe(change, clock::now());
    }
}

/// Tells the index at once, and the claims' status a little later, that pods came or left.
fn note_pods(
    change: &OwnedChange<Pod>,
    tracker: &Mutex<Tracker>,
    events: &mpsc::Sender<PodEvent>,
    context: &Context,
) {
    let mut tracker = tracker.lock().unwrap_or_else(PoisonError::into_inner);
    let nodes = match change {
        OwnedChange::Applied(pod) => tracker.observe(pod, false).into_iter().collect(),
        OwnedChange::Deleted(pod) => tracker.observe(pod, true).into_iter().collect(),
        OwnedChange::Listed(pods) => tracker.reset(pods),
    };
    let at = clock::now();
    let metrics = &context.metrics.pods;
    match change {
        OwnedChange::Applied(pod) => metrics.observe(pod, at),
        OwnedChange::Deleted(pod) => metrics.forget(pod),
        OwnedChange::Listed(pods) => metrics.reset(pods, at),
    }
    for node in nodes {
        context.cluster.note_pod_event(&node, at);
        // A full channel means that pods come and go everywhere; the next event of this node is enough.
        let _ = events.try_send(PodEvent { node, at });
    }
}
