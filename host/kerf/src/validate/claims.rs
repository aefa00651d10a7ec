//! NodeClaims of random pods are ones that the definition takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_api::nodepool::NodePool as PoolObject;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node_pool::{NodeClassRef, NodePool};
use kerf_core::plan::WorkBudget;
use kerf_core::pod::{Pod, PodSpec};
use kerf_core::preferences::Preferences;
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;
use kerf_core::schedule::schedule;
use kerf_core::snapshot::Snapshot;

use super::Definitions;

/// Keys that pods select nodes by, those that no claim may carry among them, with values that nodes have.
const SELECTORS: [(&str, &str); 12] = [
    ("karpenter.sh/registered", "true"),
    ("karpenter.sh/initialized", "true"),
    ("karpenter.sh/nodepool", "general"),
    ("karpenter.sh/capacity-type", "spot"),
    ("karpenter.sh/capacity-type", "on-demand"),
    ("kubernetes.io/arch", "amd64"),
    ("kubernetes.io/os", "linux"),
    ("beta.kubernetes.io/os", "linux"),
    ("topology.kubernetes.io/zone", "h"),
    ("failure-domain.beta.kubernetes.io/zone", "i"),
    ("karpenter.alibabacloud.com/instance-cpu", "4"),
    ("team", "a"),
];

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count
    }
}

fn pool() -> NodePool {
    let offerings = ["h", "i"].into_iter().flat_map(|zone| {
        [CapacityType::OnDemand, CapacityType::Spot]
            .map(|it| Offering::new(zone, it, Price::from_per_hour(1.0)))
    });
    let instance_type = InstanceType::new(
        "ecs.g7.xlarge",
        [
            Requirement::in_values(labels::ARCH, ["amd64"]),
            Requirement::in_values(labels::OS, ["linux"]),
            Requirement::in_values(labels::INSTANCE_CPU, ["4"]),
        ],
        Resources::of(4000, 16 << 30).with("pods", 110),
        Resources::default(),
        offerings.collect(),
    );
    let mut pool = NodePool {
        name: "general".into(),
        instance_types: Arc::new(vec![Arc::new(instance_type)]),
        ..NodePool::default()
    };
    pool.template.node_class = NodeClassRef {
        group: labels::GROUP.to_owned(),
        kind: "ECSNodeClass".to_owned(),
        name: "default".to_owned(),
    };
    pool.template.labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    pool
}

// user-reports.md, F49.
#[test]
fn a_claim_never_carries_a_key_that_its_own_definition_refuses() {
    let definitions = Definitions::load().unwrap();
    let of_pool = serde_json::json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "u"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {
            "group": labels::GROUP, "kind": "ECSNodeClass", "name": "default",
        }}}},
    });
    let of_pool: PoolObject = serde_json::from_value(of_pool).unwrap();
    let mut dice = Dice(49);
    let (mut claims, mut with_marks) = (0, 0);

    for round in 0..300 {
        let mut spec = PodSpec::requesting(500, 1 << 28);
        for _ in 0..dice.below(4) {
            let (key, value) = SELECTORS[dice.below(SELECTORS.len())];
            spec.node_selector.insert(key.to_owned(), value.to_owned());
        }
        let selects_mark = spec
            .node_selector
            .keys()
            .any(|key| [labels::REGISTERED, labels::INITIALIZED].contains(&key.as_str()));
        let snapshot = Snapshot {
            pools: vec![Arc::new(pool())],
            pending_pods: vec![Arc::new(Pod::new("a", spec))],
            ..Snapshot::default()
        };
        let now = jiff::Timestamp::UNIX_EPOCH;
        let plan = schedule(&snapshot, &Preferences::none(), WorkBudget::ROUND, now);

        for planned in &plan.new_claims {
            let claim = kerf_controllers::provision::claim::build("c", planned, &of_pool);
            let object = serde_json::to_value(claim).unwrap();
            assert_eq!(
                definitions.check(&object, None),
                [],
                "round {round}: {object}"
            );
            claims += 1;
            with_marks += usize::from(selects_mark);
        }
    }

    assert!(
        claims > 200 && with_marks > 50,
        "{claims} claims, {with_marks} with marks"
    );
}
