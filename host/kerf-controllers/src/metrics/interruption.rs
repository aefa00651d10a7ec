//! Announced interruptions, and what became of them.

use jiff::Timestamp;
use kerf_api::names::label;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Durations;
use crate::interruption::notice::Notice;

/// What was announced, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoticeLabels {
    /// `spot_reclaim`, `failure` or `maintenance`.
    kind: &'static str,
    /// `lock`, `events` or `conditions`.
    source: &'static str,
    nodepool: String,
}

/// How a drain began.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DrainLabels {
    kind: &'static str,
    /// Whether there was room for all of its pods.
    has_room: &'static str,
}

/// What interruptions count.
#[derive(Debug)]
pub struct InterruptionMetrics {
    notices: Family<NoticeLabels, Counter>,
    drains: Family<DrainLabels, Counter>,
    waits: Family<DrainLabels, Histogram, Durations>,
}

impl InterruptionMetrics {
    /// Registers them; the registry's prefix is ours.
    #[must_use]
    pub fn new(kerf: &mut Registry) -> Self {
        let it = Self {
            notices: Family::default(),
            drains: Family::default(),
            waits: Family::new_with_constructor(Durations),
        };
        kerf.register(
            "interruption_notices",
            "Interruptions announced for NodeClaims",
            it.notices.clone(),
        );
        kerf.register(
            "interruption_drains",
            "Drains begun because of an announced interruption, with room for the pods or because there was no time left",
            it.drains.clone(),
        );
        kerf.register(
            "interruption_wait_duration_seconds",
            "Time from the notice until the drain began",
            it.waits.clone(),
        );
        it
    }

    /// A claim's first notice.
    pub fn announced(&self, claim: &NodeClaim, notice: &Notice) {
        let labels = NoticeLabels {
            kind: notice.kind.as_str(),
            source: notice.source.as_str(),
            nodepool: claim
                .labels()
                .get(label::NODEPOOL)
                .cloned()
                .unwrap_or_default(),
        };
        self.notices.get_or_create(&labels).inc();
    }

    /// A claim is drained from now on.
    pub fn drained(&self, notice: &Notice, has_room: bool, now: Timestamp) {
        let labels = DrainLabels {
            kind: notice.kind.as_str(),
            has_room: if has_room { "true" } else { "false" },
        };
        let waited = now.duration_since(notice.noticed_at).as_secs_f64();
        self.drains.get_or_create(&labels).inc();
        self.waits.get_or_create(&labels).observe(waited);
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let labels = NoticeLabels {
            kind: "",
            source: "",
            nodepool: String::new(),
        };
        self.notices.get_or_create(&labels).inc();
        let labels = DrainLabels {
            kind: "",
            has_room: "",
        };
        self.drains.get_or_create(&labels).inc();
        self.waits.get_or_create(&labels).observe(0.0);
    }
}
