//! Manifests of other autoscalers into `kerf convert`.

use super::{Planted, Target, seeds_of, text_of};

pub(super) const TARGET: Target = Target {
    name: "convert",
    run,
    seeds: || {
        seeds_of(&[
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  weight: 3\n  template:\n    spec:\n      requirements:\n      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}\n",
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n  amiFamily: AL2\n  kubelet: {maxPods: 20}\n  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}]\n",
            "nodepools:\n- nodepool_info: {name: a}\n  scaling_group: {instance_types: [ecs.g7.large], desired_size: 1}\n  auto_scaling: {enable: true, max_instances: 3}\n",
            "apiVersion: karpenter.k8s.alibabacloud/v1alpha1\nkind: ECSNodeClass\nmetadata: {name: a}\nspec: {vSwitchSelectorTerms: [{id: vsw-1}]}\n",
        ])
    },
};

fn run(bytes: &[u8], planted: Planted) {
    let Some(Ok(printed)) = text_of(bytes).map(kerf::converted) else {
        return;
    };
    planted.at(printed.matches("\n---\n").count() > 1 && printed.contains("kubelet"));
}
