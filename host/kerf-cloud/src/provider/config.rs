//! Settings of the provider: what the controller knows and a node class does not say.

use std::time::Duration;

use crate::provider::prices::PriceList;

/// How pods get their addresses, which decides how many fit on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CniMode {
    /// Terway with shared network interfaces: addresses are the limit.
    TerwayShared,
    /// Terway with one interface per pod.
    TerwayExclusive,
    /// Flannel: each node has a fixed block of `2^(32 - mask)` addresses.
    Flannel { node_cidr_mask: u8 },
    /// Anything else: the kubelet's own default.
    Other,
}

/// Settings; all have a sensible default but `region_id` and `cluster`.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    pub region_id: String,
    /// The identity in the cluster tag. Two clusters of one account must differ. For ACK it is the cluster id.
    pub cluster: String,
    /// The controller's ACK cluster id, which a class with an empty `clusterID` takes; empty for self-managed.
    pub cluster_id: String,
    /// `None` asks DescribeClusterDetail; without an ACK cluster that means [`CniMode::Other`].
    pub cni: Option<CniMode>,
    /// The part of the nominal memory that the OS never shows.
    pub vm_memory_overhead_percent: f64,
    /// Memory that the kubelet keeps free when the class sets no hard eviction threshold.
    pub eviction_memory_mib: u64,
    /// How long resolved selectors stay good.
    pub resolve_ttl: Duration,
    /// How long the type list and zones stay good.
    pub types_ttl: Duration,
    /// How long a stock reading stays good.
    pub stock_ttl: Duration,
    /// How long an attach script is used again; far less than the life of the token in it.
    pub attach_script_ttl: Duration,
    /// How long a new instance may take to show in DescribeInstances.
    pub visibility_lag: Duration,
    /// What the account really pays, where somebody said so.
    pub prices: PriceList,
    /// What the account pays less than the list price on demand, in per cent, while no live price says so.
    pub account_discount_percent: f64,
}

impl ProviderConfig {
    /// Defaults for an ACK cluster; for a self-managed one clear `cluster_id`.
    #[must_use]
    pub fn new(region_id: impl Into<String>, cluster: impl Into<String>) -> Self {
        let cluster = cluster.into();
        Self {
            region_id: region_id.into(),
            cluster_id: cluster.clone(),
            cluster,
            cni: None,
            vm_memory_overhead_percent: 7.5,
            eviction_memory_mib: 100,
            resolve_ttl: Duration::from_secs(60),
            types_ttl: Duration::from_secs(3600),
            stock_ttl: Duration::from_secs(180),
            attach_script_ttl: Duration::from_secs(300),
            visibility_lag: Duration::from_secs(30),
            prices: PriceList::new(),
            account_discount_percent: 0.0,
        }
    }
}
