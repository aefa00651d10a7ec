//! What an operator can set. `kerf` fills this from its arguments; nothing here reads the environment.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of one controller process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The region whose ECS is used, for example `cn-hangzhou`.
    pub region: String,
    /// The ACK cluster that new nodes join when an ECSNodeClass leaves `clusterID` empty.
    pub cluster_id: String,
    /// The namespace of the controller: policies are read from ConfigMaps here, and here its own state is kept.
    pub namespace: String,
    /// A batch of pods is planned when no new one came for this long (Karpenter: `BATCH_IDLE_DURATION`).
    pub batch_idle: Duration,
    /// A batch is planned at the latest this long after its first pod (Karpenter: `BATCH_MAX_DURATION`).
    pub batch_max: Duration,
    /// How often disruption is considered when nothing changes (Karpenter: 10 s).
    pub disruption_poll: Duration,
    /// How often the cloud's instances are compared with the NodeClaims (Karpenter: 2 min).
    pub garbage_collection_poll: Duration,
    /// An instance that no NodeClaim claims is deleted this long after it was first seen.
    pub orphan_grace: Duration,
    /// How long to wait before a launch that the account or the class prevents is tried again.
    pub launch_retry: Duration,
    /// A NodeClaim that was not launched in this time is given up (Karpenter: 5 min).
    pub launch_timeout: Duration,
    /// A NodeClaim whose node did not register in this time is given up (Karpenter: 15 min).
    pub registration_timeout: Duration,
    /// How often a healthy ECSNodeClass is resolved again.
    pub node_class_resync: Duration,
    /// Policies with `source.path` are read from this folder only; without it, not at all.
    pub policy_folder: Option<PathBuf>,
    /// The failpoint to stop at; only test builds heed it.
    pub failpoint: Option<String>,
}

impl Settings {
    /// The defaults for a region and a cluster.
    #[must_use]
    pub fn new(region: String, cluster_id: String, namespace: String) -> Self {
        Self {
            region,
            cluster_id,
            namespace,
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            disruption_poll: Duration::from_secs(10),
            garbage_collection_poll: Duration::from_secs(120),
            // Longer than the slowest launch that can still be recorded: the launch time-out and one retry.
            orphan_grace: Duration::from_secs(10 * 60),
            launch_retry: Duration::from_secs(15),
            launch_timeout: Duration::from_secs(5 * 60),
            registration_timeout: Duration::from_secs(15 * 60),
            node_class_resync: Duration::from_secs(5 * 60),
            policy_folder: None,
            failpoint: None,
        }
    }
}
