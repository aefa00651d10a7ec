//! What every reconciler gets.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_api::requirement::NodeClassReference;
use kerf_core::ids::NodePoolName;
use kerf_core::instance_type::InstanceType;
use kerf_core::snapshot::Snapshot;
use kerf_state::{Catalog, PoolOffers};
use kube::{Client, ResourceExt};
use tokio::sync::Semaphore;

use crate::capacity_buffer::Buffers;
use crate::clock;
use crate::cloud::Cloud;
use crate::cluster::SharedCluster;
use crate::compute::compute;
use crate::disruption::networks::Networks;
use crate::events::Events;
use crate::failpoint;
use crate::hot::Hot;
use crate::lifecycle::groups::Launches;
use crate::lifecycle::health::Registrations;
use crate::metrics::Metrics;
use crate::node_class::{self, Classes};
use crate::node_overlay::{Evaluated, Overlays};
use crate::policies::Policies;
use crate::settings::Settings;
use crate::stores::Stores;
use crate::termination::apart::SetApart;
use crate::termination::eviction::Refusals;

/// Shared by all reconcilers of one process.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The API server, for what pods wait for: NodeClaims that are created and Nodes that open to pods. A hundred nodes that come or
    /// go at the same moment are hundreds of other requests.
    pub urgent_client: Client,
    /// What the operator set.
    pub settings: Settings,
    /// What of it changes while the process runs.
    pub hot: Hot,
    /// When this process began: what was begun before it may have been cut off.
    pub started_at: Timestamp,
    /// What decisions are made from.
    pub cluster: SharedCluster,
    /// What reconcilers read.
    pub stores: Stores,
    /// The cloud.
    pub cloud: Cloud,
    /// ECSNodeClasses as they were resolved.
    pub classes: Classes,
    /// What plans said about CapacityBuffers.
    pub buffers: Buffers,
    /// What NodeOverlays make of the catalog.
    pub overlays: Overlays,
    /// The policies of all classes.
    pub policies: Policies,
    /// Whether the pools' NodeClaims register.
    pub registrations: Registrations,
    /// Groups of claims that are launched by one call.
    pub launches: Launches,
    /// Pods whose eviction was refused.
    pub refusals: Refusals,
    /// Since when Nodes that go get no more pods.
    pub set_apart: SetApart,
    /// Places for claims whose pass is being written.
    pub claim_writes: Semaphore,
    /// Held while one expired claim asks for its place in the budgets.
    pub expirations: Mutex<()>,
    /// Where the cloud shows our instances.
    pub networks: Networks,
    /// What we say on objects.
    pub events: Events,
    /// What we count.
    pub metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Passes a failpoint, or stands still there if a test wants so.
    pub async fn reach(&self, name: &str) {
        failpoint::pass(self.settings.failpoint.as_deref(), name).await;
    }

    /// As `reach`, where the place is passed more often than the step is done.
    pub async fn reach_if(&self, is_there: bool, name: &str) {
        if is_there {
            self.reach(name).await;
        }
    }

    /// Whether pools and claims that refer to this class are ours to look after. Others' are left alone.
    #[must_use]
    pub fn manages(&self, class: &NodeClassReference) -> bool {
        crate::adoption::is_ours(class) || crate::adoption::is_adopted(class)
    }

    /// The cluster as it is now, with stock and prices read anew: what a launch is decided on.
    pub async fn fresh_snapshot(&self) -> Arc<Snapshot> {
        node_class::refresh(self).await;
        self.snapshot()
    }

    /// The cluster as it is now, with stock and prices as they were last read.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let (evaluated, planning) = (self.evaluated(), self.settings.planning);
        let snapshot = compute(|| {
            self.cluster
                .snapshot(&evaluated.catalog, planning, clock::now())
        });
        self.metrics
            .state_nodes
            .set(i64::try_from(snapshot.nodes.len()).unwrap_or(i64::MAX));
        snapshot
    }

    /// The Nodes with this provider id; more than one is an error of the cluster that callers must see.
    #[must_use]
    pub fn nodes_of(&self, provider_id: &str) -> Vec<Arc<Node>> {
        let names = self.cluster.nodes_of(provider_id);
        let found = names.iter().filter_map(|name| self.stores.nodes.get(name));
        found.collect()
    }

    /// The NodeClaim whose instance the Node runs on.
    #[must_use]
    pub fn claim_of(&self, node: &Node) -> Option<Arc<NodeClaim>> {
        let names = self.claims_of(node);
        names
            .iter()
            .find_map(|name| self.stores.nodeclaims.get(name))
    }

    /// Names of the NodeClaims whose instance the Node runs on; more than one is an error of the cluster.
    #[must_use]
    pub fn claims_of(&self, node: &Node) -> Vec<String> {
        let provider_id = node.spec.as_ref().and_then(|it| it.provider_id.as_deref());
        provider_id.map_or_else(Vec::new, |id| self.cluster.claims_of(id))
    }

    /// What a claim of the pool can be launched as, overlays applied; none while that is not known.
    #[must_use]
    pub fn instance_types_of(&self, pool: &str) -> Option<Arc<Vec<Arc<InstanceType>>>> {
        let evaluated = self.evaluated();
        let offers = evaluated.catalog.get(pool)?;
        Some(Arc::clone(&offers.instance_types))
    }

    /// What each pool can launch, overlays applied, and which overlays do not apply.
    #[must_use]
    pub fn evaluated(&self) -> Arc<Evaluated> {
        let overlays = self.stores.overlays.state();
        let pools = self.stores.nodepools.state();
        self.overlays.apply(&overlays, &pools, self.catalog(&pools))
    }

    /// What each pool can launch; pools whose class is not usable are left out.
    fn catalog(&self, pools: &[Arc<NodePool>]) -> Catalog {
        let offers = |pool: &NodePool| {
            let reference = &pool.spec.template.spec.node_class_ref;
            let class = self
                .classes
                .usable(&reference.name)
                .ok()
                .filter(|_| self.manages(reference))?;
            let instance_types = Arc::clone(&class.instance_types);
            Some(PoolOffers {
                instance_types,
                free_ips: class.free_ips.clone(),
                is_zone_balanced: class.is_zone_balanced,
            })
        };
        pools
            .iter()
            .filter_map(|pool| Some((NodePoolName::from(pool.name_any()), offers(pool)?)))
            .collect()
    }
}
