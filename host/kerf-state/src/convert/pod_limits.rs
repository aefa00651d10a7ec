//! What a pod may use at most. No decision looks at it; metrics do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_core::resources::Resources;

use super::quantities::resources;
use crate::problem::Problems;

/// The limits of all containers together, as requests are added up; what no container limits is not in it, and amounts
/// that cannot be read are left out.
#[must_use]
pub fn pod_limits(spec: &k8s::PodSpec) -> Resources {
    let mut total = Resources::default();
    for container in &spec.containers {
        total.add(&of(container));
    }
    let mut sidecars = Resources::default();
    let mut peak_of_init = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let mut own = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            total.add(&own);
            sidecars.add(&own);
            own = sidecars.clone();
        } else {
            own.add(&sidecars);
        }
        peak_of_init.raise_to(&own);
    }
    total.raise_to(&peak_of_init);
    let of_pod = spec.resources.as_ref().and_then(|it| it.limits.as_ref());
    for (name, amount) in read(of_pod).iter() {
        total.set(name, amount);
    }
    for (name, amount) in read(spec.overhead.as_ref()).iter() {
        let limit = total.amount(name);
        if limit > 0 {
            total.set(name, limit.saturating_add(amount));
        }
    }
    total
}

fn of(container: &k8s::Container) -> Resources {
    let own = container.resources.as_ref();
    read(own.and_then(|it| it.limits.as_ref()))
}

fn read(list: Option<&BTreeMap<String, Quantity>>) -> Resources {
    let mut unread = Problems::default();
    list.map_or_else(Resources::default, |list| {
        resources(list, "limits", &mut unread)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits(spec: Value) -> Resources {
        pod_limits(&serde_json::from_value(spec).unwrap())
    }

    fn container(cpu: &str) -> Value {
        json!({"name": cpu, "resources": {"limits": {"cpu": cpu}}})
    }

    #[test]
    fn limits_add_up_as_requests_do_and_overhead_only_raises_what_is_limited() {
        let spec = json!({
            "containers": [container("500m"), {"name": "free"}],
            "initContainers": [container("2")],
            "overhead": {"cpu": "100m", "memory": "1Gi"},
        });
        let sized =
            json!({"containers": [container("500m")], "resources": {"limits": {"cpu": "3"}}});

        assert_eq!(limits(spec), Resources::of(2100, 0));
        assert_eq!(limits(sized), Resources::of(3000, 0));
        assert!(limits(json!({"containers": [{"name": "free"}]})).is_empty());
    }
}
