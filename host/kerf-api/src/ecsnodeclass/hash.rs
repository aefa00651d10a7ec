//! The hash of what an ECSNodeClass makes of its nodes: a NodeClaim with another one has drifted.
//!
//! Selectors are not in it, because what they find is compared instead; nor are tags, prices and the ways to launch,
//! because they do not make another node; nor are policies, whose digests are compared.

use serde_json::Value;

use super::EcsNodeClass;

/// Version of the algorithm, for the annotation beside the hash. A new one is due when a field that counts gets a
/// default from the API server, since every stored class then hashes anew.
pub const ECSNODECLASS_HASH_VERSION: &str = "v1";

/// Fields of `spec` that do not count. A field that is not here counts as soon as it is set.
const NOT_COUNTED: [&str; 11] = [
    "vSwitchSelectorTerms",
    "vSwitchSelectionPolicy",
    "securityGroupSelectorTerms",
    "imageSelectorTerms",
    "capacityReservationSelectorTerms",
    "capacityReservationPreference",
    "sshKeySelectorTerms",
    "spotStrategy",
    "spotPriceLimit",
    "tags",
    "policies",
];

impl EcsNodeClass {
    /// The hash for the annotation `karpenter.alibabacloud.com/ecsnodeclass-hash`, in decimal. The order of fields and
    /// fields without a value do not matter; the order of lists does, as disks are attached in it.
    ///
    /// # Errors
    /// When the spec cannot be written as JSON, which no spec that was read from JSON does.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        let mut spec = serde_json::to_value(&self.spec)?;
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !NOT_COUNTED.contains(&name.as_str()));
        }
        Ok(of(&spec).to_string())
    }
}

/// The hash of a value, whatever the order of its fields.
pub(super) fn of(value: &Value) -> u64 {
    let mut text = String::new();
    write(value, &mut text);
    fnv1a(text.bytes())
}

/// The value as JSON with its fields in order and without those that are null.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// FNV-1a with 64 bits: it tells versions apart and protects nothing.
fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.into_iter().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(spec: Value) -> String {
        let spec = serde_json::from_value(spec).unwrap();
        EcsNodeClass::new("default", spec).hash().unwrap()
    }

    #[test]
    fn what_makes_another_node_makes_another_hash() {
        let before = hash(json!({}));

        for (field, value) in [
            ("systemDisk", json!({"size": 80})),
            ("dataDisks", json!([{"size": 100}])),
            ("userData", json!("#!/bin/sh\ntrue")),
            ("kubelet", json!({"maxPods": 40})),
            ("role", json!("KubernetesWorkerRole")),
            ("metadataOptions", json!({"httpTokens": "required"})),
            ("keyPairName", json!("ops")),
            ("clusterID", json!("c1")),
        ] {
            assert_ne!(hash(json!({field: value})), before, "{field}");
        }
    }

    #[test]
    fn what_is_compared_otherwise_or_makes_no_other_node_changes_nothing() {
        let before = hash(json!({}));

        for (field, value) in [
            ("vSwitchSelectorTerms", json!([{"id": "vsw-1"}])),
            ("securityGroupSelectorTerms", json!([{"id": "sg-1"}])),
            (
                "imageSelectorTerms",
                json!([{"alias": "ContainerOS@latest"}]),
            ),
            ("tags", json!({"team": "a"})),
            ("sshKeySelectorTerms", json!([{"name": "ops"}])),
            ("spotStrategy", json!("SpotAsPriceGo")),
        ] {
            assert!(NOT_COUNTED.contains(&field));
            assert_eq!(hash(json!({field: value})), before, "{field}");
        }
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        let kubelet = |text: &str| {
            let kubelet: Value = serde_json::from_str(text).unwrap();
            hash(json!({"kubelet": kubelet}))
        };

        assert_eq!(
            kubelet(r#"{"maxPods": 40, "cpuCFSQuota": true}"#),
            kubelet(r#"{"cpuCFSQuota": true, "maxPods": 40}"#)
        );
    }
}
