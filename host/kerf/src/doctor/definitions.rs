//! Whether the API server serves the kinds that kerf needs. Asked by discovery, which needs no right of its own.

use std::collections::BTreeSet;

use kube::Client;

use super::report::{Finding, Report};
use crate::args::Controller;

const NEXT: &str = "helm upgrade --install kerf-crd charts/kerf-crd --take-ownership";

/// Looks at each group and version.
pub(super) async fn examine(client: &Client, settings: &Controller, report: &mut Report) {
    let gates = settings.planning.feature_gates;
    let wanted: [(&str, &str, bool); 5] = [
        ("karpenter.sh/v1", "nodepools", true),
        ("karpenter.sh/v1", "nodeclaims", true),
        (
            "karpenter.alibabacloud.com/v1alpha1",
            "ecsnodeclasses",
            true,
        ),
        ("karpenter.sh/v1alpha1", "nodeoverlays", gates.node_overlay),
        (
            "autoscaling.x-k8s.io/v1beta1",
            "capacitybuffers",
            gates.capacity_buffer,
        ),
    ];
    let mut served = Vec::new();
    for (version, plural, is_needed) in wanted {
        if !is_needed {
            continue;
        }
        match kinds(client, version).await {
            Ok(kinds) if kinds.contains(plural) => served.push(plural),
            Ok(_) => {
                let group = version.split('/').next().unwrap_or_default();
                report.add(Finding::problem(
                    "definitions",
                    &format!("CustomResourceDefinition {plural}.{group}"),
                    format!("the API server does not serve {plural} of {version}"),
                    NEXT,
                ));
            }
            Err(message) => report.add(Finding::warning(
                "definitions",
                version,
                format!("cannot be looked at: {message}"),
                "ask again when the API server answers",
            )),
        }
    }
    if !served.is_empty() {
        report.fine("definitions", format!("{} are served", served.join(", ")));
    }
}

/// The plurals of a group's version; none where there is no such version.
async fn kinds(client: &Client, version: &str) -> Result<BTreeSet<String>, String> {
    match client.list_api_group_resources(version).await {
        Ok(list) => Ok(list.resources.into_iter().map(|it| it.name).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(BTreeSet::new()),
        Err(error) => Err(format!("{error:#}")),
    }
}
