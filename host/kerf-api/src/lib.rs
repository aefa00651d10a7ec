//! The Kubernetes objects: NodePool, NodeClaim, ECSNodeClass and their conditions.
