//! What is wrong with manifests: what an API server would refuse, and names that lead nowhere.

use kerf_cloud::provider::catalog::Catalog as TypeCatalog;
use kerf_core::labels;
use kerf_state::Cluster;
use serde_json::Value;

use crate::document::{Document, join};
use crate::simulate::complaint::Complaint;
use crate::simulate::world::Owners;
use crate::validate::Definitions;

const REFUSED: &str = "an API server refuses this too; correct the field";
/// Types of the same family that are named in place of one that does not exist.
const NEAR_MAX: usize = 4;

/// What the definitions of our own kinds refuse.
pub(crate) fn refused(items: &[Document]) -> Result<Vec<Complaint>, Vec<Complaint>> {
    let definitions = Definitions::load()
        .map_err(|error| vec![Complaint::of("the definitions", &error.to_string())])?;
    let complaints = items.iter().flat_map(|item| {
        let findings = definitions.check(&item.value, None).into_iter();
        findings.map(|it| Complaint::at(item, &it.path, &it.reason).hint(REFUSED))
    });
    Ok(complaints.collect())
}

/// What the index could not use: refused where an API server refuses it too, else a note.
pub(crate) fn unusable(
    cluster: &Cluster,
    items: &[Document],
    owners: &Owners,
    notes: &mut Vec<Complaint>,
) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for problem in cluster.problems() {
        let field = &problem.problem.field;
        let name = &*problem.key.name;
        let key = (problem.key.namespace.to_string(), name.to_owned());
        let by_name = || {
            let is_it = |it: &Document| it.kind() == problem.kind.as_str() && it.name() == name;
            items.iter().position(is_it)
        };
        let index = owners.get(&key).map(|(_, item)| *item).or_else(by_name);
        let Some(item) = index.and_then(|index| items.get(index)) else {
            continue;
        };
        let prefix = template(item.kind()).filter(|it| !it.is_empty());
        let path = prefix.map_or_else(|| field.clone(), |prefix| format!("{prefix}.{field}"));
        let complaint = Complaint::at(item, &path, &problem.problem.message);
        // Marks that nobody checks, and selectors that only the planner cannot follow.
        if field.starts_with("metadata.") || field.contains("matchFields") {
            notes.push(complaint);
        } else {
            complaints.push(complaint.hint(REFUSED));
        }
    }
    complaints.sort();
    complaints.dedup();
    notes.dedup();
    complaints
}

/// Names of classes, pools, instance types and zones that are not there: typing mistakes more often than not.
pub(crate) fn dangling(items: &[Document], types: &TypeCatalog) -> Vec<Complaint> {
    let known = Known { items, types };
    let mut notes = Vec::new();
    for item in items {
        if item.kind() == "NodePool" {
            known.check_pool(item, &mut notes);
        } else if let Some(template) = template(item.kind()) {
            known.check_pods(item, template, &mut notes);
        }
    }
    let first = items.iter().find(|it| template(it.kind()).is_some());
    if let Some(item) = first.filter(|_| !known.has_any("NodePool")) {
        let message = "there is no NodePool among the manifests, so no node can be launched for it";
        let note = Complaint::at(item, "", message);
        notes.push(
            note.hint("add a NodePool and an ECSNodeClass, such as those of examples/quickstart"),
        );
    }
    notes
}

/// HorizontalPodAutoscalers that change nothing.
pub(crate) fn scalers(items: &[Document]) -> Vec<Complaint> {
    let scalers = items.iter();
    let scalers = scalers.filter(|it| it.kind() == "HorizontalPodAutoscaler");
    let notes = scalers.map(|it| {
        let note = Complaint::at(it, "", "its target is planned with the replicas as written");
        note.hint("--hpa min and --hpa max plan the ends")
    });
    notes.collect()
}

/// Where a kind has its pod's metadata and spec; none for kinds without pods.
fn template(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Pod" => "",
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" => "spec.template",
        "CronJob" => "spec.jobTemplate.spec.template",
        _ => return None,
    })
}

