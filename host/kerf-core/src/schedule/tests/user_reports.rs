//! What users of such autoscalers reported about scheduling, each named after its symptom.

use super::kit::*;
use crate::instance_type::CapacityType;
use crate::labels::{self, ZONE};
use crate::pod::{DaemonPod, OwnerKind, Pod, PodSpec, TopologySpread};
use crate::requirement::{Operator, Requirement};
use crate::requirements::Requirements;
use crate::selector::LabelSelector;
use crate::volume::Volume;

fn claim_in(zone_key: &str, zone: &str) -> Volume {
    Volume {
        claim: "default/data".to_owned(),
        alternatives: vec![Requirements::from_labels([(zone_key, zone)])],
        attachment: None,
        problem: None,
    }
}

fn spread_over_zones() -> PodSpec {
    let labels = [("app".to_owned(), "a".to_owned())].into_iter().collect();
    let spread = TopologySpread::new(ZONE, 1, LabelSelector::label("app", "a"));
    PodSpec {
        labels,
        topology_spread: vec![spread],
        ..spec(1500)
    }
}

fn zones_of(plan: &crate::Plan) -> Vec<&str> {
    plan.new_claims
        .iter()
        .map(|claim| &*claim.offerings[0].zone)
        .collect()
}

fn daemon(name: &str, spec: PodSpec) -> DaemonPod {
    DaemonPod {
        namespace: "kube-system".into(),
        name: name.into(),
        spec: spec.into(),
    }
}

#[test]
fn f02_a_bound_volume_names_its_zone_by_the_label_of_its_driver() {
    let volumes = vec![claim_in(
        "topology.diskplugin.csi.alibabacloud.com/zone",
        "i",
    )];
    assert_eq!(
        zones_of(
            &World::new(pool())
                .pod(
                    "a",
                    PodSpec {
                        volumes,
                        ..spec(100)
                    }
                )
                .plan()
        ),
        ["i"]
    );

    let volumes = vec![claim_in(
        "topology.diskplugin.csi.alibabacloud.com/zone",
        "k",
    )];
    let plan = World::new(pool())
        .pod(
            "a",
            PodSpec {
                volumes,
                ..spec(100)
            },
        )
        .plan();
    assert!(plan.new_claims.is_empty());
    assert!(
        only_reason(&plan).contains("topology.kubernetes.io/zone In [k]"),
        "{}",
        only_reason(&plan)
    );
}

#[test]
fn f09_a_zone_without_vswitch_is_a_reason_and_not_a_claim() {
    let mut wanted = spec(100);
    wanted
        .node_selector
        .insert(ZONE.to_owned(), "cn-hangzhou-k".to_owned());
    let plan = World::new(pool()).pod("a", wanted).plan();
    assert!(
        only_reason(&plan).contains("topology.kubernetes.io/zone In [cn-hangzhou-k]"),
        "{}",
        only_reason(&plan)
    );
}

#[test]
fn f13_pods_that_ask_for_network_interfaces_get_a_type_that_has_them() {
    let mut with_interfaces = instance_type("ecs.g7.4c", 4);
    with_interfaces.capacity.set("aliyun/eni", 3);
    let mut wanted = spec(100);
    wanted.requests.set("aliyun/eni", 1);
    let plan = World::new(pool_of([instance_type("ecs.g7.2c", 2), with_interfaces]))
        .pods(pods("a", 4, &wanted))
        .plan();
    assert_eq!(
        plan.new_claims
            .iter()
            .map(|claim| claim.pods.len())
            .collect::<Vec<_>>(),
        [3, 1]
    );
}

#[test]
fn f35_a_type_that_cannot_attach_the_disk_category_is_not_chosen() {
    let key = "node.csi.alibabacloud.com/disktype.cloud_essd";
    let mut attaches = instance_type("ecs.g7.4c", 4);
    attaches
        .requirements
        .add(Requirement::in_values(key, ["available"]));
    let mut other = instance_type("ecs.sn1ne.2c", 2);
    let efficiency = "node.csi.alibabacloud.com/disktype.cloud_efficiency";
    other
        .requirements
        .add(Requirement::in_values(efficiency, ["available"]));
    let volume = Volume {
        alternatives: vec![Requirements::from_labels([(key, "available")])],
        ..claim_in(ZONE, "h")
    };
    let plan = World::new(pool_of([attaches, other]))
        .pod(
            "a",
            PodSpec {
                volumes: vec![volume],
                ..spec(100)
            },
        )
        .plan();
    assert_eq!(shown(&plan), ["a -> ecs.g7.4c h"]);
}

#[test]
fn f49_labels_of_registration_are_met_and_never_written_into_a_claim() {
    let mut wanted = spec(100);
    wanted
        .node_selector
        .insert(labels::REGISTERED.to_owned(), "true".to_owned());
    let initialized = Requirement::in_values(labels::INITIALIZED, ["true"]);
    wanted
        .required_node_terms
        .push([initialized].into_iter().collect());

    let plan = World::new(pool()).pod("a", wanted).plan();

    let claim = &plan.new_claims[0];
    assert!(
        claim
            .requirements
            .iter()
            .all(|it| !labels::is_restricted(it.key())),
        "{}",
        claim.requirements
    );
    assert!(claim.labels.keys().all(|key| !labels::is_restricted(key)));
}

