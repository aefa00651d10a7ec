//! What an operator can set. `kerf` fills this from its arguments; nothing here reads the environment.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use kerf_policy::{Compiler, PolicyKey};

use crate::hot::{Batching, SetLevel};
use crate::interruption::notice::Source;

/// Settings of one controller process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The region whose ECS is used, for example `cn-hangzhou`.
    pub region: String,
    /// The ACK cluster that new nodes join when an ECSNodeClass leaves `clusterID` empty.
    pub cluster_id: String,
    /// The namespace of the controller: policies are read from ConfigMaps here, and here its own state is kept.
    pub namespace: String,
    /// The pod that this process runs in, as lease and events name it; empty outside a cluster.
    pub pod_name: String,
    /// The RAM role of instances whose ECSNodeClass names none; empty gives them none.
    pub default_node_role: String,
    /// What is switched on.
    pub gates: crate::feature_gates::FeatureGates,
    /// How preferences and minValues of pods and pools are planned.
    pub planning: kerf_core::snapshot::Settings,
    /// Spread constraints that pods without any get, as kube-scheduler does. Their selectors are not looked at.
    pub default_spread: Vec<kerf_core::pod::TopologySpread>,
    /// The windows of batches at the start; [`crate::hot`] changes them.
    pub batching: Batching,
    /// How the level of the log is changed.
    pub set_level: SetLevel,
    /// How often disruption is considered when nothing changes (Karpenter: 10 s).
    pub disruption_poll: Duration,
    /// How disruption decides where a NodePool says nothing.
    pub disruption: kerf_core::disruption::DisruptionSettings,
    /// Consolidation takes only nodes to which no pod came and from which none left for this long, also where
    /// consolidateAfter is shorter (Karpenter: it waits 15 s after each decision and decides again).
    pub consolidation_quiet: Duration,
    /// A claim is younger than this when its instance type is not missed yet: catalogs come late (Karpenter: 1 h).
    pub instance_type_drift_delay: Duration,
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
    /// A NodeClaim whose node did not get ready in this time is given up; zero waits for ever, as Karpenter does.
    pub initialization_timeout: Duration,
    /// A NodeClaim expires up to this much before its `expireAfter`, so that claims of one day do not go together.
    pub expiration_jitter: Duration,
    /// Expired NodeClaims go within the budgets of their pool. Otherwise at once (Karpenter: same).
    pub expires_within_budgets: bool,
    /// When a node counts as broken; empty repairs nothing (Karpenter: the same as its gate NodeRepair off).
    pub repair_policies: Vec<RepairPolicy>,
    /// Nothing of a pool is repaired while more than this part of its nodes is broken (Karpenter: 20).
    pub repair_threshold_percent: u32,
    /// How often broken nodes are looked for.
    pub repair_poll: Duration,
    /// How often the cloud is asked for announced interruptions.
    pub interruption_poll: Duration,
    /// Who is listened to; empty handles no interruption.
    pub interruption_sources: Vec<Source>,
    /// How often the cloud is asked what one type costs; none never asks.
    pub price_poll: Option<Duration>,
    /// How often a healthy ECSNodeClass is resolved again.
    pub node_class_resync: Duration,
    /// Whether a scrape shows single nodes and NodePools.
    pub has_state_metrics: bool,
    /// Whether it shows single pods too, as long as they wait.
    pub has_pod_metrics: bool,
    /// Policies with `source.path` are read from this folder only; without it, not at all.
    pub policy_folder: Option<PathBuf>,
    /// Whose signatures count.
    pub policy_keys: Vec<PolicyKey>,
    /// One of so many questions to policies is kept for `kerf plugin record`.
    pub policy_record_every: Option<NonZeroU64>,
    /// CAs, in PEM, that registries of policies may have besides the system's.
    pub registry_roots: Option<Arc<[u8]>>,
    /// What compiles policies; without it, this process does.
    pub policy_compiler: Option<Arc<Compiler>>,
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
            pod_name: String::new(),
            default_node_role: String::new(),
            gates: crate::feature_gates::FeatureGates::default(),
            planning: kerf_core::snapshot::Settings::default(),
            default_spread: Vec::new(),
            batching: Batching {
                idle: Duration::from_secs(1),
                max: Duration::from_secs(10),
            },
            set_level: SetLevel::fixed(),
            disruption_poll: Duration::from_secs(10),
            disruption: kerf_core::disruption::DisruptionSettings::default(),
            // Karpenter waits 15 s because it learns of pods up to 10 s late; here they are seen at once.
            consolidation_quiet: Duration::from_secs(5),
            instance_type_drift_delay: Duration::from_secs(60 * 60),
            garbage_collection_poll: Duration::from_secs(120),
            // Longer than the slowest launch that can still be recorded: the launch time-out and one retry.
            orphan_grace: Duration::from_secs(10 * 60),
            launch_retry: Duration::from_secs(15),
            launch_timeout: Duration::from_secs(5 * 60),
            registration_timeout: Duration::from_secs(15 * 60),
            // A node that boots takes minutes; one that a person must untaint should be seen within the hour.
            initialization_timeout: Duration::from_secs(60 * 60),
            expiration_jitter: Duration::ZERO,
            expires_within_budgets: false,
            repair_policies: Vec::new(),
            repair_threshold_percent: 20,
            repair_poll: Duration::from_secs(10),
            // Of a notice of five minutes this is a twentieth; two calls each time are eight a minute.
            interruption_poll: Duration::from_secs(15),
            interruption_sources: Source::ALL.to_vec(),
            // Three calls a minute, of the twelve that a controller at rest may make.
            price_poll: Some(Duration::from_secs(20)),
            node_class_resync: Duration::from_secs(5 * 60),
            has_state_metrics: true,
            has_pod_metrics: false,
            policy_folder: None,
            policy_keys: Vec::new(),
            policy_record_every: None,
            registry_roots: None,
            policy_compiler: None,
            failpoint: None,
        }
    }
}