struct Known<'a> {
    items: &'a [Document],
    types: &'a TypeCatalog,
}

impl Known<'_> {
    fn has_any(&self, kind: &str) -> bool {
        self.items.iter().any(|it| it.kind() == kind)
    }

    fn names(&self, kind: &str) -> Vec<&str> {
        let same = self.items.iter().filter(|it| it.kind() == kind);
        same.map(Document::name).collect()
    }

    fn check_pool(&self, item: &Document, notes: &mut Vec<Complaint>) {
        let spec = &item.value["spec"]["template"]["spec"];
        let class = spec["nodeClassRef"]["name"].as_str().unwrap_or_default();
        let classes = self.names("ECSNodeClass");
        if !classes.contains(&class) {
            let message = format!("there is no ECSNodeClass {class} among the manifests");
            let note = Complaint::at(item, "spec.template.spec.nodeClassRef.name", &message);
            let hint = if classes.is_empty() {
                "add the ECSNodeClass to the manifests".to_owned()
            } else {
                format!("there are: {}", classes.join(", "))
            };
            notes.push(note.hint(&hint));
        }
        let field = "spec.template.spec.requirements";
        self.check_terms(item, &spec["requirements"], field, notes);
    }

    fn check_pods(&self, item: &Document, template: &str, notes: &mut Vec<Complaint>) {
        let spec = join(template, "spec");
        let pointer = format!("/{}", spec.replace('.', "/"));
        let Some(pod) = item.value.pointer(&pointer) else {
            return;
        };
        for (key, value) in pod["nodeSelector"].as_object().into_iter().flatten() {
            let field = join(&format!("{spec}.nodeSelector"), key);
            self.check_value(item, key, value, &field, notes);
        }
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &pod["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
        for (index, term) in terms.as_array().into_iter().flatten().enumerate() {
            let field = format!(
                "{spec}.affinity.nodeAffinity.{required}.nodeSelectorTerms[{index}].matchExpressions"
            );
            self.check_terms(item, &term["matchExpressions"], &field, notes);
        }
    }

    fn check_terms(&self, item: &Document, terms: &Value, field: &str, notes: &mut Vec<Complaint>) {
        for (index, term) in terms.as_array().into_iter().flatten().enumerate() {
            let key = term["key"].as_str().unwrap_or_default();
            let values = term["values"].as_array().into_iter().flatten();
            for value in values.filter(|_| term["operator"] == "In") {
                let field = format!("{field}[{index}].values");
                self.check_value(item, key, value, &field, notes);
            }
        }
    }

    fn check_value(
        &self,
        item: &Document,
        key: &str,
        value: &Value,
        field: &str,
        notes: &mut Vec<Complaint>,
    ) {
        let value = value.as_str().unwrap_or_default();
        let (message, there) = match key {
            labels::INSTANCE_TYPE if !self.types.types.iter().any(|it| it.name == value) => (
                format!("instance type {value} is not sold in {}", self.types.region),
                self.near(value),
            ),
            labels::ZONE if !self.types.zones.iter().any(|it| it == value) => {
                let zones = self.types.zones.iter().map(String::as_str).collect();
                (format!("{} has no zone {value}", self.types.region), zones)
            }
            labels::NODE_POOL if !self.names("NodePool").contains(&value) => {
                let message = format!("there is no NodePool {value} among the manifests");
                (message, self.names("NodePool"))
            }
            _ => return,
        };
        let mut note = Complaint::at(item, field, &message);
        if !there.is_empty() {
            note = note.hint(&format!("there are: {}", there.join(", ")));
        }
        notes.push(note);
    }

    /// Types of the same family.
    fn near(&self, name: &str) -> Vec<&str> {
        let family = name.rsplit_once('.').map_or(name, |(family, _)| family);
        let same = self.types.types.iter().filter(|it| it.family == family);
        same.map(|it| it.name.as_str()).take(NEAR_MAX).collect()
    }
}
