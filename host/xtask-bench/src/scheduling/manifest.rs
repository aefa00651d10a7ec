//! Pods of a v1 List in JSON: the fields that upstream's benchmark uses, and an error where a pod has others that
//! scheduling depends on.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use kerf_core::pod::{Pod, PodAffinityTerm, PodSpec, TopologySpread, Weighted, WhenUnsatisfiable};
use kerf_core::quantity::Quantity;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::Requirements;
use kerf_core::resources::{PODS, Resources};
use kerf_core::selector::{LabelSelector, Labels};
use serde_json::Value;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Fields of a pod's spec that are read, or that change nothing about where it can run.
const KNOWN_FIELDS: [&str; 5] = [
    "affinity",
    "containers",
    "nodeSelector",
    "resources",
    "topologySpreadConstraints",
];

pub(super) fn read(path: &Path) -> Result<Vec<Arc<Pod>>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let list: Value = serde_json::from_str(&text).with_context(|| format!("{shown} is no JSON"))?;
    ensure!(list["kind"] == "List", "{shown} is no v1 List");
    let items = items(&list["items"]);
    items
        .iter()
        .enumerate()
        .map(|(idx, item)| pod(item).with_context(|| format!("item {idx} of {shown}")))
        .collect()
}

fn pod(item: &Value) -> Result<Arc<Pod>> {
    let (metadata, spec) = (&item["metadata"], &item["spec"]);
    let unknown = spec
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys())
        .find(|field| !KNOWN_FIELDS.contains(&field.as_str()));
    if let Some(field) = unknown {
        bail!("spec.{field} is not read by this bench");
    }
    let affinity = &spec["affinity"];
    let node = &affinity["nodeAffinity"];
    let (together, apart) = (&affinity["podAffinity"], &affinity["podAntiAffinity"]);
    let pod = Pod::new(
        text(&metadata["name"])?,
        PodSpec {
            labels: labels(&metadata["labels"])?,
            requests: requests(&spec["containers"])?,
            node_selector: labels(&spec["nodeSelector"])?,
            required_node_terms: each(&node[REQUIRED]["nodeSelectorTerms"], requirements)?,
            preferred_node_terms: each(&node[PREFERRED], |it| {
                weighted(it, requirements(&it["preference"])?)
            })?,
            affinity: each(&together[REQUIRED], term)?,
            preferred_affinity: each(&together[PREFERRED], weighted_term)?,
            anti_affinity: each(&apart[REQUIRED], term)?,
            preferred_anti_affinity: each(&apart[PREFERRED], weighted_term)?,
            topology_spread: each(&spec["topologySpreadConstraints"], spread)?,
            ..PodSpec::default()
        },
    );
    Ok(Arc::new(Pod {
        namespace: text(&metadata["namespace"])?.into(),
        uid: text(&metadata["uid"])?.into(),
        ..pod
    }))
}

fn requests(containers: &Value) -> Result<Resources> {
    let mut total = Resources::default().with(PODS, 1);
    for container in items(containers) {
        let requests = container["resources"]["requests"].as_object();
        for (name, quantity) in requests.into_iter().flatten() {
            let quantity = Quantity::parse(text(quantity)?)?;
            total.add(&std::iter::once((name.as_str(), quantity)).collect());
        }
    }
    Ok(total)
}

fn requirements(term: &Value) -> Result<Requirements> {
    let requirement = |it: &Value| {
        let operator = text(&it["operator"])?;
        let operator =
            Operator::parse(operator).with_context(|| format!("unknown operator {operator}"))?;
        let values = each(&it["values"], |value| Ok(text(value)?.to_owned()))?;
        Ok(Requirement::parse(text(&it["key"])?, operator, values)?)
    };
    Ok(each(&term["matchExpressions"], requirement)?
        .into_iter()
        .collect())
}

fn weighted_term(it: &Value) -> Result<Weighted<PodAffinityTerm>> {
    weighted(it, term(&it["podAffinityTerm"])?)
}

fn weighted<T>(it: &Value, term: T) -> Result<Weighted<T>> {
    let weight = it["weight"]
        .as_i64()
        .context("a preference has no weight")?;
    Ok(Weighted {
        weight: i32::try_from(weight)?,
        term,
    })
}

fn term(it: &Value) -> Result<PodAffinityTerm> {
    Ok(PodAffinityTerm {
        topology_key: text(&it["topologyKey"])?.to_owned(),
        selector: Some(selector(&it["labelSelector"])?),
        ..PodAffinityTerm::default()
    })
}

fn spread(it: &Value) -> Result<TopologySpread> {
    let max_skew = it["maxSkew"].as_u64().context("maxSkew is missing")?;
    let when_unsatisfiable = match text(&it["whenUnsatisfiable"])? {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => bail!("unknown whenUnsatisfiable {other}"),
    };
    let selector = selector(&it["labelSelector"])?;
    let spread = TopologySpread::new(
        text(&it["topologyKey"])?,
        u32::try_from(max_skew)?,
        selector,
    );
    Ok(TopologySpread {
        when_unsatisfiable,
        ..spread
    })
}

fn selector(it: &Value) -> Result<LabelSelector> {
    ensure!(
        it["matchExpressions"].is_null(),
        "matchExpressions of pod selectors are not read by this bench"
    );
    Ok(LabelSelector {
        match_labels: labels(&it["matchLabels"])?,
        match_expressions: Vec::new(),
    })
}

fn labels(it: &Value) -> Result<Labels> {
    let pairs = it.as_object().into_iter().flatten();
    pairs
        .map(|(key, value)| Ok((key.clone(), text(value)?.to_owned())))
        .collect()
}

fn each<T>(list: &Value, read: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    items(list).iter().map(read).collect()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("expected a text, found {value}"))
}
