//! When a server counts as ready, and which servers wait for each other.

use crate::port::Ports;
use crate::{Component, Options};

/// What a test finds in every cluster. Without the service account no pod can be created.
const NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-node-lease"];
const SERVICE_ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// Everything that must answer with success before `component` counts as ready.
pub(crate) fn probes(component: Component, ports: Ports) -> Vec<String> {
    let Ports {
        etcd,
        etcd_peer: _,
        api_server,
        scheduler,
        controller_manager,
        kwok,
    } = ports;
    match component {
        Component::Etcd => vec![format!("http://127.0.0.1:{etcd}/readyz")],
        Component::ApiServer => {
            let namespaces = NAMESPACES.map(|name| format!("/api/v1/namespaces/{name}"));
            std::iter::once("/readyz".to_owned())
                .chain(namespaces)
                .map(|path| format!("https://127.0.0.1:{api_server}{path}"))
                .collect()
        }
        Component::Scheduler => vec![format!("https://127.0.0.1:{scheduler}/readyz")],
        Component::ControllerManager => vec![
            format!("https://127.0.0.1:{controller_manager}/healthz"),
            format!("https://127.0.0.1:{api_server}{SERVICE_ACCOUNT}"),
        ],
        Component::Kwok => vec![format!("http://127.0.0.1:{kwok}/readyz")],
    }
}

/// The servers of one step start together, after those of the step before are ready.
pub(crate) fn start_order(options: &Options) -> Vec<Vec<Component>> {
    let steps: [&[Component]; 3] = [
        &[Component::Etcd],
        &[Component::ApiServer],
        &[
            Component::Scheduler,
            Component::ControllerManager,
            Component::Kwok,
        ],
    ];
    let wanted = |step: &[Component]| -> Vec<_> {
        step.iter()
            .copied()
            .filter(|component| options.runs(*component))
            .collect()
    };
    steps.into_iter().map(wanted).collect()
}
