//! What of an object may leave the cluster. Lists of what stays, not of what goes: what nobody thought of goes. Pure.

use serde_json::{Map, Value};

const METADATA: [&str; 10] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
];
/// Annotations that decisions read.
const ANNOTATIONS: [&str; 5] = [
    "karpenter.sh/",
    "karpenter.alibabacloud.com/",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "pv.kubernetes.io/bind-completed",
    "storageclass.kubernetes.io/is-default-class",
];
const POD_SPEC: [&str; 19] = [
    "nodeName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "schedulerName",
    "schedulingGates",
    "overhead",
    "resources",
    "resourceClaims",
    "hostNetwork",
    "terminationGracePeriodSeconds",
    "restartPolicy",
    "containers",
    "initContainers",
    "volumes",
];
const CONTAINER: [&str; 4] = ["name", "resources", "ports", "restartPolicy"];
const VOLUME: [&str; 3] = ["name", "persistentVolumeClaim", "ephemeral"];
const CONDITION: [&str; 4] = ["type", "status", "reason", "lastTransitionTime"];

/// Takes out what must not leave the cluster.
pub(crate) fn redact(object: &mut Value) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    metadata(&mut object["metadata"]);
    match kind.as_str() {
        "Pod" => {
            keep(
                object,
                &["apiVersion", "kind", "metadata", "spec", "status"],
            );
            pod_spec(&mut object["spec"]);
            keep(
                &mut object["status"],
                &["phase", "conditions", "nominatedNodeName"],
            );
            conditions(&mut object["status"]);
        }
        "DaemonSet" => {
            keep(object, &["apiVersion", "kind", "metadata", "spec"]);
            keep(&mut object["spec"], &["selector", "template"]);
            let template = &mut object["spec"]["template"];
            keep(template, &["metadata", "spec"]);
            metadata(&mut template["metadata"]);
            pod_spec(&mut template["spec"]);
        }
        "Node" => {
            keep(
                &mut object["spec"],
                &["taints", "providerID", "unschedulable"],
            );
            keep(
                &mut object["status"],
                &["allocatable", "capacity", "conditions"],
            );
            conditions(&mut object["status"]);
        }
        "PersistentVolume" => volume(&mut object["spec"]),
        "PersistentVolumeClaim" => keep(&mut object["status"], &["phase"]),
        "StorageClass" => remove(object, &["parameters", "mountOptions"]),
        "ECSNodeClass" => node_class(&mut object["spec"]),
        // Our own kinds and those that hold nothing but rules.
        _ => {}
    }
}

fn metadata(metadata: &mut Value) {
    keep(metadata, &METADATA);
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|key, _| ANNOTATIONS.iter().any(|known| key.starts_with(known)));
    }
    drop_empty(metadata);
}

fn pod_spec(spec: &mut Value) {
    keep(spec, &POD_SPEC);
    for list in ["containers", "initContainers"] {
        let containers = spec[list].as_array_mut().into_iter().flatten();
        containers.for_each(|it| keep(it, &CONTAINER));
    }
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.retain(|it| it["persistentVolumeClaim"].is_object() || it["ephemeral"].is_object());
        volumes.iter_mut().for_each(|it| keep(it, &VOLUME));
    }
    drop_empty(spec);
}

fn conditions(status: &mut Value) {
    let conditions = status["conditions"].as_array_mut().into_iter().flatten();
    conditions.for_each(|it| keep(it, &CONDITION));
    drop_empty(status);
}

fn volume(spec: &mut Value) {
    keep(
        spec,
        &[
            "capacity",
            "accessModes",
            "storageClassName",
            "claimRef",
            "nodeAffinity",
            "csi",
            "local",
            "hostPath",
        ],
    );
    keep(&mut spec["csi"], &["driver", "volumeHandle"]);
    for source in ["local", "hostPath"] {
        if spec[source].is_object() {
            spec[source] = serde_json::json!({ "path": "" });
        }
    }
    drop_empty(spec);
}

fn node_class(spec: &mut Value) {
    remove(spec, &["userData", "joinTemplate", "keyPairName"]);
    let policies = spec["policies"].as_array_mut().into_iter().flatten();
    policies.for_each(|it| remove(it, &["config"]));
    drop_empty(spec);
}

fn keep(value: &mut Value, fields: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| fields.contains(&key.as_str()));
    }
}

fn remove(value: &mut Value, fields: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !fields.contains(&key.as_str()));
    }
}

/// Looking at a field that is not there makes it null.
fn drop_empty(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| {
            !value.is_null() && value.as_object().is_none_or(|it| !Map::is_empty(it))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut object: Value, expected: &Value) {
        redact(&mut object);
        assert!(!object.to_string().contains("secret"), "{object}");
        assert_eq!(object, *expected);
    }

    #[test]
    fn of_a_pod_stays_what_decides_where_it_goes() {
        check(
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "web", "managedFields": ["secret"],
                    "annotations": {"karpenter.sh/do-not-disrupt": "true", "token": "secret"},
                },
                "spec": {
                    "serviceAccountName": "secret", "nodeSelector": {"pool": "a"},
                    "containers": [{
                        "name": "main", "image": "secret", "env": [{"name": "PASSWORD", "value": "secret"}],
                        "command": ["secret"], "resources": {"requests": {"cpu": "1"}},
                    }],
                    "volumes": [
                        {"name": "key", "secret": {"secretName": "secret"}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    ],
                },
                "status": {
                    "phase": "Pending", "hostIP": "secret",
                    "conditions": [{"type": "PodScheduled", "status": "False", "message": "secret"}],
                },
            }),
            &json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "web", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
                "spec": {
                    "nodeSelector": {"pool": "a"},
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                },
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False"}],
                },
            }),
        );
    }

    #[test]
    fn a_node_class_keeps_neither_user_data_nor_the_configuration_of_policies() {
        check(
            json!({
                "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass",
                "metadata": {"name": "default"},
                "spec": {"userData": "secret", "role": "r", "policies": [{"name": "p", "config": {"key": "secret"}}]},
            }),
            &json!({
                "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass",
                "metadata": {"name": "default"},
                "spec": {"role": "r", "policies": [{"name": "p"}]},
            }),
        );
    }

    #[test]
    fn volumes_keep_where_they_are_and_no_secrets_of_their_drivers() {
        check(
            json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
                "spec": {"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "secret"}}},
            }),
            &json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
                "spec": {"csi": {"driver": "d", "volumeHandle": "h"}},
            }),
        );
    }
}
