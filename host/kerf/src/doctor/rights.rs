//! Whether the one who looks has every right that the chart grants, by SelfSubjectAccessReviews.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kerf_controllers::api_call::bounded;
use kube::api::PostParams;
use kube::{Api, Client};

use super::report::{Finding, Report};
use crate::args::Controller;

/// Where and when a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Everywhere.
    Cluster,
    /// In the controller's namespace.
    Namespace,
    /// Everywhere, with default spread constraints.
    DefaultSpread,
    /// Everywhere, with this gate.
    NodeOverlay,
    /// Everywhere, with this gate.
    CapacityBuffer,
}

/// Group, resource (with a subresource), verbs, need: the chart's templates/rbac.yaml, which a test holds against this.
type Right = (&'static str, &'static str, &'static [&'static str], Need);

const WATCH: &[&str] = &["list", "watch"];
const RIGHTS: &[Right] = &[
    ("", "pods", &["list", "watch", "delete"], Need::Cluster),
    ("", "pods/eviction", &["create"], Need::Cluster),
    (
        "",
        "nodes",
        &["list", "watch", "patch", "delete"],
        Need::Cluster,
    ),
    ("", "namespaces", WATCH, Need::Cluster),
    ("", "persistentvolumes", WATCH, Need::Cluster),
    (
        "",
        "persistentvolumeclaims",
        &["get", "list", "watch"],
        Need::Cluster,
    ),
    ("storage.k8s.io", "storageclasses", WATCH, Need::Cluster),
    ("storage.k8s.io", "csinodes", WATCH, Need::Cluster),
    (
        "storage.k8s.io",
        "volumeattachments",
        &["list"],
        Need::Cluster,
    ),
    ("apps", "daemonsets", WATCH, Need::Cluster),
    ("policy", "poddisruptionbudgets", WATCH, Need::Cluster),
    (
        "karpenter.sh",
        "nodepools",
        &["list", "watch", "patch"],
        Need::Cluster,
    ),
    (
        "karpenter.sh",
        "nodeclaims",
        &["list", "watch", "create", "patch", "delete"],
        Need::Cluster,
    ),
    (
        "karpenter.alibabacloud.com",
        "ecsnodeclasses",
        &["list", "watch", "patch"],
        Need::Cluster,
    ),
    (
        "karpenter.sh",
        "nodepools/status",
        &["patch"],
        Need::Cluster,
    ),
    (
        "karpenter.sh",
        "nodeclaims/status",
        &["patch"],
        Need::Cluster,
    ),
    (
        "karpenter.alibabacloud.com",
        "ecsnodeclasses/status",
        &["patch"],
        Need::Cluster,
    ),
    (
        "events.k8s.io",
        "events",
        &["create", "patch"],
        Need::Cluster,
    ),
    ("", "services", WATCH, Need::DefaultSpread),
    ("", "replicationcontrollers", WATCH, Need::DefaultSpread),
    ("apps", "replicasets", WATCH, Need::DefaultSpread),
    ("apps", "statefulsets", WATCH, Need::DefaultSpread),
    ("karpenter.sh", "nodeoverlays", WATCH, Need::NodeOverlay),
    (
        "karpenter.sh",
        "nodeoverlays/status",
        &["patch"],
        Need::NodeOverlay,
    ),
    (
        "autoscaling.x-k8s.io",
        "capacitybuffers",
        WATCH,
        Need::CapacityBuffer,
    ),
    (
        "autoscaling.x-k8s.io",
        "capacitybuffers/status",
        &["patch"],
        Need::CapacityBuffer,
    ),
    ("", "podtemplates", &["get"], Need::CapacityBuffer),
    ("apps", "deployments", &["get"], Need::CapacityBuffer),
    ("apps", "replicasets", &["get"], Need::CapacityBuffer),
    ("apps", "statefulsets", &["get"], Need::CapacityBuffer),
    ("", "configmaps", WATCH, Need::Namespace),
    (
        "",
        "configmaps",
        &["get", "create", "patch"],
        Need::Namespace,
    ),
    (
        "coordination.k8s.io",
        "leases",
        &["create", "get", "patch"],
        Need::Namespace,
    ),
];

/// The ConfigMap that the controller writes.
const MEMORY: &str = kerf_api::memory::MEMORY_NAME;

