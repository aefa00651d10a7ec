//! Makes a failing case small: takes away one thing after the other, and keeps it away where the case fails all the
//! same.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::api::Api;
use super::case::{Case, name};
use super::trial::{self, Planned, Verdict};

/// A trial takes a few seconds; what is left after that many is small enough to read.
const TRIALS_MAX: usize = 120;

/// What a pod, a NodePool or a DaemonSet may lose.
const FIELDS: [&str; 22] = [
    "/spec/affinity/podAffinity",
    "/spec/affinity/podAntiAffinity",
    "/spec/affinity/nodeAffinity",
    "/spec/topologySpreadConstraints/0",
    "/spec/topologySpreadConstraints/0/matchLabelKeys",
    "/spec/topologySpreadConstraints/0/minDomains",
    "/spec/tolerations",
    "/spec/nodeSelector",
    "/spec/initContainers",
    "/spec/containers/1",
    "/spec/containers/0/ports",
    "/spec/volumes",
    "/spec/resources",
    "/spec/schedulingGates",
    "/spec/priorityClassName",
    "/spec/template/spec/taints",
    "/spec/template/spec/startupTaints",
    "/spec/template/spec/requirements/0",
    "/spec/template/spec/requirements",
    "/spec/template/metadata/labels",
    "/spec/limits",
    "/status/containerStatuses",
];

/// The smallest case found that still fails, and how it fails.
pub(super) fn shrink(
    api: &Api,
    case: &Case,
    verdict: Verdict,
    plan: impl Fn(&Case) -> Result<Planned>,
) -> Result<(Case, Verdict)> {
    let mut search = Search {
        api,
        plan,
        best: case.clone(),
        causes: causes(&verdict),
        verdict,
        trials: 0,
    };
    // What went later may let go of what could not go before.
    loop {
        let before = search.best.clone();
        search.drop_objects()?;
        search.drop_types()?;
        search.drop_fields()?;
        if search.trials >= TRIALS_MAX || search.best == before {
            return Ok((search.best, search.verdict));
        }
    }
}

struct Search<'a, P> {
    api: &'a Api,
    plan: P,
    best: Case,
    verdict: Verdict,
    /// How the case failed at first. One that fails in another way is another case.
    causes: BTreeSet<String>,
    trials: usize,
}

impl<P: Fn(&Case) -> Result<Planned>> Search<'_, P> {
    /// Whether the case without something fails too; then it is the best.
    fn keep_if_failing(&mut self, smaller: Case) -> Result<bool> {
        if self.trials >= TRIALS_MAX {
            return Ok(false);
        }
        // What is no case any more, such as pods without the pool of their node, does not count.
        let Ok(planned) = (self.plan)(&smaller) else {
            return Ok(false);
        };
        self.trials += 1;
        let Ok(verdict) = trial::run(self.api, &smaller, &planned) else {
            return Ok(false);
        };
        let is_failing = causes(&verdict)
            .iter()
            .any(|cause| self.causes.contains(cause));
        if is_failing {
            self.best = smaller;
            self.verdict = verdict;
        }
        Ok(is_failing)
    }

    /// Halves first, then single objects.
    fn drop_objects(&mut self) -> Result<()> {
        let mut chunk = self.best.objects.len().div_ceil(2);
        while chunk > 0 {
            let mut start = 0;
            while start < self.best.objects.len() {
                let mut smaller = self.best.clone();
                let end = (start + chunk).min(smaller.objects.len());
                let gone: Vec<Value> = smaller.objects.drain(start..end).collect();
                keep_what_others_need(&mut smaller, gone);
                let is_smaller = smaller.objects.len() < self.best.objects.len();
                if !is_smaller || !self.keep_if_failing(smaller)? {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
        Ok(())
    }

    fn drop_types(&mut self) -> Result<()> {
        for idx in (0..self.best.types.len()).rev() {
            let mut smaller = self.best.clone();
            smaller.types.remove(idx);
            self.keep_if_failing(smaller)?;
        }
        Ok(())
    }

    fn drop_fields(&mut self) -> Result<()> {
        for field in FIELDS {
            for idx in 0..self.best.objects.len() {
                // A DaemonSet selects its pods by their labels.
                let is_selected = field.ends_with("metadata/labels")
                    && self.best.objects[idx]["kind"] == "DaemonSet";
                let mut smaller = self.best.clone();
                if !is_selected && remove(&mut smaller.objects[idx], field) {
                    self.keep_if_failing(smaller)?;
                }
            }
        }
        Ok(())
    }
}

/// What the mismatches say, without names and numbers.
fn causes(verdict: &Verdict) -> BTreeSet<String> {
    let lines = verdict.mismatches.iter();
    let lines = lines.filter_map(|text| text.lines().next());
    lines.flat_map(causes_of).collect()
}

fn causes_of(line: &str) -> Vec<String> {
    let Some((_, refusals)) = line.split_once("nodes are available: ") else {
        let words = line.split_whitespace().filter(|word| {
            // Names of pods and nodes have digits in them.
            !word.contains(|it: char| it.is_ascii_digit())
        });
        return vec![words.collect::<Vec<_>>().join(" ")];
    };
    let refusals = refusals.split(". ").next().unwrap_or_default();
    let refusals = refusals.split(", ").map(|clause| {
        let clause = clause.trim_start_matches(|it: char| it.is_ascii_digit());
        clause.trim().to_owned()
    });
    // The other nodes: the pod is pinned away from them.
    refusals
        .filter(|clause| !clause.contains("[NodeAffinity]"))
        .collect()
}

/// Namespaces stay, and so does what a remaining object cannot be without: the node of a bound pod, the objects of a
/// volume that is used.
fn keep_what_others_need(case: &mut Case, gone: Vec<Value>) {
    for object in gone {
        let is_needed = match object["kind"].as_str() {
            Some("Namespace") => true,
            Some("Node" | "NodeClaim") => case
                .objects
                .iter()
                .any(|other| other["kind"] != "Namespace" && mentions(other, name(&object))),
            Some("PersistentVolumeClaim" | "PersistentVolume" | "StorageClass") => case
                .objects
                .iter()
                .any(|other| mentions(other, name(&object))),
            _ => false,
        };
        if is_needed {
            case.objects.push(object);
        }
    }
}

/// Whether the name is somewhere in the object.
fn mentions(object: &Value, name: &str) -> bool {
    match object {
        Value::String(text) => text == name || text == &format!("oracle.{name}"),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Takes the field away; whether there was something in it.
fn remove(object: &mut Value, pointer: &str) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return false;
    };
    let removed = match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.shift_remove(last),
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(idx) if idx < items.len() => Some(items.remove(idx)),
            Ok(_) | Err(_) => None,
        },
        Some(_) | None => None,
    };
    removed.is_some_and(|it| !it.is_null() && it != Value::Array(vec![]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_refusal_is_what_the_planned_node_lacks() {
        let line = "REFUSED pod-3-1 on case-16-new-0: 0/4 nodes are available: 1 node(s) didn't have free ports for the \
                    requested pod ports, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims";

        assert_eq!(
            causes_of(line),
            ["node(s) didn't have free ports for the requested pod ports"]
        );
    }
}
