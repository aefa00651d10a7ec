//! Taint keys that we set or wait for. Effects are in the text, since key and effect together are the identity.

use super::names;
use kerf_core::labels;

names! {
    /// NoSchedule: the node was chosen for disruption and takes no new pods.
    DISRUPTED = labels::DISRUPTED_TAINT;
    /// NoExecute: the node joined but does not carry its NodeClaim's labels and taints yet.
    UNREGISTERED = labels::UNREGISTERED_TAINT;
    /// Set by Kubernetes while the node is not ready.
    NOT_READY = "node.kubernetes.io/not-ready";
    /// Set by Kubernetes while the node does not answer.
    UNREACHABLE = "node.kubernetes.io/unreachable";
    /// Set until the cloud controller manager has seen the node.
    CLOUD_PROVIDER_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized";
    /// Prefix of taints that the node readiness controller takes away by itself.
    READINESS_PREFIX = "readiness.k8s.io/";
}
