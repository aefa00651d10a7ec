//! What a claim is launched from: written into it before each attempt, compared with what holds later.

use std::collections::BTreeMap;
use std::time::Instant;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::policy::PolicyMode;
use kerf_api::names::{annotation, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_policy::PolicyState;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use crate::context::Context;
use crate::disruption::hash::CLASS_HASH;
use crate::node_class::ClassState;

/// What an attempt is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    class_hash: String,
    /// None while a policy that counts is not loaded.
    policies: Option<String>,
}

impl Origin {
    /// Of a launch that begins now.
    #[must_use]
    pub fn of(claim: &NodeClaim, class: &ClassState, context: &Context) -> Self {
        let pool = claim.labels().get(label::NODEPOOL);
        let name = &claim.spec.node_class_ref.name;
        Self {
            class_hash: class.hash.clone(),
            policies: policies(name, pool.map_or("", String::as_str), context),
        }
    }

    /// Writes it down.
    pub fn put(&self, annotations: &mut BTreeMap<String, String>) {
        CLASS_HASH.put(&self.class_hash, annotations);
        match &self.policies {
            Some(policies) => {
                annotations.insert(annotation::LAUNCH_POLICIES.to_owned(), policies.clone());
            }
            None => drop(annotations.remove(annotation::LAUNCH_POLICIES)),
        }
    }
}

/// The versions of the policies whose change rolls out the nodes of a pool, as they serve now; none when one of them
/// does not serve, since nobody knows then what a new node would be.
#[must_use]
pub fn policies(class: &str, pool: &str, context: &Context) -> Option<String> {
    let object = context.stores.node_classes.get(&ObjectRef::new(class))?;
    let statuses = context.policies.registry().statuses(class, Instant::now());
    let digests = statuses
        .into_iter()
        // An older version, or one with an older configuration, is not what the class declares.
        .filter(|status| status.state == PolicyState::Ready)
        .filter_map(|status| Some((status.name, status.digest?.to_string())))
        .collect();
    marks(&object, pool, &digests)
}

/// Pure.
fn marks(class: &EcsNodeClass, pool: &str, digests: &BTreeMap<String, String>) -> Option<String> {
    let counts = class.spec.policies.iter().filter(|policy| {
        policy.effective_rollout_on_change()
            && policy.is_for(pool)
            && policy.mode != PolicyMode::Monitor
    });
    let marks = counts.map(|policy| digests.get(&policy.name).map(|digest| policy.mark(digest)));
    let mut marks: Vec<String> = marks.collect::<Option<_>>()?;
    marks.sort_unstable();
    Some(marks.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(policies: &serde_json::Value) -> EcsNodeClass {
        let spec = serde_json::from_value(json!({ "policies": policies })).unwrap();
        EcsNodeClass::new("default", spec)
    }

    fn digests(names: &[&str]) -> BTreeMap<String, String> {
        let digest = "sha256:1";
        names
            .iter()
            .map(|name| ((*name).to_owned(), digest.to_owned()))
            .collect()
    }

    #[test]
    fn only_policies_whose_change_rolls_out_are_remembered() {
        let source = json!({"path": "/x.wasm"});
        let class = class(&json!([
            {"name": "data", "hook": "BootstrapUserData", "source": source, "config": {"a": 1}},
            {"name": "rank", "hook": "InstanceSelection", "source": source},
            {"name": "keen", "hook": "InstanceSelection", "source": source, "rolloutOnChange": true},
            {"name": "other", "hook": "BootstrapUserData", "source": source, "nodePools": ["other"]},
            {"name": "watch", "hook": "BootstrapUserData", "source": source, "mode": "Monitor"},
        ]));

        let found = marks(&class, "general", &digests(&["data", "rank", "keen"])).unwrap();

        let names: Vec<&str> = found
            .split(',')
            .filter_map(|mark| Some(mark.split_once('=')?.0))
            .collect();
        assert_eq!(names, ["data", "keen"]);
        assert_eq!(marks(&class, "general", &digests(&["keen"])), None);
    }

    #[test]
    fn another_config_is_another_mark() {
        let policy = |config: i32| {
            let source = json!({"path": "/x.wasm"});
            class(
                &json!([{"name": "data", "hook": "BootstrapUserData", "source": source, "config": {"a": config}}]),
            )
        };

        assert_ne!(
            marks(&policy(1), "general", &digests(&["data"])),
            marks(&policy(2), "general", &digests(&["data"]))
        );
    }
}
