//! Calls of the controllers to the cloud. The names are Karpenter's.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The value of the label `provider`.
const PROVIDER: &str = "alibabacloud";

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    controller: &'static str,
    method: &'static str,
    provider: &'static str,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    controller: &'static str,
    method: &'static str,
    provider: &'static str,
    error: &'static str,
}

/// The default buckets of Prometheus' clients. Karpenter: same.
#[derive(Debug, Clone)]
struct Seconds;

/// In seconds.
const SECONDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// What a failed call came to, as Karpenter calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The instance does not exist (any more). A deletion that is done ends with it.
    NotFound,
    /// The class, the account or the credentials must be put right first.
    NodeClassNotReady,
    /// Nothing of what was asked for can be had.
    InsufficientCapacity,
    /// Anything else.
    Other,
}

impl CallError {
    fn label(self) -> &'static str {
        match self {
            Self::NotFound => "NodeClaimNotFoundError",
            Self::NodeClassNotReady => "NodeClassNotReadyError",
            Self::InsufficientCapacity => "InsufficientCapacityError",
            Self::Other => "",
        }
    }
}

/// What calls to the cloud count. A clone counts for the same series.
#[derive(Debug, Clone)]
pub struct CloudMetrics {
    durations: Family<CallLabels, Histogram, Seconds>,
    errors: Family<ErrorLabels, Counter>,
}

impl CloudMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self {
            durations: Family::new_with_constructor(Seconds),
            errors: Family::default(),
        };
        karpenter.register(
            "cloudprovider_duration_seconds",
            "Time of one call to the cloud with its retries",
            it.durations.clone(),
        );
        karpenter.register(
            "cloudprovider_errors",
            "Calls to the cloud that failed; a NodeClaimNotFoundError of Delete is the normal end of a deletion",
            it.errors.clone(),
        );
        it
    }

    /// A call ended.
    pub fn called(
        &self,
        controller: &'static str,
        method: &'static str,
        seconds: f64,
        error: Option<CallError>,
    ) {
        let provider = PROVIDER;
        let labels = CallLabels {
            controller,
            method,
            provider,
        };
        self.durations.get_or_create(&labels).observe(seconds);
        if let Some(error) = error.map(CallError::label) {
            let labels = ErrorLabels {
                controller,
                method,
                provider,
                error,
            };
            self.errors.get_or_create(&labels).inc();
        }
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        self.called("", "", 0.0, Some(CallError::Other));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text::encode;

    use super::*;

    #[test]
    fn a_launch_without_stock_shows_as_insufficient_capacity() {
        let mut registry = Registry::default();
        let metrics = CloudMetrics::new(&mut registry);

        metrics.called(
            "nodeclaim.lifecycle",
            "Create",
            0.3,
            Some(CallError::InsufficientCapacity),
        );
        metrics.called("nodeclaim.lifecycle", "Create", 0.4, None);

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let labels =
            "controller=\"nodeclaim.lifecycle\",method=\"Create\",provider=\"alibabacloud\"";
        for line in [
            format!("cloudprovider_errors_total{{{labels},error=\"InsufficientCapacityError\"}} 1"),
            format!("cloudprovider_duration_seconds_count{{{labels}}} 2"),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
