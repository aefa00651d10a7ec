//! Label, annotation and taint keys that kerf knows, and the aliases that mean the same.
//!
//! Keys exist here once; the other crates use these constants. [`normalize_key`] is applied wherever a key enters a
//! requirement, so that `beta.kubernetes.io/arch` and `kubernetes.io/arch` meet.

use std::borrow::Cow;

/// The label by which a NodePool owns a NodeClaim or Node.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// `true` on a Node that kerf has registered.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `true` on a Node whose startup taints are gone and whose resources have appeared.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `spot`, `on-demand` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// Forbids voluntary disruption of a pod (`true` or a duration) or of a node (`true`).
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// The first Karpenter's name of [`DO_NOT_DISRUPT`], honoured on running pods.
pub const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";
/// cluster-autoscaler's annotation: `false` is honoured as [`DO_NOT_DISRUPT`].
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// `true` when a claim was made with fewer distinct values than its `minValues` asked for.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// What a claim took the place of and when, as [`crate::node::Replaced::write_all`] writes it: the memory of the guard
/// against going back and forth.
pub const REPLACED: &str = "karpenter.alibabacloud.com/replaced";
/// `true` on a NodeClaim: a NodeOverlay changed the price of some of its offerings.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// `true` on a NodeClaim: a NodeOverlay added capacity to some of its offerings.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
/// Marks the virtual pods of a CapacityBuffer.
pub const CAPACITY_BUFFER_FAKE_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
/// How costly the deletion of a pod is, by kubernetes' own annotation.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The node's own name as a label.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The instance type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// The operating system.
pub const OS: &str = "kubernetes.io/os";
/// The Windows build.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// Group of the ECSNodeClass, and prefix of the labels below.
pub const GROUP: &str = "karpenter.alibabacloud.com";
/// Letters after `ecs.`: `g`, `c`, `gn`, `ebmg`.
pub const INSTANCE_CATEGORY: &str = "karpenter.alibabacloud.com/instance-category";
/// First number of the family.
pub const INSTANCE_GENERATION: &str = "karpenter.alibabacloud.com/instance-generation";
/// The family, with the `ecs.` prefix.
pub const INSTANCE_FAMILY: &str = "karpenter.alibabacloud.com/instance-family";
/// The size: `xlarge`.
pub const INSTANCE_SIZE: &str = "karpenter.alibabacloud.com/instance-size";
/// Number of vCPUs.
pub const INSTANCE_CPU: &str = "karpenter.alibabacloud.com/instance-cpu";
/// `intel`, `amd` or another maker.
pub const INSTANCE_CPU_MODEL: &str = "karpenter.alibabacloud.com/instance-cpu-model";
/// Memory in MiB.
pub const INSTANCE_MEMORY: &str = "karpenter.alibabacloud.com/instance-memory";
/// GPU model.
pub const INSTANCE_GPU_NAME: &str = "karpenter.alibabacloud.com/instance-gpu-name";
/// GPU maker.
pub const INSTANCE_GPU_MANUFACTURER: &str = "karpenter.alibabacloud.com/instance-gpu-manufacturer";
/// Number of GPUs.
pub const INSTANCE_GPU_COUNT: &str = "karpenter.alibabacloud.com/instance-gpu-count";
/// Memory of one GPU in GiB.
pub const INSTANCE_GPU_MEMORY: &str = "karpenter.alibabacloud.com/instance-gpu-memory";
/// The capacity reservation that an instance was started from.
pub const RESERVATION_ID: &str = "karpenter.alibabacloud.com/capacity-reservation-id";

/// Taint (`NoSchedule`) on nodes that are being removed.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Taint (`NoExecute`) that a node is born with.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// Keys whose value a new node may take freely: a claim that does not define one is compatible with any value.
pub const WELL_KNOWN: &[&str] = &[
    NODE_POOL,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    CAPACITY_TYPE,
    WINDOWS_BUILD,
    INSTANCE_CATEGORY,
    INSTANCE_GENERATION,
    INSTANCE_FAMILY,
    INSTANCE_SIZE,
    INSTANCE_CPU,
    INSTANCE_CPU_MODEL,
    INSTANCE_MEMORY,
    INSTANCE_GPU_NAME,
    INSTANCE_GPU_MANUFACTURER,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MEMORY,
    RESERVATION_ID,
];

/// Prefix of the labels by which the disk CSI driver says which disk categories a node can attach. Volumes name them
/// in their node affinity.
pub const DISK_TYPE_PREFIX: &str = "node.csi.alibabacloud.com/disktype.";

/// Label domains that users may not set in a NodePool, apart from the well-known keys.
pub const RESTRICTED_DOMAINS: &[&str] = &["karpenter.sh", GROUP, ALIAS_DOMAIN];

