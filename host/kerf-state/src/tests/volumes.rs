//! What volumes ask of a node.

use super::*;

/// A pod with one claim, and the objects behind it.
fn check_volume(objects: &str, expect: &Expect) {
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: default}
spec:
  containers: []
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
status:
  conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]
";
    let snapshot = snapshot(&cluster(&format!("{pod}\n---\n{objects}")));
    let volume = &snapshot.pending_pods[0].spec.volumes[0];

    let problem = volume.problem.as_ref().map(ToString::to_string);
    let places: Vec<String> = volume
        .alternatives
        .iter()
        .map(ToString::to_string)
        .collect();
    let attachment = volume
        .attachment
        .as_ref()
        .map(|it| format!("{} {}", it.driver, it.handle));
    expect.assert_eq(&format!(
        "{}: {:?} {} {}",
        volume.claim,
        places,
        attachment.unwrap_or_default(),
        problem.unwrap_or_default()
    ));
}

const BOUND: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}
spec: {volumeName: pv-1}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec:
  csi: {driver: diskplugin.csi.alibabacloud.com, volumeHandle: d-1}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: topology.diskplugin.csi.alibabacloud.com/zone, operator: In, values: [cn-hangzhou-h]}]
";

const UNBOUND: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {storageClassName: disk}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disk}
provisioner: diskplugin.csi.alibabacloud.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [h, i]}]}]
";

#[test]
fn a_bound_disk_is_where_its_volume_is_under_the_canonical_key() {
    check_volume(
        BOUND,
        &expect![[
            r#"default/data: ["topology.kubernetes.io/zone In [cn-hangzhou-h]"] diskplugin.csi.alibabacloud.com d-1 "#
        ]],
    );
}

#[test]
fn an_unbound_disk_is_where_its_class_allows() {
    check_volume(
        UNBOUND,
        &expect![[
            r#"default/data: ["topology.kubernetes.io/zone In [h, i]"] diskplugin.csi.alibabacloud.com default/data "#
        ]],
    );
}

#[test]
fn a_local_volume_does_not_hold_its_pod_on_a_node() {
    let local = BOUND
        .replace(
            "csi: {driver: diskplugin.csi.alibabacloud.com, volumeHandle: d-1}",
            "local: {path: /mnt}",
        )
        .replace(
            "topology.diskplugin.csi.alibabacloud.com/zone",
            "kubernetes.io/hostname",
        );

    check_volume(&local, &expect!["default/data: []  "]);
}

#[test]
fn what_is_missing_is_named() {
    check_volume(
        "{apiVersion: v1, kind: Namespace, metadata: {name: default}}",
        &expect!["default/data: []  claim does not exist or is being deleted"],
    );
    check_volume(
        &BOUND.replace("{name: pv-1}", "{name: pv-2}"),
        &expect!["default/data: []  volume pv-1 does not exist or is being deleted"],
    );
    check_volume(
        &BOUND.replace("bind-completed", "other"),
        &expect!["default/data: []  binding has not completed"],
    );
    check_volume(
        &UNBOUND.replace("storageClassName: disk", ""),
        &expect!["default/data: []  unbound and without a storage class"],
    );
    check_volume(
        &UNBOUND.replace("storageClassName: disk", "storageClassName: other"),
        &expect!["default/data: []  storage class other does not exist"],
    );
    check_volume(
        &UNBOUND.replace("WaitForFirstConsumer", "Immediate"),
        &expect![
            "default/data: []  storage class disk binds immediately and the claim is not bound yet"
        ],
    );
}

#[test]
fn attachment_limits_come_from_the_csi_node() {
    let yaml = "
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-1}
spec:
  drivers:
    - {name: diskplugin.csi.alibabacloud.com, nodeID: i-1, allocatable: {count: 15}}
    - {name: nasplugin.csi.alibabacloud.com, nodeID: i-1}
";
    let snapshot = snapshot(&cluster(yaml));

    let limits = &snapshot.nodes[0].attachment_limits;

    assert_eq!(limits.len(), 1);
    assert_eq!(limits["diskplugin.csi.alibabacloud.com"], 15);
}
