use kerf_api::crds;
use serde_json::{Value, json};

use super::*;
use crate::node_class::catalog::is_zone_balanced;
use crate::policies;

const WHOLE: &str = r#"{
        "clusterID": "c", "clusterName": "n", "clusterEndpoint": "e", "joinTemplate": "t",
        "vSwitchSelectorTerms": [{"id": "vsw-1", "tags": {"a": "b"}, "zoneID": "z"}],
        "vSwitchSelectionPolicy": "balanced",
        "securityGroupSelectorTerms": [{"id": "sg-1", "name": "n", "tags": {"a": "b"}}],
        "imageSelectorTerms": [{
            "id": "m-1", "imageFamily": "f", "alias": "a", "name": "n", "imageOwnerAlias": "self",
            "imageOwnerID": "1", "tags": {"a": "b"}
        }],
        "resourceGroupId": "rg-1",
        "systemDisk": {
            "category": "cloud", "categories": ["cloud_essd"], "size": 50, "performanceLevel": "PL1",
            "encrypted": true, "kmsKeyID": "k"
        },
        "dataDisks": [
            {
                "category": "cloud", "categories": ["cloud_essd"], "size": 50,
                "performanceLevel": "PL1", "device": "/dev/xvdb", "encrypted": true, "kmsKeyID": "k",
                "snapshotID": "s-1", "deleteWithInstance": false, "mountTarget": "/a", "fileSystem": "xfs"
            },
            {"volumeSize": "60Gi"}
        ],
        "formatDataDisk": true, "instanceStorePolicy": "RAID0",
        "spotStrategy": "SpotAsPriceGo", "spotPriceLimit": 1.5,
        "role": "r",
        "capacityReservationSelectorTerms": [{"id": "crp-1", "tags": {"a": "b"}}],
        "capacityReservationPreference": "target",
        "metadataOptions": {
            "httpTokens": "required", "httpPutResponseHopLimit": 2, "httpEndpoint": "disabled"
        },
        "launchTemplateID": "lt-1", "tags": {"a": "b"}, "userData": "u", "keyPairName": "kp",
        "sshKeySelectorTerms": [{"name": "kp", "tags": {"a": "b"}}],
        "internetAccessible": {"chargeType": "PayByBandwidth", "maxBandwidthOut": 1},
        "passwordInherit": true,
        "kubelet": {
            "clusterDNS": ["10.0.0.10"], "maxPods": 1, "podsPerCore": 1, "systemReserved": {"cpu": "1"},
            "kubeReserved": {"cpu": "1"}, "evictionHard": {"pid.available": "1"},
            "evictionSoft": {"pid.available": "1"}, "evictionSoftGracePeriod": {"pid.available": "1s"},
            "evictionMaxPodGracePeriod": 1, "imageGCHighThresholdPercent": 2,
            "imageGCLowThresholdPercent": 1, "cpuCFSQuota": false
        },
        "policies": [{
            "name": "p", "hook": "PricingPreference", "source": {"path": "/p"}, "digest": "sha256:0",
            "order": 1, "config": {"a": 1}, "failurePolicy": "Fail", "mode": "Monitor",
            "limits": {"fuel": 1, "timeout": "1s", "memoryMib": 1, "outputKib": 1}, "wasi": "Inert",
            "nodePools": ["a"], "rolloutOnChange": true
        }]
    }"#;

/// A class that says everything that the definition has.
fn whole() -> Value {
    serde_json::from_str(WHOLE).unwrap()
}

/// Everything that the rest of the controller reads of a class, but where its policies come from.
fn read(value: &Value) -> String {
    let class = EcsNodeClass::new("c", serde_json::from_value(value.clone()).unwrap());
    let policies: Vec<_> = class.spec.policies.iter().map(policies::spec).collect();
    let rollouts: Vec<_> = class
        .spec
        .policies
        .iter()
        .map(kerf_api::ecsnodeclass::Policy::effective_rollout_on_change)
        .collect();
    let balanced = is_zone_balanced(&class);
    format!(
        "{:?} {balanced} {policies:?} {rollouts:?}",
        spec(&class, "")
    )
}

/// JSON pointers into `whole` of every field of a schema that has no fields of its own.
fn leaves(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            leaves(property, &value[name], &format!("{at}/{name}"), found);
        }
    } else if schema["items"]["properties"].is_object() {
        // A field that stands in no item shows as one of the first.
        let items = schema["items"]["properties"].as_object().unwrap();
        for (name, property) in items {
            let place = value
                .as_array()
                .into_iter()
                .flatten()
                .position(|it| it.get(name).is_some());
            let place = place.unwrap_or_default();
            leaves(
                property,
                &value[place][name],
                &format!("{at}/{place}/{name}"),
                found,
            );
        }
    } else {
        found.push(at.to_owned());
    }
}

/// A value that differs in this one field.
fn changed(whole: &Value, pointer: &str) -> Value {
    let mut value = whole.clone();
    // What stands beside another field of the same meaning is not in the class of this test.
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    let place = parent.entry(name).or_insert(Value::Null);
    *place = match place.take() {
        Value::String(text) if text.ends_with("Gi") => "70Gi".into(),
        // Words that are not known are kept, so any will do.
        Value::String(text) => format!("{text}x").into(),
        Value::Number(number) => (number.as_f64().unwrap() + 1.0).into(),
        Value::Bool(it) => (!it).into(),
        Value::Array(_) => json!(["other"]),
        Value::Object(_) => json!({"other": "1"}),
        Value::Null => "70Gi".into(),
    };
    if let Some(number) = value.pointer(pointer).and_then(Value::as_f64)
        && pointer != "/spotPriceLimit"
    {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "small numbers of this test"
        )]
        let whole = number as i64;
        *value.pointer_mut(pointer).unwrap() = whole.into();
    }
    value
}

#[test]
fn every_field_of_the_definition_changes_what_the_controller_does() {
    // Read where a component is fetched, which is not a matter of this module.
    const ELSEWHERE: [&str; 1] = ["/policies/0/source/"];
    let (_, definition) = crds::definitions().unwrap().swap_remove(1);
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let whole = whole();
    let mut found = Vec::new();
    leaves(&schema["properties"]["spec"], &whole, "", &mut found);
    found.retain(|it| !ELSEWHERE.iter().any(|begin| it.starts_with(begin)));

    let before = read(&whole);
    let idle: Vec<&String> = found
        .iter()
        .filter(|pointer| read(&changed(&whole, pointer)) == before)
        .collect();

    assert!(found.len() > 70, "{}", found.len());
    assert_eq!(idle, Vec::<&String>::new());
}
