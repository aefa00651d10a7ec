//! The API server's audit log against the rights that the chart gives. Pure, but for reading the roles.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::objects::{NAMESPACE, RELEASE};
use crate::demo::api_server::ApiServer;

/// One verb on one kind, as a rule grants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    namespace: Option<String>,
    group: String,
    /// With its subresource.
    resource: String,
    names: Vec<String>,
    verb: String,
}

/// All rights of the service account.
#[derive(Debug)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    pub(super) fn read(api: &ApiServer) -> Result<Self> {
        let base = "/apis/rbac.authorization.k8s.io/v1";
        let cluster = api.get(&format!("{base}/clusterroles/{RELEASE}"))?;
        let own = api.get(&format!("{base}/namespaces/{NAMESPACE}/roles/{RELEASE}"))?;
        let mut grants = grants(&cluster, None);
        grants.extend(grants_of_namespace(&own));
        Ok(Self(grants))
    }

    /// Those that no request of the log needed.
    pub(super) fn unused(&self, log: &str) -> Vec<String> {
        let entries: Vec<Value> = requests(log).collect();
        let is_used = |grant: &&Grant| entries.iter().any(|entry| grant.covers(entry));
        self.0
            .iter()
            .filter(|grant| !is_used(grant))
            .map(Grant::show)
            .collect()
    }
}

fn grants_of_namespace(role: &Value) -> Vec<Grant> {
    grants(role, Some(NAMESPACE))
}

fn grants(role: &Value, namespace: Option<&str>) -> Vec<Grant> {
    let mut found = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    found.push(Grant {
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        names: texts(&rule["resourceNames"]),
                        verb,
                    });
                }
            }
        }
    }
    found
}

impl Grant {
    /// An apply that made its object needed `create` besides `patch`.
    fn covers(&self, entry: &Value) -> bool {
        let object = &entry["objectRef"];
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let resource = match text("subresource") {
            "" => text("resource").to_owned(),
            sub => format!("{}/{sub}", text("resource")),
        };
        let verb = entry["verb"].as_str().unwrap_or_default();
        let is_making = verb == "patch" && entry["responseStatus"]["code"] == 201;
        (verb == self.verb || is_making && self.verb == "create")
            && text("apiGroup") == self.group
            && resource == self.resource
            && self
                .namespace
                .as_ref()
                .is_none_or(|it| it == text("namespace"))
            && (self.names.is_empty() || self.names.iter().any(|it| it == text("name")))
    }

    fn show(&self) -> String {
        let names = if self.names.is_empty() {
            String::new()
        } else {
            format!(" {}", self.names.join(","))
        };
        format!(
            "{} {}{}{names}",
            self.verb,
            self.resource,
            suffix(&self.group)
        )
    }
}

/// Requests that were refused for lack of a right, each kind once.
pub(super) fn denials(log: &str) -> Vec<String> {
    let refused = requests(log).filter(|entry| entry["responseStatus"]["code"] == 403);
    let shown: BTreeSet<String> = refused
        .map(|entry| {
            let object = &entry["objectRef"];
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let verb = entry["verb"].as_str().unwrap_or_default();
            format!(
                "{verb} {}/{}{} {}/{}",
                text("resource"),
                text("subresource"),
                suffix(text("apiGroup")),
                text("namespace"),
                text("name")
            )
        })
        .collect();
    shown.into_iter().collect()
}

/// What the service account asked for.
fn requests(log: &str) -> impl Iterator<Item = Value> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{RELEASE}");
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(move |entry| entry["user"]["username"] == user.as_str())
}

fn suffix(group: &str) -> String {
    if group.is_empty() {
        String::new()
    } else {
        format!(".{group}")
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(verb: &str, resource: &str, name: &str, code: u16) -> String {
        json!({
            "user": {"username": "system:serviceaccount:kerf-system:kerf"}, "verb": verb,
            "objectRef": {"resource": resource, "namespace": "kerf-system", "name": name},
            "responseStatus": {"code": code},
        })
        .to_string()
    }

    fn role(names: &[&str], verbs: &[&str]) -> Grants {
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": verbs});
        Grants(grants_of_namespace(&json!({"rules": [rule]})))
    }

    #[test]
    fn an_apply_that_makes_its_object_uses_create_and_patch() {
        let log = [
            entry("patch", "configmaps", "a", 201),
            entry("patch", "configmaps", "a", 200),
        ]
        .join("\n");

        assert!(role(&["a"], &["create", "patch"]).unused(&log).is_empty());
        assert_eq!(
            role(&["b"], &["patch"]).unused(&log),
            ["patch configmaps b"]
        );
        assert_eq!(role(&[], &["list"]).unused(&log), ["list configmaps"]);
    }

    #[test]
    fn a_refusal_counts_once_and_only_of_the_service_account() {
        let other = entry("get", "secrets", "x", 403).replace(":kerf\"", ":other\"");
        let log = [
            entry("get", "secrets", "x", 403),
            entry("get", "secrets", "x", 403),
            other,
        ]
        .join("\n");

        assert_eq!(denials(&log), ["get secrets/ kerf-system/x"]);
    }
}