#[test]
fn f52_zones_of_a_broken_pool_do_not_count_for_a_spread() {
    let mut broken = named("bad", 0, pool());
    broken
        .template
        .requirements
        .add(Requirement::in_values(ZONE, ["cn-hangzhou-zz"]));
    let plan = World::new(pool())
        .pool(broken)
        .pods(pods("a", 4, &spread_over_zones()))
        .plan();
    assert_eq!(plan.unschedulable_pods(), 0);
}

#[test]
fn f53_pinned_volumes_and_min_domains_place_all_pods_when_zones_suffice() {
    let pinned = |zone: &str| {
        let mut spec = spread_over_zones();
        spec.topology_spread[0].min_domains = Some(2);
        PodSpec {
            volumes: vec![claim_in(ZONE, zone)],
            ..spec
        }
    };
    let three = ["h", "i", "h"]
        .iter()
        .enumerate()
        .map(|(n, zone)| Pod::new(&format!("p-{n}"), pinned(zone)));
    let plan = World::new(pool_of([instance_type("ecs.g7.2c", 2)]))
        .pods(three)
        .plan();
    assert_eq!(zones_of(&plan), ["h", "i", "h"]);
}

#[test]
fn f56_daemons_that_select_types_count_only_there() {
    let sized = |cores: u32| {
        let mut it = instance_type(&format!("ecs.g7.{cores}c"), cores);
        it.requirements.add(Requirement::in_values(
            labels::INSTANCE_CPU,
            [cores.to_string()],
        ));
        it
    };
    let on = |operator, bound: &str, cpu| {
        let requirement = Requirement::parse(labels::INSTANCE_CPU, operator, [bound]).unwrap();
        PodSpec {
            required_node_terms: vec![[requirement].into_iter().collect()],
            ..spec(cpu)
        }
    };
    let mut gpu = spec(4000);
    gpu.node_selector
        .insert(labels::INSTANCE_GPU_NAME.to_owned(), "A10".to_owned());
    let world = |cpu| {
        let mut world = World::new(pool_of([4, 16].map(sized))).pod("a", spec(cpu));
        world
            .0
            .daemon_pods
            .push(daemon("small", on(Operator::Lt, "9", 100)));
        world
            .0
            .daemon_pods
            .push(daemon("big", on(Operator::Gt, "8", 2000)));
        world.0.daemon_pods.push(daemon("gpu", gpu.clone()));
        world.plan()
    };
    assert_eq!(world(3000).new_claims[0].requests.cpu_milli(), 3100);
    assert_eq!(world(14_000).new_claims[0].requests.cpu_milli(), 16_000);
    assert_eq!(world(14_100).unschedulable_pods(), 1);
}

#[test]
fn f57_pods_of_other_controllers_are_no_daemons() {
    let mut whole = spec(1000);
    whole.requests.set("nvidia.com/gpu", 8);
    whole.owner = OwnerKind::Other;
    let mut gpus = instance_type("ecs.gn7i.64c", 64);
    gpus.capacity.set("nvidia.com/gpu", 8);
    let mut world = World::new(pool_of([gpus])).pod("a", whole);
    world.0.daemon_pods = (0..6)
        .map(|n| daemon(&format!("d-{n}"), spec(100)))
        .collect();
    assert_eq!(world.plan().new_claims.len(), 1);
}

#[test]
fn f59_claims_that_never_become_ready_count_against_the_limit() {
    let mut limited = pool_of([instance_type("ecs.g7.8c", 8)]);
    limited.limits.set("cpu", 16_000);
    let stuck = |n: usize| crate::node::Node {
        name: None,
        is_initialized: false,
        is_registered: false,
        allocatable: crate::resources::Resources::default(),
        ..node(&format!("claim-{n}"), 8, "h")
    };
    let plan = World::new(limited)
        .node(stuck(1))
        .node(stuck(2))
        .pod("a", spec(100))
        .plan();
    assert!(plan.new_claims.is_empty());
}

#[test]
fn f01_an_offering_without_stock_is_not_planned_again() {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let mut only = sold("ecs.c7a.4c", 4, &["b"], &both);
    only.offerings[0].unavailable = Some("OperationDenied.NoStock".to_owned().into());
    let world = |it| World::new(pool_of([it])).pod("a", spec(100)).plan();
    assert_eq!(
        world(only.clone()).new_claims[0].offerings[0].capacity_type,
        CapacityType::Spot
    );

    only.offerings[1].unavailable = Some("OperationDenied.NoStock".to_owned().into());
    assert!(only_reason(&world(only)).contains("OperationDenied.NoStock in b (on-demand)"));
}