/// Asks for each right.
pub(super) async fn examine(client: &Client, settings: &Controller, report: &mut Report) {
    let mut granted = 0_usize;
    for right in RIGHTS
        .iter()
        .filter(|(.., need)| is_needed(*need, settings))
    {
        for verb in right.2 {
            match ask(client, attributes(right, verb, settings)).await {
                Ok(true) => granted += 1,
                Ok(false) => report.add(missing(right, verb, settings)),
                Err(error) => {
                    report.add(Finding::warning(
                        "rights",
                        "SelfSubjectAccessReview",
                        format!("the API server does not say which rights there are: {error:#}"),
                        "ask again when it answers",
                    ));
                    return;
                }
            }
        }
    }
    report.fine("rights", format!("{granted} are granted"));
}

fn is_needed(need: Need, settings: &Controller) -> bool {
    let gates = settings.planning.feature_gates;
    match need {
        Need::Cluster | Need::Namespace => true,
        Need::DefaultSpread => !settings.planning.scheduler_config.0.is_empty(),
        Need::NodeOverlay => gates.node_overlay,
        Need::CapacityBuffer => gates.capacity_buffer,
    }
}

fn attributes(
    (group, resource, _, need): &Right,
    verb: &str,
    settings: &Controller,
) -> ResourceAttributes {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (*resource, None),
    };
    let is_named = *need == Need::Namespace && matches!(verb, "get" | "patch" | "create");
    let name = match resource {
        "configmaps" => Some(MEMORY.to_owned()),
        // A request that creates has no name yet.
        "leases" if verb != "create" => Some(settings.process.leader_election_name.clone()),
        _ => None,
    };
    ResourceAttributes {
        group: Some((*group).to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        namespace: (*need == Need::Namespace).then(|| namespace(resource, settings)),
        name: name.filter(|_| is_named),
        ..ResourceAttributes::default()
    }
}

/// The lease may be in another namespace than everything else.
fn namespace(resource: &str, settings: &Controller) -> String {
    let of_lease = &settings.process.leader_election_namespace;
    if resource == "leases" && !of_lease.is_empty() {
        of_lease.clone()
    } else {
        settings.namespace.clone()
    }
}

async fn ask(client: &Client, attributes: ResourceAttributes) -> Result<bool, kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = bounded(api.create(&PostParams::default(), &review)).await?;
    Ok(answer.status.is_some_and(|it| it.allowed))
}

fn missing((group, resource, _, need): &Right, verb: &str, settings: &Controller) -> Finding {
    let (kind, place) = match need {
        Need::Namespace => (
            "Role",
            format!(" in namespace {}", namespace(resource, settings)),
        ),
        _ => ("ClusterRole", String::new()),
    };
    let shown = if group.is_empty() {
        "the core group"
    } else {
        group
    };
    Finding::problem(
        "rights",
        &format!("{kind} of the controller"),
        format!("may not {verb} {resource} of {shown}{place}"),
        "helm upgrade brings the chart's rights back; if you are not the controller yourself, add --as system:serviceaccount:NAMESPACE:NAME",
    )
    .at(&format!("rules: {{apiGroups: [{group:?}], resources: [{resource}], verbs: [{verb}]}}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words of a YAML list in one line.
    fn words(line: &str) -> Vec<String> {
        let inside = line
            .split_once('[')
            .unwrap()
            .1
            .trim_end()
            .trim_end_matches(']');
        inside
            .split(',')
            .map(|it| it.trim().trim_matches('"').to_owned())
            .collect()
    }

    #[test]
    fn what_is_asked_for_is_what_the_chart_grants() {
        let chart = include_str!("../../../../charts/kerf/templates/rbac.yaml");
        let mut granted = BTreeSet::new();
        let (mut groups, mut resources) = (Vec::new(), Vec::new());
        for line in chart.lines().map(str::trim_start) {
            if line.starts_with("- apiGroups: [") {
                groups = words(line);
            } else if line.starts_with("resources: [") {
                resources = words(line);
            } else if line.starts_with("verbs: [") {
                for (group, resource) in groups
                    .iter()
                    .flat_map(|it| resources.iter().map(move |other| (it, other)))
                {
                    granted.extend(
                        words(line)
                            .into_iter()
                            .map(|verb| (group.clone(), resource.clone(), verb)),
                    );
                }
            }
        }

        let asked: BTreeSet<_> = RIGHTS
            .iter()
            .flat_map(|(group, resource, verbs, _)| {
                verbs.iter().map(|verb| {
                    (
                        (*group).to_owned(),
                        (*resource).to_owned(),
                        (*verb).to_owned(),
                    )
                })
            })
            .collect();

        assert_eq!(asked, granted);
    }
}
