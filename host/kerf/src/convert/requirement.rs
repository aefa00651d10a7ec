//! Requirements of other clouds: their instance types become numbers of CPUs, memory, GPUs and an architecture, never
//! guessed types.

use std::collections::BTreeSet;

use kerf_api::names::label;
use serde_json::{Value, json};

use super::source::Source;

const FOREIGN: &[&str] = &["karpenter.k8s.aws/", "karpenter.k8s.tke/"];
const OTHER_ALIBABA: &str = "karpenter.k8s.alibabacloud/";
/// Keys that mean the same under another prefix.
const SAME_MEANING: &[&str] = &[
    "instance-cpu",
    "instance-memory",
    "instance-gpu-count",
    "instance-gpu-manufacturer",
];
const MIB_PER_GIB: u32 = 1024;

/// What an instance type of another cloud has.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    cpus: u32,
    memory_gib: Option<u32>,
    is_arm: bool,
    has_gpu: bool,
}

/// Converts requirements; `is_foreign` when zones and types are those of another cloud.
pub(super) fn convert(items: Vec<Value>, is_foreign: bool, source: &mut Source) -> Vec<Value> {
    let mut converted = Vec::new();
    for item in items {
        let key = item["key"].as_str().unwrap_or_default().to_owned();
        let own = key
            .strip_prefix(OTHER_ALIBABA)
            .map(|name| format!("{}/{name}", label::PROVIDER_DOMAIN));
        let foreign = FOREIGN.iter().find_map(|prefix| key.strip_prefix(prefix));
        if let Some(own) = own {
            keep_known(&item, &own, source, &mut converted);
        } else if let Some(name) = foreign {
            convert_foreign(&item, name, source, &mut converted);
        } else if key.ends_with("/instance-type")
            && !texts(&item).all(|value| value.starts_with("ecs."))
        {
            convert_types(&item, source, &mut converted);
        } else if is_foreign
            && (key == label::ZONE || key == label::REGION || key.starts_with("failure-domain."))
        {
            warn(
                &item,
                source,
                "zones and regions of another cloud: name yours, or leave the choice to the vSwitches",
            );
        } else if is_refused(&key) {
            warn(
                &item,
                source,
                "the controller sets this key, it cannot be required",
            );
        } else {
            converted.push(item);
        }
    }
    converted
}

/// Whether the definitions refuse a label.
pub(super) fn is_refused(key: &str) -> bool {
    let in_domain = |domain: &str| {
        key.split_once('/')
            .is_some_and(|(prefix, _)| prefix == domain || prefix.ends_with(&format!(".{domain}")))
    };
    key == label::HOSTNAME
        || key == label::NODEPOOL
        || (in_domain(label::KARPENTER_DOMAIN) && !label::KARPENTER_SELECTABLE.contains(&key))
        || (in_domain(label::PROVIDER_DOMAIN) && !label::PROVIDER_SELECTABLE.contains(&key))
}

fn keep_known(item: &Value, key: &str, source: &mut Source, converted: &mut Vec<Value>) {
    if is_refused(key) {
        warn(item, source, "there is no such label here");
    } else {
        let mut item = item.clone();
        item["key"] = key.into();
        converted.push(item);
    }
}

fn convert_foreign(item: &Value, name: &str, source: &mut Source, converted: &mut Vec<Value>) {
    let own = |name: &str| format!("{}/{name}", label::PROVIDER_DOMAIN);
    if SAME_MEANING.contains(&name) {
        keep_known(item, &own(name), source, converted);
    } else if name == "instance-gpu-memory" {
        let gib = texts(item)
            .filter_map(|mib| Some((mib.parse::<u32>().ok()? / MIB_PER_GIB).to_string()));
        let mut own_item = item.clone();
        own_item["key"] = own(name).into();
        own_item["values"] = gib.collect::<Vec<_>>().into();
        converted.push(own_item);
        warn(item, source, "is in GiB here, without fractions");
    } else if name == "instance-size" && item["operator"] == "In" {
        let cpus: BTreeSet<u32> = texts(item).filter_map(cpus_of_size).collect();
        push_numbers(label::INSTANCE_CPU, &cpus, converted);
        warn(item, source, "became the numbers of CPUs of these sizes");
    } else if name == "instance-family" && item["operator"] == "In" {
        let families: Vec<&str> = texts(item).collect();
        if families.iter().all(|family| is_arm(family)) {
            converted.push(json!({"key": label::ARCH, "operator": "In", "values": ["arm64"]}));
        }
        if families.iter().all(|family| has_gpu(family)) {
            converted
                .push(json!({"key": label::INSTANCE_GPU_COUNT, "operator": "Gt", "values": ["0"]}));
        }
        warn(
            item,
            source,
            "families of another cloud: choose with karpenter.alibabacloud.com/instance-family, or leave all",
        );
    } else {
        warn(
            item,
            source,
            "describes types of another cloud and has no equal here",
        );
    }
}

