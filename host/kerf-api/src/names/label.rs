//! Labels on Nodes, NodeClaims and ConfigMaps.

use super::names;

/// The domain of Karpenter's own names.
pub const KARPENTER_DOMAIN: &str = "karpenter.sh";
/// The domain of the names that only this provider has.
pub const PROVIDER_DOMAIN: &str = "karpenter.alibabacloud.com";

names! {
    /// The NodePool that a Node or NodeClaim belongs to.
    NODEPOOL = "karpenter.sh/nodepool";
    /// How the instance is paid for: `spot`, `on-demand` or `reserved`.
    CAPACITY_TYPE = "karpenter.sh/capacity-type";
    /// `true` once the Node has joined and carries the labels and taints of its NodeClaim.
    REGISTERED = "karpenter.sh/registered";
    /// `true` once the Node is ready, its startup taints are gone and its resources are there.
    INITIALIZED = "karpenter.sh/initialized";
    /// `true` on a Node: registration does not copy taints onto it.
    DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints";
    /// The ECSNodeClass that a Node or NodeClaim was made from.
    ECSNODECLASS = "karpenter.alibabacloud.com/ecsnodeclass";
    /// `true` on a ConfigMap that holds a policy: only such ConfigMaps are watched.
    POLICY = "karpenter.alibabacloud.com/policy";
    /// Letters of the instance type's family, such as `g`, `c`, `r` or `gn`.
    INSTANCE_CATEGORY = "karpenter.alibabacloud.com/instance-category";
    /// Generation number of the instance type, such as `8`.
    INSTANCE_GENERATION = "karpenter.alibabacloud.com/instance-generation";
    /// Family of the instance type, such as `ecs.g8i`.
    INSTANCE_FAMILY = "karpenter.alibabacloud.com/instance-family";
    /// Size of the instance type, such as `2xlarge`.
    INSTANCE_SIZE = "karpenter.alibabacloud.com/instance-size";
    /// Number of vCPUs of the instance type.
    INSTANCE_CPU = "karpenter.alibabacloud.com/instance-cpu";
    /// Maker of the processor: `intel`, `amd`, `ampere`, `yitian` or `hygon`.
    INSTANCE_CPU_MODEL = "karpenter.alibabacloud.com/instance-cpu-model";
    /// Memory of the instance type in MiB, before anything is reserved.
    INSTANCE_MEMORY = "karpenter.alibabacloud.com/instance-memory";
    /// Name of the GPU, in lower case with hyphens.
    INSTANCE_GPU_NAME = "karpenter.alibabacloud.com/instance-gpu-name";
    /// Maker of the GPU, such as `nvidia`.
    INSTANCE_GPU_MANUFACTURER = "karpenter.alibabacloud.com/instance-gpu-manufacturer";
    /// Number of whole GPUs of the instance type.
    INSTANCE_GPU_COUNT = "karpenter.alibabacloud.com/instance-gpu-count";
    /// Memory per GPU in GiB.
    INSTANCE_GPU_MEMORY = "karpenter.alibabacloud.com/instance-gpu-memory";
    /// The instance type that the Node runs on.
    INSTANCE_TYPE = "node.kubernetes.io/instance-type";
    /// The zone of the Node.
    ZONE = "topology.kubernetes.io/zone";
    /// The region of the Node.
    REGION = "topology.kubernetes.io/region";
    /// The processor architecture: `amd64` or `arm64`.
    ARCH = "kubernetes.io/arch";
    /// The operating system of the Node.
    OS = "kubernetes.io/os";
    /// The name of one Node: never allowed in a requirement or template label.
    HOSTNAME = "kubernetes.io/hostname";
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
];
