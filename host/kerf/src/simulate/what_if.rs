//! What-ifs: changes to manifests before they get types, and offerings that are left out.

use std::sync::Arc;

use kerf_core::instance_type::{CapacityType, InstanceType};
use kerf_core::labels;
use serde_json::Value;

use crate::document::Document;
use crate::simulate::args::{Hpa, WhatIf};
use crate::simulate::complaint::Complaint;

/// Short names of workloads, as kubectl has them.
const SHORT_KINDS: [(&str, &str); 4] = [
    ("deploy", "deployment"),
    ("sts", "statefulset"),
    ("rs", "replicaset"),
    ("ecsnc", "ecsnodeclass"),
];

/// Applies --set, --hpa, --scale and `--without pool=`.
pub(crate) fn change(items: &mut Vec<Document>, what_if: &WhatIf) -> Result<(), Vec<Complaint>> {
    let mut complaints = Vec::new();
    for text in &what_if.set {
        complaints.extend(set(items, text).err());
    }
    if let Some(end) = what_if.hpa {
        autoscale(items, end);
    }
    for text in &what_if.scale {
        complaints.extend(scale(items, text).err());
    }
    for text in &what_if.without {
        if let Some(pool) = text.strip_prefix("pool=") {
            let before = items.len();
            items.retain(|it| it.kind() != "NodePool" || it.name() != pool);
            if items.len() == before {
                complaints.push(unknown("--without", text, "NodePool", pool, items));
            }
        }
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints)
    }
}

fn wrong(argument: &str, text: &str, message: &str) -> Complaint {
    Complaint::of(&format!("{argument} {text}"), message)
}

fn unknown(argument: &str, text: &str, kind: &str, name: &str, items: &[Document]) -> Complaint {
    let same = |it: &&Document| it.kind().eq_ignore_ascii_case(kind);
    let names: Vec<&str> = items.iter().filter(same).map(Document::name).collect();
    let message = format!("there is no {kind} {name} in the manifests");
    let hint = if names.is_empty() {
        format!("the manifests have no {kind}")
    } else {
        format!("there are: {}", names.join(", "))
    };
    wrong(argument, text, &message).hint(&hint)
}

fn full_kind(kind: &str) -> &str {
    let known = SHORT_KINDS.iter().find(|(short, _)| *short == kind);
    known.map_or(kind, |(_, full)| full)
}

fn set(items: &mut [Document], text: &str) -> Result<(), Complaint> {
    let form =
        "has not the form KIND.NAME.PATH=VALUE, such as nodepool.default.spec.limits.cpu=200";
    let (field, value) = text
        .split_once('=')
        .ok_or_else(|| wrong("--set", text, form))?;
    let (kind, rest) = field
        .split_once('.')
        .ok_or_else(|| wrong("--set", text, form))?;
    let kind = full_kind(kind);
    let value: Value = serde_saphyr::from_str(value).unwrap_or_else(|_| Value::from(value));
    // A name may have dots; the longest that fits is meant.
    let fits = |it: &Document| {
        let path = rest.strip_prefix(it.name())?.strip_prefix('.')?;
        it.kind().eq_ignore_ascii_case(kind).then_some(path)
    };
    let found = items
        .iter()
        .enumerate()
        .filter_map(|(index, it)| Some((it.name().len(), index, fits(it)?.to_owned())))
        .max();
    let Some((_, index, path)) = found else {
        let name = rest.split('.').next().unwrap_or_default();
        return Err(unknown("--set", text, kind, name, items));
    };
    put(&mut items[index].value, &path, value).map_err(|message| wrong("--set", text, &message))
}

/// Sets a field, making the maps on the way.
fn put(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let mut at = object;
    for part in path.split(['.', '[']) {
        let part = part.trim_end_matches(']');
        at = match (at, part.parse::<usize>()) {
            (Value::Array(list), Ok(index)) => {
                let length = list.len();
                list.get_mut(index).ok_or_else(|| {
                    format!("{path}: the list has {length} items, so [{index}] is none")
                })?
            }
            (Value::Array(_), Err(_)) => {
                return Err(format!(
                    "{path}: {part:?} is no index of a list, such as [0]"
                ));
            }
            (at, _) => {
                if !at.is_object() {
                    *at = Value::Object(serde_json::Map::new());
                }
                &mut at[part]
            }
        };
    }
    *at = value;
    Ok(())
}

