//! Objects as the API server last told them, shared by all reconcilers. Each kind is watched once.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_cloud::provider::instance::parse_provider_id;
use kube::runtime::reflector::Store;

/// One store per kind that reconcilers read whole.
#[derive(Debug, Clone)]
pub struct Stores {
    /// All NodeClaims.
    pub nodeclaims: Store<NodeClaim>,
    /// All Nodes.
    pub nodes: Store<Node>,
    /// All NodePools.
    pub nodepools: Store<NodePool>,
    /// All ECSNodeClasses.
    pub node_classes: Store<EcsNodeClass>,
    /// The policy ConfigMaps of our namespace.
    pub config_maps: Store<ConfigMap>,
}

impl Stores {
    /// The Nodes with this provider id; more than one is an error of the cluster that callers must see.
    #[must_use]
    pub fn nodes_of(&self, provider_id: &str) -> Vec<Arc<Node>> {
        let Some(wanted) = parse_provider_id(provider_id) else {
            return Vec::new();
        };
        let is_it = |node: &Node| provider_id_of(node).and_then(parse_provider_id) == Some(wanted);
        self.nodes
            .state()
            .into_iter()
            .filter(|node| is_it(node))
            .collect()
    }

    /// The NodeClaim whose instance the Node runs on.
    #[must_use]
    pub fn claim_of(&self, node: &Node) -> Option<Arc<NodeClaim>> {
        let wanted = parse_provider_id(provider_id_of(node)?)?;
        self.nodeclaims
            .find(|claim| claim.provider_id().and_then(parse_provider_id) == Some(wanted))
    }
}

fn provider_id_of(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}
