//! What the NodePools, ECSNodeClasses and policies of the cluster say of themselves, and whether they fit together.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::status::PolicyState;
use kerf_api::nodepool::NodePool;
use kerf_controllers::adoption::is_ours;
use kerf_controllers::api_call::bounded;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::report::{Finding, Report};
use crate::args::Controller;

const POLICY_LABEL: &str = kerf_api::names::label::POLICY;

/// Looks at them; the classes, for what is asked of the cloud.
pub(super) async fn examine(
    client: &Client,
    settings: &Controller,
    report: &mut Report,
) -> Vec<EcsNodeClass> {
    let classes = list(Api::<EcsNodeClass>::all(client.clone()), report)
        .await
        .unwrap_or_default();
    let pools = list(Api::<NodePool>::all(client.clone()), report)
        .await
        .unwrap_or_default();
    let maps = list(
        Api::<ConfigMap>::namespaced(client.clone(), &settings.namespace),
        report,
    )
    .await;
    let names: BTreeSet<String> = classes.iter().map(ResourceExt::name_any).collect();
    let ours: Vec<&NodePool> = pools
        .iter()
        .filter(|it| is_ours(&it.spec.template.spec.node_class_ref))
        .collect();
    if ours.is_empty() {
        report.add(Finding::warning(
            "nodepools",
            "NodePool",
            "there is none, so that no node is ever made".to_owned(),
            "kubectl apply -f examples/quickstart, or the chart's nodePool.create and nodeClass.create",
        ));
    }
    for pool in ours {
        pool_of(pool, &names, report);
    }
    for class in &classes {
        let object = format!("ECSNodeClass {}", class.name_any());
        conditions("nodeclasses", &object, class.conditions(), report);
        policies(class, &object, maps.as_deref(), report);
    }
    classes
}

async fn list<K>(api: Api<K>, report: &mut Report) -> Option<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match bounded(api.list(&ListParams::default())).await {
        Ok(list) => Some(list.items),
        Err(error) => {
            report.add(Finding::warning(
                "objects",
                &K::plural(&()),
                format!("cannot be listed: {error:#}"),
                "see what is said of definitions and rights",
            ));
            None
        }
    }
}

fn pool_of(pool: &NodePool, classes: &BTreeSet<String>, report: &mut Report) {
    let object = format!("NodePool {}", pool.name_any());
    let class = &pool.spec.template.spec.node_class_ref.name;
    if classes.contains(class) {
        conditions("nodepools", &object, pool.conditions(), report);
        return;
    }
    let finding = Finding::problem(
        "nodepools",
        &object,
        format!("names the ECSNodeClass {class}, which does not exist"),
        "create it, or name one that exists",
    );
    report.add(finding.at("spec.template.spec.nodeClassRef.name"));
}

/// Each condition that is False says itself what is wrong and what to do.
fn conditions(check: &'static str, object: &str, conditions: &[Condition], report: &mut Report) {
    let Some(ready) = kerf_api::condition::find(conditions, "Ready") else {
        report.add(Finding::warning(
            check,
            object,
            "no controller has looked at it yet".to_owned(),
            "is one running, and does it hold the lease? kubectl -n kerf-system get pods,leases",
        ));
        return;
    };
    if ready.is_true() {
        report.fine(check, format!("{object} is ready"));
        return;
    }
    for condition in conditions
        .iter()
        .filter(|it| it.status == ConditionStatus::False && it.type_ != "Ready")
    {
        let finding = Finding::problem(
            check,
            object,
            format!("{}: {}", condition.reason, condition.message),
            "docs/troubleshooting.md has a paragraph for each reason",
        );
        report.add(finding.at(&format!("status.conditions[{}]", condition.type_)));
    }
}

fn policies(class: &EcsNodeClass, object: &str, maps: Option<&[ConfigMap]>, report: &mut Report) {
    for policy in &class.spec.policies {
        let source = policy.source.config_map.as_ref();
        let source = source.and_then(|it| it.name.as_deref());
        if let (Some(name), Some(maps)) = (source, maps) {
            source_of(&policy.name, object, name, maps, report);
        }
    }
    let states = class
        .status
        .as_ref()
        .map(|it| &it.policies[..])
        .unwrap_or_default();
    for state in states {
        match &state.last_error {
            None if state.state == PolicyState::Ready => {
                report.fine(
                    "policies",
                    format!("{object}: policy {} serves", state.name),
                );
            }
            None => {}
            Some(error) => {
                let finding = Finding::problem(
                    "policies",
                    object,
                    format!("policy {} is {}: {error}", state.name, state.state.as_str()),
                    "docs/policies.md; the last version that loaded goes on serving",
                );
                report.add(finding.at(&format!("spec.policies[{}]", state.name)));
            }
        }
    }
}

fn source_of(policy: &str, object: &str, name: &str, maps: &[ConfigMap], report: &mut Report) {
    let field = format!("spec.policies[{policy}].source.configMap.name");
    let Some(map) = maps.iter().find(|it| it.name_any() == name) else {
        let finding = Finding::problem(
            "policies",
            object,
            format!("the ConfigMap {name} does not exist in the controller's namespace"),
            "create it there, with the component under binaryData",
        );
        report.add(finding.at(&field));
        return;
    };
    if map.labels().get(POLICY_LABEL).is_none_or(|it| it != "true") {
        let finding = Finding::problem(
            "policies",
            object,
            format!("the ConfigMap {name} is not read without its label"),
            &format!("kubectl label configmap {name} {POLICY_LABEL}=true"),
        );
        report.add(finding.at(&field));
    }
}
