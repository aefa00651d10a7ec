//! Node groups of cluster-autoscaler (Cluster API), and the annotations of pods.

use kerf_api::names::label;
use serde_json::{Map, Value, json};

use super::pool::Pool;
use super::source::Source;
use super::{Conversion, Output, class};

const SIZE: &str = "/metadata/annotations/cluster.x-k8s.io~1cluster-api-autoscaler-node-group";
const CAPACITY: &str = "/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1";
/// Annotations of pods that must not be moved, and the value that says so.
const KEEP: &[(&str, &str)] = &[
    ("karpenter.sh/do-not-evict", "true"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
];
const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// A MachineDeployment, MachineSet or MachinePool with the annotations of cluster-autoscaler.
pub(super) fn machine_group(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    let mut pool = Pool {
        name: name.clone(),
        class: name.clone(),
        ..Pool::default()
    };
    if let Some(most) = source.text(&format!("{SIZE}-max-size")) {
        pool.spec
            .insert("limits".to_owned(), json!({"nodes": most}));
    }
    source.refuse(
        &format!("{SIZE}-min-size"),
        "pools grow from nothing: keep room with a CapacityBuffer",
    );
    for (part, key, is_memory) in [
        ("cpu", label::INSTANCE_CPU, false),
        ("memory", label::INSTANCE_MEMORY, true),
        ("gpu-count", label::INSTANCE_GPU_COUNT, false),
    ] {
        let Some(text) = source.text(&format!("{CAPACITY}{part}")) else {
            continue;
        };
        let parsed = kerf_core::quantity::Quantity::parse(&text).map(|it| it.units());
        match parsed {
            Ok(units) if units > 0 => {
                let number = if is_memory { units / (1 << 20) } else { units };
                pool.requirements
                    .push(json!({"key": key, "operator": "In", "values": [number.to_string()]}));
            }
            _ => source.warn(&format!("{part} ({text})"), "is no amount"),
        }
    }
    for pair in pairs(source.text(&format!("{CAPACITY}labels"))) {
        let (key, value) = pair.split_once('=').unwrap_or((&pair, ""));
        pool.labels.insert(key.to_owned(), value.into());
    }
    let mut taints: Vec<Value> = Vec::new();
    for taint in pairs(source.text(&format!("{CAPACITY}taints"))) {
        let Some((name, effect)) = taint.rsplit_once(':') else {
            source.warn(
                &format!("taint {taint:?}"),
                "is not key=value:effect, and is left out",
            );
            continue;
        };
        let (key, value) = name.split_once('=').unwrap_or((name, ""));
        taints.push(json!({"key": key, "value": value, "effect": effect}));
    }
    if !taints.is_empty() {
        pool.template.insert("taints".to_owned(), taints.into());
    }
    source.refuse(
        "/spec/replicas",
        "the number of nodes follows from the pods",
    );
    let mut conversion = Conversion::default();
    conversion.outputs.push(class::empty(&name));
    conversion.outputs.push(pool.into_output(source));
    conversion
}

fn pairs(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Any other object: kept as it is, but for the annotations that say that a pod must stay.
pub(super) fn workload(mut document: Value) -> Conversion {
    let mut comments = Vec::new();
    rename(&mut document, &mut comments);
    if comments.is_empty() {
        comments.push("nothing to convert: kept as it is".to_owned());
    }
    Conversion {
        outputs: vec![Output {
            comments,
            object: document,
        }],
        ..Conversion::default()
    }
}

fn rename(value: &mut Value, comments: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let Some(annotations) = object.get_mut("annotations").and_then(Value::as_object_mut)
            {
                rename_annotations(annotations, comments);
            }
            object
                .values_mut()
                .for_each(|inner| rename(inner, comments));
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| rename(inner, comments)),
        _ => {}
    }
}

fn rename_annotations(annotations: &mut Map<String, Value>, comments: &mut Vec<String>) {
    for (old, value) in KEEP {
        let Some(found) = annotations.shift_remove(*old) else {
            continue;
        };
        if found.as_str() == Some(value) {
            annotations.insert(DO_NOT_DISRUPT.to_owned(), "true".into());
            comments.push(format!(
                "annotation {old}: {found}: became {DO_NOT_DISRUPT}: \"true\""
            ));
        } else {
            comments.push(format!(
                "annotation {old}: {found}: is what holds without it, and is left out"
            ));
        }
    }
}
