//! Condition types of our objects. Which of them make up `Ready` is in `ConditionSet` of each kind.

use super::names;

names! {
    /// The root condition: True when everything it depends on is True.
    READY = "Ready";
    /// NodePool, NodeOverlay: the spec passed the checks that the schema cannot express.
    VALIDATION_SUCCEEDED = "ValidationSucceeded";
    /// NodePool: the node class that it names exists and is ready.
    NODE_CLASS_READY = "NodeClassReady";
    /// NodePool: whether its latest NodeClaims registered. Informational.
    NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy";
    /// NodeClaim: the instance exists.
    LAUNCHED = "Launched";
    /// NodeClaim: the Node joined and carries our labels and taints.
    REGISTERED = "Registered";
    /// NodeClaim: the Node is ready for pods.
    INITIALIZED = "Initialized";
    /// NodeClaim: quiet for as long as consolidateAfter asks.
    CONSOLIDATABLE = "Consolidatable";
    /// NodeClaim: False with the one reason why disruption leaves it alone; absent when nobody wants it gone.
    DISRUPTABLE = "Disruptable";
    /// NodeClaim: differs from what its NodePool or node class would make today; the reason says how.
    DRIFTED = "Drifted";
    /// NodeClaim: its pods are gone.
    DRAINED = "Drained";
    /// NodeClaim: its volumes are detached.
    VOLUMES_DETACHED = "VolumesDetached";
    /// NodeClaim: deletion of the instance has been asked for.
    INSTANCE_TERMINATING = "InstanceTerminating";
    /// NodeClaim: what the Node shows agrees with what was asked for.
    CONSISTENT_STATE_FOUND = "ConsistentStateFound";
    /// NodeClaim: chosen for disruption; the reason says why.
    DISRUPTION_REASON = "DisruptionReason";
    /// ECSNodeClass: the cluster to join is known.
    CLUSTER_RESOLVED = "ClusterResolved";
    /// ECSNodeClass: vSwitchSelectorTerms found at least one vSwitch.
    VSWITCH_RESOLVED = "VSwitchResolved";
    /// ECSNodeClass: securityGroupSelectorTerms found at least one security group.
    SECURITY_GROUP_RESOLVED = "SecurityGroupResolved";
    /// ECSNodeClass: imageSelectorTerms found at least one image.
    IMAGE_RESOLVED = "ImageResolved";
    /// ECSNodeClass: sshKeySelectorTerms found a key pair, or there are none.
    KEY_PAIR_RESOLVED = "KeyPairResolved";
    /// ECSNodeClass: capacityReservationSelectorTerms found at least one private pool, or there are none.
    CAPACITY_RESERVATION_RESOLVED = "CapacityReservationResolved";
    /// ECSNodeClass: the RAM role of the instances exists.
    RAM_ROLE_RESOLVED = "RAMRoleResolved";
    /// ECSNodeClass with policies: the bytes of each declared version are here. Informational, as the next four.
    POLICIES_FETCHED = "PoliciesFetched";
    /// ECSNodeClass with policies: each declared version is a component of the right digest, contract and signature.
    POLICIES_VERIFIED = "PoliciesVerified";
    /// ECSNodeClass with policies: each declared version is compiled.
    POLICIES_COMPILED = "PoliciesCompiled";
    /// ECSNodeClass with policies: each declared version described itself.
    POLICIES_DESCRIBED = "PoliciesDescribed";
    /// ECSNodeClass with policies: each declared version accepted its configuration.
    POLICIES_CONFIG_VALID = "PoliciesConfigValid";
    /// ECSNodeClass: every policy is loaded and serves. Informational; failurePolicy decides what a failing one means.
    POLICIES_READY = "PoliciesReady";
    /// NodePool and ECSNodeClass: there are several ways to launch something now. Informational: False before a launch fails.
    ELASTIC_STRENGTH = "ElasticStrength";
    /// CapacityBuffer: the pods that it stands for are known.
    READY_FOR_PROVISIONING = "ReadyForProvisioning";
    /// CapacityBuffer: whether there is room for its pods.
    PROVISIONING = "Provisioning";
}
