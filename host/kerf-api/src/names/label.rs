//! Labels on Nodes, NodeClaims and ConfigMaps.

use super::names;
use kerf_core::labels;

/// The domain of Karpenter's own names.
pub const KARPENTER_DOMAIN: &str = "karpenter.sh";
/// The domain of the names that only this provider has.
pub const PROVIDER_DOMAIN: &str = labels::GROUP;
/// The group of the other provider's classes, whose pools and claims are taken over.
pub const ADOPTED_DOMAIN: &str = "karpenter.k8s.alibabacloud";

names! {
    /// The NodePool that a Node or NodeClaim belongs to.
    NODEPOOL = labels::NODE_POOL;
    /// How the instance is paid for: `spot`, `on-demand` or `reserved`.
    CAPACITY_TYPE = labels::CAPACITY_TYPE;
    /// `true` once the Node has joined and carries the labels and taints of its NodeClaim.
    REGISTERED = labels::REGISTERED;
    /// `true` once the Node is ready, its startup taints are gone and its resources are there.
    INITIALIZED = labels::INITIALIZED;
    /// `true` on a Node: registration does not copy taints onto it.
    DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints";
    /// The ECSNodeClass that a Node or NodeClaim was made from.
    ECSNODECLASS = "karpenter.alibabacloud.com/ecsnodeclass";
    /// `true` on a ConfigMap that holds a policy: only such ConfigMaps are watched.
    POLICY = "karpenter.alibabacloud.com/policy";
    /// Letters of the instance type's family, such as `g`, `c`, `r` or `gn`.
    INSTANCE_CATEGORY = labels::INSTANCE_CATEGORY;
    /// Generation number of the instance type, such as `8`.
    INSTANCE_GENERATION = labels::INSTANCE_GENERATION;
    /// Family of the instance type, such as `ecs.g8i`.
    INSTANCE_FAMILY = labels::INSTANCE_FAMILY;
    /// Size of the instance type, such as `2xlarge`.
    INSTANCE_SIZE = labels::INSTANCE_SIZE;
    /// Number of vCPUs of the instance type.
    INSTANCE_CPU = labels::INSTANCE_CPU;
    /// Maker of the processor: `intel`, `amd`, `ampere`, `yitian` or `hygon`.
    INSTANCE_CPU_MODEL = labels::INSTANCE_CPU_MODEL;
    /// Memory of the instance type in MiB, before anything is reserved.
    INSTANCE_MEMORY = labels::INSTANCE_MEMORY;
    /// Name of the GPU, in lower case with hyphens.
    INSTANCE_GPU_NAME = labels::INSTANCE_GPU_NAME;
    /// Maker of the GPU, such as `nvidia`.
    INSTANCE_GPU_MANUFACTURER = labels::INSTANCE_GPU_MANUFACTURER;
    /// Number of whole GPUs of the instance type.
    INSTANCE_GPU_COUNT = labels::INSTANCE_GPU_COUNT;
    /// Memory per GPU in GiB.
    INSTANCE_GPU_MEMORY = labels::INSTANCE_GPU_MEMORY;
    /// The capacity reservation that the instance was started from.
    RESERVATION_ID = labels::RESERVATION_ID;
    /// The instance type that the Node runs on.
    INSTANCE_TYPE = labels::INSTANCE_TYPE;
    /// The zone of the Node.
    ZONE = labels::ZONE;
    /// The region of the Node.
    REGION = labels::REGION;
    /// The processor architecture: `amd64` or `arm64`.
    ARCH = labels::ARCH;
    /// The operating system of the Node.
    OS = labels::OS;
    /// The name of one Node: never allowed in a requirement or template label.
    HOSTNAME = labels::HOSTNAME;
    /// `karpenter` on a Node that is being drained, so that load balancers stop sending to it.
    EXCLUDE_FROM_EXTERNAL_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers";
}

/// Keys of [`KARPENTER_DOMAIN`] that a requirement may name; all others of that domain are the controller's.
pub const KARPENTER_SELECTABLE: &[&str] = &[CAPACITY_TYPE, NODEPOOL];

/// Keys of [`PROVIDER_DOMAIN`] that a requirement may name; all others of that domain are the controller's.
pub const PROVIDER_SELECTABLE: &[&str] = &[
    ECSNODECLASS,
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
