//! What runs here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// What runs here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildLabels {
    version: &'static str,
    goversion: &'static str,
    goarch: &'static str,
    commit: &'static str,
}

/// Karpenter's labels; there is no Go here.
pub(super) fn info() -> Family<BuildLabels, Gauge> {
    let info = Family::<BuildLabels, Gauge>::default();
    let labels = BuildLabels {
        version: env!("CARGO_PKG_VERSION"),
        goversion: "",
        goarch: match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        },
        commit: option_env!("KERF_COMMIT").unwrap_or_default(),
    };
    info.get_or_create(&labels).set(1);
    info
}