/// The label domain of another Alibaba provider, whose keys mean the same as ours.
const ALIAS_DOMAIN: &str = "karpenter.k8s.alibabacloud";

const ALIASES: &[(&str, &str)] = &[
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    // The disk CSI driver writes this key into the node affinity of its volumes.
    ("topology.diskplugin.csi.alibabacloud.com/zone", ZONE),
    ("topology.k8s.alibabacloud/zone-id", ZONE),
];

/// The canonical form of a label key. Borrowed unless the key belongs to the aliased domain.
pub fn normalize_key(key: &str) -> Cow<'_, str> {
    if let Some((_, canonical)) = ALIASES.iter().find(|(alias, _)| *alias == key) {
        return Cow::Borrowed(canonical);
    }
    match key
        .strip_prefix(ALIAS_DOMAIN)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        Some(name) => Cow::Owned(format!("{GROUP}/{name}")),
        None => Cow::Borrowed(key),
    }
}

/// The other keys that [`normalize_key`] makes this (canonical) one.
pub(crate) fn aliases_of(key: &str) -> impl Iterator<Item = Cow<'static, str>> {
    let renamed = ALIASES
        .iter()
        .filter(move |(_, canonical)| *canonical == key);
    let renamed = renamed.map(|(alias, _)| Cow::Borrowed(*alias));
    let name = key
        .strip_prefix(GROUP)
        .and_then(|rest| rest.strip_prefix('/'));
    renamed.chain(name.map(|name| Cow::Owned(format!("{ALIAS_DOMAIN}/{name}"))))
}

/// Whether a claim that does not define the (canonical) key can still take any value of it.
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key) || key.starts_with(DISK_TYPE_PREFIX)
}

/// Whether every node gets the (canonical) key with the value `true` once it runs. Pods may select it, and claims
/// never carry it.
pub fn is_set_by_registration(key: &str) -> bool {
    matches!(key, REGISTERED | INITIALIZED)
}

/// Whether users are refused the (canonical) key in NodePools, NodeClaims and pod constraints.
pub fn is_restricted(key: &str) -> bool {
    if is_well_known(key) {
        return false;
    }
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let in_restricted_domain = RESTRICTED_DOMAINS.iter().any(|restricted| {
        domain == *restricted
            || domain
                .strip_suffix(restricted)
                .is_some_and(|prefix| prefix.ends_with('.'))
    });
    in_restricted_domain || key == HOSTNAME
}

/// The well-known key that a user probably meant, for messages about an unknown one.
pub fn closest_well_known(key: &str) -> Option<&'static str> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let same_name = WELL_KNOWN
        .iter()
        .find(|known| known.rsplit('/').next() == Some(name));
    same_name
        .or_else(|| {
            WELL_KNOWN
                .iter()
                .find(|known| edit_distance(key, known) <= MAX_TYPOS)
        })
        .copied()
}

/// Two slips are a typing mistake; three and more match unrelated keys.
const MAX_TYPOS: usize = 2;

fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut current = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let substitution = previous[j] + usize::from(a != *b);
            current.push(substitution.min(previous[j + 1] + 1).min(current[j] + 1));
        }
        previous = current;
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_become_canonical() {
        assert_eq!(normalize_key("beta.kubernetes.io/arch"), ARCH);
        assert_eq!(
            normalize_key("topology.diskplugin.csi.alibabacloud.com/zone"),
            ZONE
        );
        assert_eq!(
            normalize_key("karpenter.k8s.alibabacloud/instance-cpu"),
            INSTANCE_CPU
        );
        assert_eq!(normalize_key("example.com/tier"), "example.com/tier");
        assert_eq!(
            normalize_key("karpenter.k8s.alibabacloud.example/x"),
            "karpenter.k8s.alibabacloud.example/x"
        );
    }

    #[test]
    fn subdomains_of_restricted_domains_are_restricted_and_well_known_keys_are_not() {
        assert!(is_restricted("karpenter.sh/initialized"));
        assert!(is_restricted("x.karpenter.sh/initialized"));
        assert!(is_restricted(HOSTNAME));
        assert!(!is_restricted(CAPACITY_TYPE));
        assert!(!is_restricted("notkarpenter.sh/x"));
    }

    #[test]
    fn misspelt_keys_get_a_hint() {
        assert_eq!(
            closest_well_known("topology.kubernetes.io/zoen"),
            Some(ZONE)
        );
        assert_eq!(closest_well_known("failure-domain/zone"), Some(ZONE));
        assert_eq!(closest_well_known("example.com/tier"), None);
    }
}
