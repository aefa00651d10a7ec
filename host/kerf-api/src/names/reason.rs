//! Reasons in conditions.

use super::names;

names! {
    /// NodeOverlay: the message lists what is wrong with the spec.
    RUNTIME_VALIDATION = "RuntimeValidation";
    /// NodeOverlay: another of the same weight changes the same thing; nothing of this one applies.
    CONFLICT = "Conflict";
    /// CapacityBuffer: the pods that it stands for are known.
    RESOLVED = "Resolved";
    /// CapacityBuffer: the pods that it stands for cannot be told from its spec; the message says why.
    RESOLUTION_FAILED = "ResolutionFailed";
    /// CapacityBuffer: the PodTemplate that it names does not exist.
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound";
    /// CapacityBuffer: the workload that it names does not exist.
    SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound";
    /// CapacityBuffer: all its pods have room on nodes that are there.
    FITS_EXISTING_CAPACITY = "FitsExistingCapacity";
    /// CapacityBuffer: some of its pods need nodes that are on their way or cannot be had; the message says how many.
    REQUIRES_NEW_CAPACITY = "RequiresNewCapacity";
    /// CapacityBuffer: the pods that it stands for are not known.
    NOT_READY_FOR_PROVISIONING = "NotReadyForProvisioning";
    /// CapacityBuffer: it stands for no pods.
    BUFFER_EMPTY = "BufferEmpty";
    /// Nobody has looked at it yet.
    AWAITING_RECONCILIATION = "AwaitingReconciliation";
    /// Ready is False: at least one condition that it depends on is.
    UNHEALTHY_DEPENDENTS = "UnhealthyDependents";
    /// Ready is Unknown: at least one condition that it depends on is, or is out of date.
    RECONCILING_DEPENDENTS = "ReconcilingDependents";
    /// NodePool: the message lists what is wrong with the spec.
    NODEPOOL_VALIDATION_FAILED = "NodePoolValidationFailed";
    /// NodePool: no node class of that group, kind and name exists.
    NODE_CLASS_NOT_FOUND = "NodeClassNotFound";
    /// NodePool: the node class is being deleted.
    NODE_CLASS_TERMINATING = "NodeClassTerminating";
    /// NodePool, NodeClaim: the node class exists but is not ready.
    NODE_CLASS_NOT_READY = "NodeClassNotReady";
    /// NodeClaim: the cloud has none of the offerings that would do.
    INSUFFICIENT_CAPACITY = "InsufficientCapacity";
    /// NodeClaim: the launch call failed; the message has the cloud's code and the next step.
    LAUNCH_FAILED = "LaunchFailed";
    /// NodePool: instances launched but never joined.
    REGISTRATION_FAILED = "RegistrationFailed";
    /// NodeClaim: no Node with this providerID has joined yet.
    NODE_NOT_FOUND = "NodeNotFound";
    /// NodeClaim: more than one Node has this providerID.
    MULTIPLE_NODES_FOUND = "MultipleNodesFound";
    /// NodeClaim: the Node is not ready.
    NODE_NOT_READY = "NodeNotReady";
    /// NodeClaim: a startup taint is still on the Node.
    STARTUP_TAINTS_EXIST = "StartupTaintsExist";
    /// NodeClaim: a taint that Kubernetes takes away by itself is still on the Node.
    KNOWN_EPHEMERAL_TAINTS_EXIST = "KnownEphemeralTaintsExist";
    /// NodeClaim: a resource that was asked for does not show on the Node yet.
    RESOURCE_NOT_REGISTERED = "ResourceNotRegistered";
    /// NodeClaim: the Node shows less than nine tenths of a resource that was asked for.
    CONSISTENCY_CHECK_FAILED = "ConsistencyCheckFailed";
    /// NodeClaim: its pods are leaving.
    DRAINING = "Draining";
    /// NodeClaim: a volume is still attached to the Node.
    AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment";
    /// NodeClaim: the terminationGracePeriod was over before the volumes were detached.
    TERMINATION_GRACE_PERIOD_ELAPSED = "TerminationGracePeriodElapsed";
    /// Drifted: the NodePool's template changed.
    NODEPOOL_DRIFTED = "NodePoolDrifted";
    /// Drifted: the NodePool's requirements no longer allow this node.
    REQUIREMENTS_DRIFTED = "RequirementsDrifted";
    /// Drifted: the instance type is not sold any more.
    INSTANCE_TYPE_NOT_FOUND = "InstanceTypeNotFound";
    /// Drifted: the ECSNodeClass changed.
    NODE_CLASS_DRIFT = "NodeClassDrift";
    /// Drifted: the ECSNodeClass resolves to another image.
    IMAGE_DRIFT = "ImageDrift";
    /// Drifted: the instance's vSwitch is no longer one of the class's.
    VSWITCH_DRIFT = "VSwitchDrift";
    /// Drifted: the instance's security groups are no longer the class's.
    SECURITY_GROUP_DRIFT = "SecurityGroupDrift";
    /// Drifted: a policy that wrote the user data, or one with rolloutOnChange, is another now.
    POLICY_DRIFT = "PolicyDrift";
    /// Drifted: the platform is going to work on the instance's host; the message says when.
    MAINTENANCE_SCHEDULED = "MaintenanceScheduled";
    /// DisruptionReason: the platform takes the instance back, or it fails.
    INTERRUPTED = "Interrupted";
    /// Disruptable: somebody forbids every disruption of it; the message says who.
    DISRUPTION_BLOCKED = "DisruptionBlocked";
    /// Disruptable: consolidation gains nothing or may not; the message says why.
    UNCONSOLIDATABLE = "Unconsolidatable";
    /// Disruptable: it waits for its time or for a budget.
    DISRUPTION_WAITS = "DisruptionWaits";
    /// ECSNodeClass: neither the class nor the controller names a cluster, and there is no join template.
    CLUSTER_ID_MISSING = "ClusterIDMissing";
    /// ECSNodeClass: the cluster does not exist or may not be read.
    CLUSTER_RESOLUTION_FAILED = "ClusterResolutionFailed";
    /// ECSNodeClass: no vSwitch matches, or the lookup failed; the message says which.
    VSWITCH_RESOLUTION_FAILED = "VSwitchResolutionFailed";
    /// ECSNodeClass: no security group matches, or the lookup failed; the message says which.
    SECURITY_GROUP_RESOLUTION_FAILED = "SecurityGroupResolutionFailed";
    /// ECSNodeClass: no image matches, or the lookup failed; the message says which.
    IMAGE_RESOLUTION_FAILED = "ImageResolutionFailed";
    /// ECSNodeClass: no key pair that the terms ask for; the message names them.
    KEY_PAIR_RESOLUTION_FAILED = "KeyPairResolutionFailed";
    /// ECSNodeClass: no private pool that the terms ask for; the message names them.
    CAPACITY_RESERVATION_RESOLUTION_FAILED = "CapacityReservationResolutionFailed";
    /// ECSNodeClass: the RAM role does not exist.
    ROLE_NOT_FOUND = "RoleNotFound";
    /// ECSNodeClass: a policy did not load; what served before still serves.
    POLICY_LOAD_FAILED = "PolicyLoadFailed";
    /// ECSNodeClass: the ConfigMap or key that a policy names is not there, or lacks the policy label.
    POLICY_SOURCE_NOT_FOUND = "PolicySourceNotFound";
    /// ECSNodeClass: the plugin refused its config; the message is the plugin's.
    POLICY_CONFIG_INVALID = "PolicyConfigInvalid";
    /// ECSNodeClass: a policy serves, and its last call gave no answer; failurePolicy decides what that means for pods.
    POLICY_CALL_FAILED = "PolicyCallFailed";
    /// ElasticStrength: one stock-out is enough to leave pods waiting.
    FEW_WAYS_TO_LAUNCH = "FewWaysToLaunch";
    /// ElasticStrength: nothing that is allowed can be launched now.
    NOTHING_LAUNCHABLE = "NothingLaunchable";
    /// ECSNodeClass: a policy is being fetched, compiled or tried.
    POLICY_LOADING = "PolicyLoading";
    /// The cloud could not be asked; the last known answer stays.
    CLOUD_UNREACHABLE = "CloudUnreachable";
    /// The cloud refused our credentials.
    CREDENTIALS_INVALID = "CredentialsInvalid";
}
