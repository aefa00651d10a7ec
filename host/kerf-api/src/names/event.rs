//! Reasons of events.

use super::names;

names! {
    /// Pod, Normal: a place on this Node or NodeClaim is kept for it. Told while the pod waits, to five pods a second after ten at
    /// once.
    NOMINATED = "Nominated";
    /// Pod, Warning: no NodePool can hold it; the message says why, per NodePool.
    FAILED_SCHEDULING = "FailedScheduling";
    /// NodePool, Warning: its requirements leave no instance type.
    NO_COMPATIBLE_INSTANCE_TYPES = "NoCompatibleInstanceTypes";
    /// NodePool, Warning: it has fewer nodes than its replicas and cannot get them now; the message says why.
    STATIC_CAPACITY_SHORT = "StaticCapacityShort";
    /// NodeClaim, Normal: an instance was launched for it.
    LAUNCHED = "Launched";
    /// NodeClaim, Warning: the launch call failed; it is retried.
    LAUNCH_FAILED = "LaunchFailed";
    /// NodeClaim, Warning: the cloud has none of the offerings that would do.
    INSUFFICIENT_CAPACITY_ERROR = "InsufficientCapacityError";
    /// NodeClaim, Normal: its Node joined.
    REGISTERED = "Registered";
    /// NodeClaim, Normal: its Node is ready for pods.
    INITIALIZED = "Initialized";
    /// NodeClaim, Warning: the Node joined without the unregistered taint.
    UNREGISTERED_TAINT_MISSING = "UnregisteredTaintMissing";
    /// NodeClaim, Warning: the Node shows less than what was asked for.
    FAILED_CONSISTENCY_CHECK = "FailedConsistencyCheck";
    /// Node, NodeClaim, NodePool, Normal: why it is not disrupted.
    DISRUPTION_BLOCKED = "DisruptionBlocked";
    /// Node, NodeClaim, Normal: consolidation would gain nothing; the message says why.
    UNCONSOLIDATABLE = "Unconsolidatable";
    /// Node, NodeClaim, Normal: it is being replaced or removed; the message says why.
    DISRUPTION_TERMINATING = "DisruptionTerminating";
    /// NodeClaim, Normal: a replacement is being launched.
    DISRUPTION_LAUNCHING = "DisruptionLaunching";
    /// NodeClaim, Normal: a replacement is not ready yet.
    DISRUPTION_WAITING_READINESS = "DisruptionWaitingReadiness";
    /// Node, NodeClaim, Warning: the platform takes the instance back or works on it; the message says when and who said so.
    INTERRUPTION_ANNOUNCED = "InterruptionAnnounced";
    /// Pod, Normal: evicted so that its node can go.
    EVICTED = "Evicted";
    /// Pod, Normal: deleted because the terminationGracePeriod of its node is over.
    DISRUPTED = "Disrupted";
    /// Node, Warning: some pod refuses to go; the message names it.
    FAILED_DRAINING = "FailedDraining";
    /// Node, Normal: a volume is still attached; the message names it.
    AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment";
    /// Node, NodeClaim, Warning: the cloud refuses to delete the instance; the message says why.
    FAILED_TERMINATION = "FailedTermination";
    /// Node, NodeClaim, Warning: the terminationGracePeriod runs; at its end pods are deleted whatever protects them.
    TERMINATION_GRACE_PERIOD_EXPIRING = "TerminationGracePeriodExpiring";
    /// Node, Warning: it is unhealthy, and so are too many others of its pool to replace it.
    NODE_REPAIR_BLOCKED = "NodeRepairBlocked";
    /// ConfigMap, Warning: a part of the controller's memory cannot be read and starts empty.
    MEMORY_UNREADABLE = "MemoryUnreadable";
    /// Node, NodeClaim, Normal: it is gone and its instance with it.
    FINALIZED = "Finalized";
    /// Any object, Warning: it cannot be used as written; the message names the field and the next step.
    INVALID_OBJECT = "InvalidObject";
    /// ECSNodeClass, Warning: something that it names was not found, or the cloud could not be asked.
    RESOLUTION_FAILED = "ResolutionFailed";
    /// ECSNodeClass, Normal: a policy version took over.
    POLICY_LOADED = "PolicyLoaded";
    /// ECSNodeClass, Warning: a policy did not load; what served before still serves.
    POLICY_LOAD_FAILED = "PolicyLoadFailed";
    /// ECSNodeClass, Warning: a call to a policy failed; failurePolicy decided what followed.
    POLICY_CALL_FAILED = "PolicyCallFailed";
    /// NodeClaim, Warning: an instance with our tags that no NodeClaim claims was deleted.
    ORPHAN_DELETED = "OrphanDeleted";
}