fn scale(items: &mut [Document], text: &str) -> Result<(), Complaint> {
    let form = "has not the form deploy/web=200 or NAMESPACE/deploy/web=200";
    let (what, count) = text
        .split_once('=')
        .ok_or_else(|| wrong("--scale", text, form))?;
    let count: u32 = count.parse().map_err(|_| wrong("--scale", text, form))?;
    let parts: Vec<&str> = what.split('/').collect();
    let (namespace, kind, name) = match parts[..] {
        [kind, name] => (None, full_kind(kind), name),
        [namespace, kind, name] => (Some(namespace), full_kind(kind), name),
        _ => return Err(wrong("--scale", text, form)),
    };
    let field = if kind == "job" {
        "spec.parallelism"
    } else {
        "spec.replicas"
    };
    let is_meant = |it: &Document| {
        it.kind().eq_ignore_ascii_case(kind)
            && it.name() == name
            && namespace.is_none_or(|namespace| namespace == it.namespace().unwrap_or("default"))
    };
    let Some(index) = items.iter().position(is_meant) else {
        return Err(unknown("--scale", text, kind, name, items));
    };
    put(&mut items[index].value, field, Value::from(count))
        .map_err(|message| wrong("--scale", text, &message))
}

/// Gives the targets of HorizontalPodAutoscalers the replicas of one end.
fn autoscale(items: &mut [Document], end: Hpa) {
    let scalers = items
        .iter()
        .filter(|it| it.kind() == "HorizontalPodAutoscaler");
    let scalers: Vec<Document> = scalers.cloned().collect();
    for scaler in &scalers {
        let spec = &scaler.value["spec"];
        let count = match end {
            // One is what the API server fills in.
            Hpa::Min => spec["minReplicas"].as_u64().unwrap_or(1),
            Hpa::Max => spec["maxReplicas"].as_u64().unwrap_or(1),
        };
        let target = &spec["scaleTargetRef"];
        let is_target = |it: &&mut Document| {
            target["kind"] == it.kind()
                && target["name"] == it.name()
                && scaler.namespace().unwrap_or("default") == it.namespace().unwrap_or("default")
        };
        if let Some(item) = items.iter_mut().find(is_target) {
            item.value["spec"]["replicas"] = Value::from(count);
        }
    }
}

/// Offerings that are left out: what is written and how to see it.
pub(crate) fn leave_out(
    types: &mut [Arc<InstanceType>],
    what_if: &WhatIf,
) -> Result<(), Vec<Complaint>> {
    let mut complaints = Vec::new();
    for text in what_if.without.iter().filter(|it| !it.starts_with("pool=")) {
        let (what, value) = text.split_once('=').unwrap_or((text, ""));
        let Some(label) = label(what) else {
            let message = "names nothing that can be left out";
            let hint = "use zone=, type=, family=, arch=, capacity-type= or pool=";
            complaints.push(wrong("--without", text, message).hint(hint));
            continue;
        };
        let reason = format!("left out by --without {text}");
        if !mark(types, label, value, &reason) && !types.is_empty() {
            let message = format!("no instance type has {label} {value}");
            complaints.push(wrong("--without", text, &message));
        }
    }
    if what_if.spot_out {
        let spot = CapacityType::Spot.as_str();
        mark(types, labels::CAPACITY_TYPE, spot, "left out by --spot-out");
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints)
    }
}

fn label(what: &str) -> Option<&'static str> {
    Some(match what {
        "zone" => labels::ZONE,
        "type" => labels::INSTANCE_TYPE,
        "family" => labels::INSTANCE_FAMILY,
        "arch" => labels::ARCH,
        "capacity-type" => labels::CAPACITY_TYPE,
        _ => return None,
    })
}

/// Marks what has the label; whether anything had.
fn mark(types: &mut [Arc<InstanceType>], label: &str, value: &str, reason: &str) -> bool {
    let mut found = false;
    for it in types
        .iter_mut()
        .filter(|it| it.requirements.allows(label, value))
    {
        for offering in &mut Arc::make_mut(it).offerings {
            let has_it = match label {
                labels::ZONE => &*offering.zone == value,
                labels::CAPACITY_TYPE => offering.capacity_type.as_str() == value,
                _ => true,
            };
            if has_it {
                offering.unavailable = Some(reason.to_owned().into());
                found = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_set_where_the_path_leads() {
        let mut value = serde_json::json!({"spec": {"list": [{"a": 1}]}});

        put(&mut value, "spec.list[0].a", Value::from(2)).unwrap();
        put(&mut value, "spec.new.deep", Value::from("x")).unwrap();

        assert_eq!(
            value,
            serde_json::json!({"spec": {"list": [{"a": 2}], "new": {"deep": "x"}}})
        );
        assert!(
            put(&mut value, "spec.list[3].a", Value::from(2))
                .unwrap_err()
                .contains("1 items")
        );
    }
}
