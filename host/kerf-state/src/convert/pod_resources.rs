//! What a pod asks for, all containers together.
//!
//! Karpenter: same, which is what the kube-scheduler counts: a container that is being resized counts with the most of
//! what it asked for, was given and has; sidecars add up; other init containers run one at a time; the pod's own
//! requests override those of its containers; overhead comes on top.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_core::resources::{PODS, Resources};

use super::quantities::resources;
use crate::problem::Problems;

/// The pod's requests, with `pods: 1`.
pub(crate) fn requests(
    spec: &k8s::PodSpec,
    status: Option<&k8s::PodStatus>,
    problems: &mut Problems,
) -> Resources {
    let statuses = Statuses::of(status, problems);
    let mut total = Resources::default();
    for container in &spec.containers {
        let own = container_requests(container, "spec.containers", problems);
        total.add(&statuses.raise(&container.name, own));
    }

    let mut sidecars = Resources::default();
    let mut peak_of_init = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let own = container_requests(container, "spec.initContainers", problems);
        if container.restart_policy.as_deref() == Some("Always") {
            let own = statuses.raise(&container.name, own);
            total.add(&own);
            sidecars.add(&own);
            peak_of_init.raise_to(&sidecars);
        } else {
            let mut with_sidecars = own;
            with_sidecars.add(&sidecars);
            peak_of_init.raise_to(&with_sidecars);
        }
    }
    total.raise_to(&peak_of_init);

    override_by_pod(&mut total, spec, problems);
    if let Some(overhead) = &spec.overhead {
        total.add(&resources(overhead, "spec.overhead", problems));
    }
    total.set(PODS, 1);
    total
}

/// Requests of one container. What it limits and does not request it requests, as the API server would fill in.
fn container_requests(
    container: &k8s::Container,
    field: &str,
    problems: &mut Problems,
) -> Resources {
    let Some(own) = &container.resources else {
        return Resources::default();
    };
    let field = format!("{field}[{}].resources", container.name);
    let filled = fill_from_limits(own.requests.as_ref(), own.limits.as_ref());
    resources(&filled, &format!("{field}.requests"), problems)
}

fn fill_from_limits(
    requests: Option<&BTreeMap<String, Quantity>>,
    limits: Option<&BTreeMap<String, Quantity>>,
) -> BTreeMap<String, Quantity> {
    let mut filled = limits.cloned().unwrap_or_default();
    filled.extend(requests.cloned().unwrap_or_default());
    filled
}

/// Pod-level requests count instead of those of the containers, for the resources that Kubernetes has them for.
fn override_by_pod(total: &mut Resources, spec: &k8s::PodSpec, problems: &mut Problems) {
    let Some(own) = &spec.resources else { return };
    let mut filled = fill_from_limits(own.requests.as_ref(), own.limits.as_ref());
    filled.retain(|name, _| name == "cpu" || name == "memory" || name.starts_with("hugepages-"));
    for (name, amount) in resources(&filled, "spec.resources.requests", problems).iter() {
        total.set(name, amount);
    }
}

/// What the kubelet says that containers have been given, for pods that are being resized.
struct Statuses<'a> {
    given: BTreeMap<&'a str, Resources>,
    resize_is_infeasible: bool,
}

impl<'a> Statuses<'a> {
    fn of(status: Option<&'a k8s::PodStatus>, problems: &mut Problems) -> Self {
        let mut given = BTreeMap::new();
        let Some(status) = status else {
            return Self {
                given,
                resize_is_infeasible: false,
            };
        };

        let containers = status
            .container_statuses
            .iter()
            .chain(&status.init_container_statuses);
        for container in containers.flatten() {
            let Some(actual) = &container.resources else {
                continue;
            };
            let field = format!("status.containerStatuses[{}]", container.name);
            let empty = BTreeMap::new();
            let actual = actual.requests.as_ref().unwrap_or(&empty);
            let allocated = container.allocated_resources.as_ref().unwrap_or(&empty);
            let mut most = resources(actual, &format!("{field}.resources.requests"), problems);
            most.raise_to(&resources(
                allocated,
                &format!("{field}.allocatedResources"),
                problems,
            ));
            given.insert(container.name.as_str(), most);
        }
        let resize_is_infeasible = status.conditions.iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending"
                && condition.status == "True"
                && condition.reason.as_deref() == Some("Infeasible")
        });
        Self {
            given,
            resize_is_infeasible,
        }
    }

    /// What the container counts with. A resize that can never happen does not count.
    fn raise(&self, container: &str, mut own: Resources) -> Resources {
        match self.given.get(container) {
            None => own,
            Some(given) if self.resize_is_infeasible => given.clone(),
            Some(given) => {
                own.raise_to(given);
                own
            }
        }
    }
}