fn convert_types(item: &Value, source: &mut Source, converted: &mut Vec<Value>) {
    let shapes: Vec<Option<Shape>> = texts(item).map(shape).collect();
    if item["operator"] != "In" || shapes.iter().any(Option::is_none) {
        return warn(
            item,
            source,
            "types of another cloud: say what they stand for with instance-cpu and instance-memory",
        );
    }
    let shapes: Vec<Shape> = shapes.into_iter().flatten().collect();
    push_numbers(
        label::INSTANCE_CPU,
        &shapes.iter().map(|it| it.cpus).collect(),
        converted,
    );
    let memory: Option<BTreeSet<u32>> = shapes
        .iter()
        .map(|it| Some(it.memory_gib? * MIB_PER_GIB))
        .collect();
    push_numbers(
        label::INSTANCE_MEMORY,
        &memory.unwrap_or_default(),
        converted,
    );
    if shapes.iter().all(|it| it.is_arm) {
        converted.push(json!({"key": label::ARCH, "operator": "In", "values": ["arm64"]}));
    }
    if shapes.iter().all(|it| it.has_gpu) {
        converted
            .push(json!({"key": label::INSTANCE_GPU_COUNT, "operator": "Gt", "values": ["0"]}));
    }
    warn(item, source, "became the CPUs and memory of these types");
}

fn push_numbers(key: &str, numbers: &BTreeSet<u32>, converted: &mut Vec<Value>) {
    if !numbers.is_empty() {
        let values: Vec<String> = numbers.iter().map(u32::to_string).collect();
        converted.push(json!({"key": key, "operator": "In", "values": values}));
    }
}

/// `m5.xlarge` of one cloud and `S5.2XLARGE16` of another.
fn shape(name: &str) -> Option<Shape> {
    let (family, size) = name.split_once('.')?;
    let letters = size.trim_end_matches(|it: char| it.is_ascii_digit());
    let cpus = cpus_of_size(size)?;
    let named_gib: Option<u32> = size[letters.len()..].parse().ok();
    let gib_per_cpu = match family.chars().next()? {
        'c' => Some(2),
        'm' => Some(4),
        'r' => Some(8),
        _ => None,
    };
    Some(Shape {
        cpus,
        memory_gib: named_gib.or_else(|| gib_per_cpu.map(|it| it * cpus)),
        is_arm: is_arm(family),
        has_gpu: has_gpu(family),
    })
}

/// One cloud counts 4 CPUs to an xlarge, the other to a LARGE and 4 to each XLARGE.
fn cpus_of_size(size: &str) -> Option<u32> {
    let name = size.trim_end_matches(|it: char| it.is_ascii_digit());
    let count = |text: &str| {
        if text.is_empty() {
            Some(1)
        } else {
            text.parse::<u32>().ok()
        }
    };
    match name {
        "medium" | "SMALL" => Some(1),
        "large" | "MEDIUM" => Some(2),
        "LARGE" => Some(4),
        other => {
            let times = other
                .strip_suffix("xlarge")
                .or_else(|| other.strip_suffix("XLARGE"))?;
            count(times).map(|times| times * 4)
        }
    }
}

/// `m7g`, `c6gn`, `t4g`: a g after the generation; `SR1` of the other cloud.
fn is_arm(family: &str) -> bool {
    let after = family.trim_start_matches(|it: char| it.is_ascii_lowercase());
    let after = after.trim_start_matches(|it: char| it.is_ascii_digit());
    (after.starts_with('g') && after != family) || family.starts_with("SR")
}

fn has_gpu(family: &str) -> bool {
    let letters: String = family
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    ["p", "g", "GN", "GNV", "PNV"].contains(&letters.as_str())
}

fn texts(item: &Value) -> impl Iterator<Item = &str> {
    item["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn warn(item: &Value, source: &mut Source, reason: &str) {
    source.warn(&format!("requirement {item}"), reason);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_other_clouds_are_read_as_cpus_memory_and_architecture() {
        let read = |name| shape(name).map(|it| (it.cpus, it.memory_gib, it.is_arm, it.has_gpu));

        assert_eq!(read("m5.large"), Some((2, Some(8), false, false)));
        assert_eq!(read("c7gn.4xlarge"), Some((16, Some(32), true, false)));
        assert_eq!(read("p3.2xlarge"), Some((8, None, false, true)));
        assert_eq!(read("S5.2XLARGE16"), Some((8, Some(16), false, false)));
        assert_eq!(read("m5.metal"), None);
    }
}
