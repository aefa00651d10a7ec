//! Annotations on NodePools, NodeClaims, Nodes and Pods.

use super::names;
use kerf_core::labels;

/// What the annotations about a launch begin with; they stay on the NodeClaim.
pub const LAUNCH_PREFIX: &str = "karpenter.alibabacloud.com/launch-";

names! {
    /// On a Pod or Node: `true` keeps it from voluntary disruption; a Pod may also give a duration such as `30m`.
    DO_NOT_DISRUPT = labels::DO_NOT_DISRUPT;
    /// The older name of do-not-disrupt, still honoured on Pods.
    DO_NOT_EVICT = labels::DO_NOT_EVICT;
    /// The cluster autoscaler's name: `false` on a Pod is honoured as do-not-disrupt.
    SAFE_TO_EVICT = labels::SAFE_TO_EVICT;
    /// On a Pod, Kubernetes' own: how costly its deletion is.
    POD_DELETION_COST = labels::POD_DELETION_COST;
    /// Hash of the NodePool's template, on the NodePool and on each NodeClaim made from it.
    NODEPOOL_HASH = "karpenter.sh/nodepool-hash";
    /// Version of the algorithm behind nodepool-hash; drift is judged between equal versions only.
    NODEPOOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version";
    /// When the node must be gone at the latest (RFC 3339), from terminationGracePeriod.
    TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp";
    /// `true` when minValues were not met and the policy allowed it.
    MIN_VALUES_RELAXED = labels::MIN_VALUES_RELAXED;
    /// DRA drivers that the NodeClaim's pods ask for, sorted and joined by commas.
    REQUESTED_DRA_DRIVERS = "karpenter.sh/requested-dra-drivers";
    /// A NodeOverlay changed the price that the NodeClaim was chosen by.
    PRICE_OVERLAY_APPLIED = labels::PRICE_OVERLAY_APPLIED;
    /// A NodeOverlay added capacity that the NodeClaim was chosen for.
    CAPACITY_OVERLAY_APPLIED = labels::CAPACITY_OVERLAY_APPLIED;
    /// `true` on the virtual pods of a CapacityBuffer.
    CAPACITY_BUFFER_FAKE_POD = labels::CAPACITY_BUFFER_FAKE_POD;
    /// Name of the CapacityBuffer that a virtual pod stands for.
    CAPACITY_BUFFER_NAME = "karpenter.sh/capacity-buffer-name";
    /// Namespace of the CapacityBuffer that a virtual pod stands for.
    CAPACITY_BUFFER_NAMESPACE = "karpenter.sh/capacity-buffer-namespace";
    /// What an object of an older API version said about its provider.
    COMPATIBILITY_PROVIDER = "compatibility.karpenter.sh/provider";
    /// Hash of the ECSNodeClass's spec, on the class and on each NodeClaim launched from it.
    ECSNODECLASS_HASH = "karpenter.alibabacloud.com/ecsnodeclass-hash";
    /// Version of the algorithm behind ecsnodeclass-hash.
    ECSNODECLASS_HASH_VERSION = "karpenter.alibabacloud.com/ecsnodeclass-hash-version";
    /// Written before the launch call: the group of identical NodeClaims that one call launches.
    LAUNCH_GROUP = "karpenter.alibabacloud.com/launch-group";
    /// Written before the launch call: this NodeClaim's place among the group's sorted instance ids.
    LAUNCH_ORDINAL = "karpenter.alibabacloud.com/launch-ordinal";
    /// Written before the launch call: the number of this try; the ClientToken derives from group and attempt.
    LAUNCH_ATTEMPT = "karpenter.alibabacloud.com/launch-attempt";
    /// Written before the launch call: number of members of the group, so that a restart knows what is surplus.
    LAUNCH_SIZE = "karpenter.alibabacloud.com/launch-size";
    /// Written before the launch call: hash of the parameters, since a ClientToken may not be reused with others.
    LAUNCH_PARAMS_HASH = "karpenter.alibabacloud.com/launch-params-hash";
    /// What the plan allows to launch, best first: `type/zone/capacity-type`, joined by commas. Taken away once the instance of a
    /// launch group is tagged.
    LAUNCH_OFFERINGS = "karpenter.alibabacloud.com/launch-offerings";
    /// Written before the launch call: the policies whose change rolls nodes out, as `name=digest/config`, joined by commas.
    LAUNCH_POLICIES = "karpenter.alibabacloud.com/launch-policies";
    /// On a NodeClaim that is being disrupted: the command, with its candidates and the names of its replacements.
    DISRUPTION_COMMAND = "karpenter.alibabacloud.com/disruption-command";
    /// On a NodeClaim whose instance the platform takes back or works on: what was announced, by whom, and when it comes.
    INTERRUPTION = "karpenter.alibabacloud.com/interruption";
    /// `true` once the instance carries its NodeClaim's tags.
    TAGGED = "karpenter.alibabacloud.com/tagged";
    /// On a NodePool: the least that a consolidation must save per hour, such as 0.05.
    CONSOLIDATION_SAVING_MIN = "karpenter.alibabacloud.com/consolidation-saving-min";
    /// On a NodePool: the least that a consolidation must save, in percent of what its nodes cost.
    CONSOLIDATION_SAVING_MIN_PERCENT = "karpenter.alibabacloud.com/consolidation-saving-min-percent";
    /// On a NodePool: how old a node must be to be consolidated, such as 30m.
    CONSOLIDATION_NODE_AGE_MIN = "karpenter.alibabacloud.com/consolidation-node-age-min";
    /// On a NodePool: how long its nodes are left alone after the youngest was made.
    CONSOLIDATION_COOL_DOWN = "karpenter.alibabacloud.com/consolidation-cool-down";
    /// On a NodePool: nodes whose scarcest resource is requested to more than this, in percent, are not consolidated.
    CONSOLIDATION_UTILIZATION_MAX_PERCENT = "karpenter.alibabacloud.com/consolidation-utilization-max-percent";
    /// On a NodePool: how far its budgets' schedules are from UTC, such as +08:00; without it they are in UTC.
    BUDGET_TIME_ZONE = "karpenter.alibabacloud.com/budget-time-zone";
    /// On a NodePool: zones to leave, joined by commas: no new node is made there, and those that are there are replaced within the budgets of drift.
    EVACUATE_ZONES = "karpenter.alibabacloud.com/evacuate-zones";
    /// What this NodeClaim took the place of and when, as `type/zone/capacity-type@time` joined by commas; nothing goes back within a day.
    REPLACED = "karpenter.alibabacloud.com/replaced";
}
