//! The Kubernetes side: watches, reconcilers, status, events and metrics.