/// A condition of a Node that means that it is broken when it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The condition's type, such as `Ready`.
    pub condition: String,
    /// Its bad status: `True`, `False` or `Unknown`.
    pub status: String,
    /// How long it may last.
    pub toleration: Duration,
}

impl RepairPolicy {
    /// What counts as broken when nobody says: a kubelet that has not been well, or not been heard, for half an hour.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let patience = Duration::from_secs(30 * 60);
        let ready = |status: &str| Self {
            condition: "Ready".to_owned(),
            status: status.to_owned(),
            toleration: patience,
        };
        vec![ready("False"), ready("Unknown")]
    }
}

impl FromStr for RepairPolicy {
    type Err = String;

    /// Reads `Ready=Unknown:30m`.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} is not of the form Ready=Unknown:30m");
        let (condition, rest) = text.split_once('=').ok_or_else(form)?;
        let (status, toleration) = rest.split_once(':').ok_or_else(form)?;
        if condition.is_empty() || !matches!(status, "True" | "False" | "Unknown") {
            return Err(form());
        }
        let toleration =
            kerf_api::duration::parse_duration(toleration).map_err(|error| error.to_string())?;
        Ok(Self {
            condition: condition.to_owned(),
            status: status.to_owned(),
            toleration: Duration::try_from(toleration).map_err(|error| error.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_policy_reads_as_it_is_written_in_the_help() {
        let policy: RepairPolicy = "Ready=Unknown:30m".parse().unwrap();

        assert_eq!(
            (policy.condition.as_str(), policy.status.as_str()),
            ("Ready", "Unknown")
        );
        assert_eq!(policy.toleration, Duration::from_secs(1800));
        for wrong in [
            "Ready",
            "Ready=Unknown",
            "Ready=Bad:1m",
            "=True:1m",
            "Ready=True:x",
        ] {
            assert!(wrong.parse::<RepairPolicy>().is_err(), "{wrong}");
        }
    }
}
