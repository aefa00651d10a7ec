//! What a controller writes to the API server, by its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// How kerf calls itself.
const AGENT: &str = "kerf/";

/// Requests of kerf that change something, and the pods that there were.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) pods: u64,
    pub(super) writes: u64,
    /// By verb and kind.
    pub(super) of: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    verb: &'a str,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<Object>,
}

#[derive(Deserialize)]
struct Object {
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
}

impl Told {
    /// Writes for each pod that was created.
    pub(super) fn per_pod(&self) -> f64 {
        let number = |it: u64| f64::from(u32::try_from(it).unwrap_or(u32::MAX));
        number(self.writes) / number(self.pods.max(1))
    }

    fn read(&mut self, line: &str) {
        let Ok(entry) = serde_json::from_str::<Entry<'_>>(line) else {
            return;
        };
        let object = entry.object_ref;
        let resource = object.as_ref().and_then(|it| it.resource.as_deref());
        let subresource = object.as_ref().and_then(|it| it.subresource.as_deref());
        let namespace = object.as_ref().and_then(|it| it.namespace.as_deref());
        let is_pod =
            resource == Some("pods") && subresource.is_none() && namespace == Some("default");
        self.pods += u64::from(is_pod && entry.verb == "create");
        if entry.user_agent.starts_with(AGENT) && !matches!(entry.verb, "get" | "list" | "watch") {
            self.writes += 1;
            let name = [resource, subresource].into_iter().flatten();
            let name: Vec<&str> = name.collect();
            *self
                .of
                .entry(format!("{} {}", entry.verb, name.join("/")))
                .or_default() += 1;
        }
    }
}

/// Of everything in the log.
pub(super) fn count(log: &Path) -> Result<Told> {
    let file = File::open(log).with_context(|| format!("cannot open {}", log.display()))?;
    let mut told = Told::default();
    for line in BufReader::new(file).lines() {
        told.read(&line.context("cannot read the audit log")?);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_writes_count_and_only_new_pods() {
        let line = |agent: &str, verb: &str, resource: &str, subresource: &str| {
            format!(
                r#"{{"verb":"{verb}","userAgent":"{agent}","objectRef":{{"resource":"{resource}","namespace":"default"{subresource}}}}}"#
            )
        };
        let status = r#","subresource":"status""#;
        let mut told = Told::default();

        told.read(&line("kube-controller-manager/v1", "create", "pods", ""));
        told.read(&line("kube-controller-manager/v1", "create", "pods", ""));
        told.read(&line("kerf/0.1.0", "list", "pods", ""));
        told.read(&line("kerf/0.1.0", "create", "nodeclaims", ""));
        told.read(&line("kerf/0.1.0", "patch", "nodeclaims", status));
        told.read("no JSON");

        assert_eq!((told.pods, told.writes), (2, 2));
        assert_eq!(told.of["patch nodeclaims/status"], 1);
        assert!((told.per_pod() - 1.0).abs() < 1e-9);
    }
}
