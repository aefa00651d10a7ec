//! Kubernetes' time type and the timestamp inside it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The time as Kubernetes objects carry it, in whole seconds.
#[must_use]
pub fn kubernetes_time(timestamp: Timestamp) -> Time {
    Time(whole_seconds(timestamp))
}

/// The time without its fraction, as the API server would hand it back.
#[must_use]
pub fn whole_seconds(timestamp: Timestamp) -> Timestamp {
    Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp)
}
