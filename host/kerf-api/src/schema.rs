//! Pieces of OpenAPI schema that several fields share, and the CEL rules about reserved names.
//!
//! Every pattern is anchored and every list and string that a CEL rule walks is bounded: the API server refuses a rule
//! whose worst case it cannot estimate.

use crate::names::label;
use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};

/// A label key: an optional DNS prefix and a qualified name.
pub(crate) const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// As [`LABEL_KEY`] with a bounded name, in the spelling of a CEL string.
const LABEL_KEY_RULE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// A label value, possibly empty.
pub(crate) const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// One or more of number and unit.
pub(crate) const DURATION: &str = r"^([0-9]+(s|m|h))+$";
/// As [`DURATION`], or `Never`.
pub(crate) const NILLABLE_DURATION: &str = r"^(([0-9]+(s|m|h))+|Never)$";
/// A Kubernetes quantity.
const QUANTITY: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";
/// Kubernetes' own limit of a label value.
const LABEL_VALUE_LENGTH_MAX: u32 = 63;
/// Prefix 253, slash, name 63, minus what the prefix can never use.
const LABEL_KEY_LENGTH_MAX: u32 = 316;
/// Karpenter: same. Requirements and labels of a template are few; the bound keeps the rules cheap.
const ENTRIES_MAX: u32 = 100;

/// Resource name to quantity.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity_value() })
}

/// One quantity, written as a number or as text.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    quantity_value()
}

fn quantity_value() -> Schema {
    json_schema!({ "pattern": QUANTITY, "x-kubernetes-int-or-string": true })
}

/// Labels that go onto Nodes.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({ "type": "string", "maxLength": LABEL_VALUE_LENGTH_MAX, "pattern": LABEL_VALUE });
    json_schema!({ "type": "object", "x-kubernetes-map-type": "atomic", "maxProperties": ENTRIES_MAX, "additionalProperties": value })
}

/// A label key in a requirement.
pub(crate) fn label_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": LABEL_KEY_LENGTH_MAX, "pattern": LABEL_KEY })
}

/// The rule about the keys of a label map (`self` is the map): a kubelet refuses to start with a key that is none.
pub(crate) fn label_keys() -> Rule {
    Rule::new(format!(
        "self.all(key, size(key) <= {LABEL_KEY_LENGTH_MAX} && key.matches('{LABEL_KEY_RULE}'))"
    ))
    .message("label keys are [prefix/]name: a DNS name, a slash, and at most 63 letters, digits, '-', '_' or '.', such as example.com/team")
}

/// The rule that keeps unknown values out of a key with a closed set of values (`self` is a requirement). Karpenter:
/// differs, because there such a pool is accepted and no node of it is ever made. A list of several values passes, as
/// there, so that a pool may name a value of a later version beside those of this one.
pub(crate) fn closed_values(key: &str, values: &[&str]) -> Rule {
    let list = values
        .iter()
        .map(|value| format!("'{value}'"))
        .collect::<Vec<_>>()
        .join(", ");
    Rule::new(format!(
        "self.key != '{key}' || self.operator != 'In' || !has(self.values) || size(self.values) != 1 || self.values[0] in [{list}]"
    ))
    .message(format!("values of {key}: {}", values.join(", ")).as_str())
}

/// Label values in a requirement.
pub(crate) fn label_values(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({ "type": "string", "maxLength": LABEL_VALUE_LENGTH_MAX, "pattern": LABEL_VALUE });
    json_schema!({ "type": "array", "x-kubernetes-list-type": "atomic", "items": value })
}

/// Taints as `kubectl` knows them, with the checks that a Node would make later.
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["effect", "key"],
            "properties": {
                "effect": {
                    "type": "string",
                    "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
                    "description": "What happens to pods that do not tolerate the taint."
                },
                "key": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LABEL_KEY_LENGTH_MAX,
                    "pattern": LABEL_KEY,
                    "description": "The key of the taint."
                },
                "timeAdded": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the taint was added; only read on NoExecute taints."
                },
                "value": {
                    "type": "string",
                    "maxLength": LABEL_VALUE_LENGTH_MAX,
                    "pattern": LABEL_VALUE,
                    "description": "The value of the taint."
                }
            }
        }
    })
}

/// An RFC 3339 time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A duration such as `720h`.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": DURATION })
}

/// Any JSON value.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// Cloud tags: keys and values as ECS accepts them.
pub(crate) fn tags(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({ "type": "string", "maxLength": 128 });
    json_schema!({ "type": "object", "maxProperties": 20, "additionalProperties": value })
}

/// The rules that keep the keys which the controller owns out of a list of keys; `key` is the CEL name of one key.
fn reserved(key: &str) -> [(String, String); 3] {
    let domain = |name: &str, allowed: &[&str]| {
        let pattern = format!("^([^/]*[.])?{}/", name.replace('.', "[.]"));
        let allowed_list = allowed
            .iter()
            .map(|key| format!("'{key}'"))
            .collect::<Vec<_>>()
            .join(", ");
        (
            format!("{key} in [{allowed_list}] || !{key}.matches('{pattern}')"),
            format!(
                "keys of the domain {name} are set by the controller; allowed here: {}",
                allowed.join(", ")
            ),
        )
    };
    [
        domain(label::KARPENTER_DOMAIN, label::KARPENTER_SELECTABLE),
        domain(label::PROVIDER_DOMAIN, label::PROVIDER_SELECTABLE),
        (
            format!("{key} != '{}'", label::HOSTNAME),
            format!("{} names one node; use another label", label::HOSTNAME),
        ),
    ]
}

/// The `index`th rule about one requirement key (`self` is the key).
pub(crate) fn reserved_key(index: usize) -> Rule {
    let (rule, message) = &reserved("self")[index];
    Rule::new(rule.as_str()).message(message.as_str())
}

/// The `index`th rule about the keys of a label map (`self` is the map).
pub(crate) fn reserved_labels(index: usize) -> Rule {
    let (rule, message) = &reserved("key")[index];
    Rule::new(format!("self.all(key, {rule})")).message(message.as_str())
}
