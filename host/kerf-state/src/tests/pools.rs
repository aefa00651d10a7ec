//! When a NodePool can grow, and what is wrong with it when it cannot.

use super::*;

const CLASS: &str = "
apiVersion: karpenter.alibabacloud.com/v1alpha1
kind: ECSNodeClass
metadata: {name: default}
spec: {}
status:
  conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]
";

const POOL: &str = "
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  limits: {cpu: 100, nodes: 5}
  template:
    metadata: {labels: {example.com/team: search}}
    spec:
      nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand], minValues: 1}]
  disruption:
    consolidateAfter: 720h
    budgets: [{nodes: '20%', schedule: '0 9 * * 1-5', duration: 8h, reasons: [Empty]}]
";

#[test]
fn a_pool_with_a_ready_class_is_ready() {
    check(
        &format!("{CLASS}{POOL}"),
        &expect![[r#"
        pool general: ready
    "#]],
    );

    let snapshot = snapshot(&cluster(&format!("{CLASS}{POOL}")));
    let pool = &snapshot.pools[0];
    assert_eq!(pool.weight, 10);
    assert_eq!(pool.limits.bound("cpu"), Some(100_000));
    assert_eq!(pool.limits.bound("nodes"), Some(5));
    assert_eq!(
        pool.template.expire_after.map(|it| it.as_secs()),
        Some(720 * 3600)
    );
    assert_eq!(
        pool.disruption.consolidate_after.map(|it| it.as_secs()),
        Some(720 * 3600)
    );
    let requirement = pool.template.requirements.on("karpenter.sh/capacity-type");
    assert_eq!(requirement.and_then(|it| it.min_values()), Some(1));
    assert_eq!(
        pool.template.requirements.to_string(),
        "karpenter.sh/capacity-type In [on-demand]"
    );
}

#[test]
fn a_pool_without_its_class_says_so() {
    check(
        POOL,
        &expect![[r#"
        pool general: NodeClassNotFound: ECSNodeClass.karpenter.alibabacloud.com default does not exist
    "#]],
    );
}

#[test]
fn a_pool_whose_class_is_not_ready_says_why() {
    let class = CLASS.replace(
        "conditions: [{type: Ready, status: 'True',",
        "conditions: [{type: VSwitchResolved, status: 'False', reason: VSwitchResolutionFailed, message: 'no vSwitch has id vsw-1', lastTransitionTime: '2026-01-01T00:00:00Z'}, {type: Ready, status: 'False',",
    );
    check(
        &format!("{class}{POOL}"),
        &expect![[r#"
        pool general: NodeClassNotReady: ECSNodeClass default: VSwitchResolutionFailed: no vSwitch has id vsw-1
    "#]],
    );
}

#[test]
fn a_pool_of_which_no_types_are_known_yet_cannot_grow() {
    check(
        &format!("{CLASS}{POOL}").replace("{name: general}", "{name: other}"),
        &expect![[r#"
        pool other: InstanceTypesUnknown: the cloud's catalog has not been read yet
    "#]],
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_told_and_does_not_stop_its_pool() {
    let pool = POOL.replace(
        "metadata: {name: general}",
        "metadata: {name: general, annotations: {karpenter.alibabacloud.com/consolidation-saving-min: much}}",
    );
    let cluster = cluster(&format!("{CLASS}{pool}"));

    let problems: Vec<String> = cluster.problems().map(|it| it.to_string()).collect();

    assert_eq!(
        problems,
        [
            "NodePool general: metadata.annotations[karpenter.alibabacloud.com/consolidation-saving-min]: \"much\" is not a price per hour such as 0.05"
        ]
    );
    let pool = &snapshot(&cluster).pools[0];
    assert!(pool.can_grow_for_pods());
    assert_eq!(
        pool.disruption.hysteresis,
        kerf_core::disruption::settings::Hysteresis::default()
    );
}

#[test]
fn every_mistake_of_a_pool_is_named_and_keeps_it_from_growing() {
    let pool = "
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: many}
  template:
    metadata: {labels: {kubernetes.io/hostname: a}}
    spec:
      nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
      expireAfter: 30d
      taints: [{key: a, effect: NoSchedule}]
      startupTaints: [{key: a, effect: NoSchedule}]
      requirements:
        - {key: karpenter.sh/nodepool, operator: Exists}
        - {key: karpenter.sh/capacity-type, operator: In, values: [cheap]}
        - {key: example.com/a, operator: In, values: [p, q], minValues: 3}
        - {key: example.com/b, operator: Gt, values: [x]}
  disruption:
    consolidationPolicy: Sometimes
    budgets: [{nodes: '200%'}, {nodes: '1', schedule: '* * *', duration: 1h}, {nodes: '1', schedule: '@daily'}]
";
    let cluster = cluster(&format!("{CLASS}{pool}"));

    let problems: Vec<String> = cluster.problems().map(|it| it.to_string()).collect();

    expect![[r#"
        NodePool general: spec.limits.cpu: parse quantity "many": want a number with an optional suffix such as m, k, Mi or e3
        NodePool general: spec.template.metadata.labels[kubernetes.io/hostname]: kubernetes.io/hostname belongs to the controller; use a key of your own domain
        NodePool general: spec.template.spec.requirements[0].key: karpenter.sh/nodepool is set by the controller; remove it
        NodePool general: spec.template.spec.requirements[1].values: none of cheap is a capacity type: use spot, on-demand or reserved
        NodePool general: spec.template.spec.requirements[2].minValues: is above the 2 values that are listed
        NodePool general: spec.template.spec.taints: a:NoSchedule is there twice, counting startupTaints
        NodePool general: spec.template.spec.requirements[3]: requirement on example.com/b: Gt needs exactly one integer value
        NodePool general: spec.template.spec.expireAfter: "30d" is not a duration: write numbers with units, such as 720h or 1h30m
        NodePool general: spec.disruption.consolidationPolicy: "Sometimes" is not one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced
        NodePool general: spec.disruption.budgets[0].nodes: "200%" is neither a number nor a percentage up to 100%
        NodePool general: spec.disruption.budgets[1].schedule: parse schedule "* * *": want five cron fields or a macro such as @daily
        NodePool general: spec.disruption.budgets[2]: a budget has both schedule and duration, or neither"#]]
    .assert_eq(&problems.join("\n"));
    assert!(!snapshot(&cluster).pools[0].can_grow_for_pods());
}

#[test]
fn budgets_follow_the_clocks_of_the_pools_time_zone_and_close_when_it_is_none() {
    let allowed = |zone: &str, now: &str| {
        let yaml = format!(
            r#"
            metadata: {{name: general, annotations: {{karpenter.alibabacloud.com/budget-time-zone: "{zone}"}}}}
            spec:
              template: {{spec: {{requirements: [], nodeClassRef: {{group: g, kind: k, name: n}}}}}}
              disruption: {{consolidateAfter: 0s, budgets: [{{nodes: "2", schedule: "0 9 * * *", duration: 1h}}]}}
            "#
        );
        let converted = crate::node_pool(&serde_saphyr::from_str(&yaml).unwrap());
        assert!(converted.problems.is_empty(), "{:?}", converted.problems);
        let budgets = &converted.pool.disruption.budgets;
        let reason = kerf_core::disruption::budget::DisruptionReason::Empty;
        let allowed = kerf_core::disruption::budget::allowed_disruptions(
            budgets,
            10,
            reason,
            now.parse().unwrap(),
        );
        (allowed, converted.ignored.len())
    };

    assert_eq!(allowed("+08:00", "2026-08-20T01:30:00Z"), (2, 0));
    assert_eq!(allowed("+08:00", "2026-08-20T09:30:00Z"), (10, 0));
    assert_eq!(allowed("-03:30", "2026-08-20T12:45:00Z"), (2, 0));
    assert_eq!(allowed("UTC", "2026-08-20T09:30:00Z"), (2, 0));
    assert_eq!(allowed("Asia/Shanghai", "2026-08-20T12:00:00Z"), (0, 1));
}

#[test]
fn a_pool_counts_its_own_claims_that_stay() {
    let claim = |name: &str, pool: &str, cpu: &str, more: &str| {
        format!(
            "
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: {name}, labels: {{karpenter.sh/nodepool: {pool}}}{more}}}
spec:
  nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
  requirements: []
status: {{capacity: {{cpu: {cpu}}}}}
"
        )
    };
    let going = ", deletionTimestamp: '2026-01-01T00:00:09Z', finalizers: [f]";
    let cluster = cluster(
        &[
            claim("a", "general", "'2'", ""),
            claim("b", "general", "1500m", ""),
            claim("c", "other", "'8'", ""),
            claim("d", "general", "'64'", going),
        ]
        .concat(),
    );

    let (nodes, capacity) = cluster.pool_total("general");

    assert_eq!((nodes, capacity.amount("cpu")), (2, 3_500));
    assert_eq!(cluster.pool_total("empty").0, 0);
}
