//! Instance types, labels, taints, daemons, and the reasons of pods without a place.

use std::collections::BTreeMap;

use super::kit::*;
use crate::instance_type::CapacityType;
use crate::labels;
use crate::plan::PlacementReason;
use crate::pod::{DaemonPod, HostPort, Protocol};
use crate::requirement::{Operator, Requirement};
use crate::taint::{Taint, TaintEffect, Toleration, TolerationOperator};

#[test]
fn a_pod_gets_the_cheapest_type_that_holds_it() {
    let plan = World::new(pool()).pod("a", spec(3000)).plan();
    assert_eq!(shown(&plan), ["a -> ecs.g7.4c h"]);
    assert_eq!(plan.price_per_hour().to_string(), "0.4000");
}

#[test]
fn small_pods_share_a_node() {
    let plan = World::new(pool()).pods(pods("a", 3, &spec(500))).plan();
    assert_eq!(shown(&plan), ["a-000 a-001 a-002 -> ecs.g7.2c h"]);
}

#[test]
fn thirty_one_pod_nodes_over_three_zones_come_out_ten_each() {
    let one_pod_type = instance_type("ecs.g7.2c", 2);
    let plan = World::new(pool_of([one_pod_type]))
        .pods(pods("a", 30, &spec(1500)))
        .plan();
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in &plan.new_claims {
        *zones.entry(&claim.offerings[0].zone).or_default() += 1;
    }
    assert_eq!(zones, BTreeMap::from([("h", 10), ("i", 10), ("j", 10)]));
}

#[test]
fn at_equal_price_and_nodes_the_zone_with_most_free_ips_comes_first() {
    let mut pool = pool();
    pool.free_ips = [("h".into(), 5), ("i".into(), 9), ("j".into(), 7)]
        .into_iter()
        .collect();
    let plan = World::new(pool).pod("a", spec(1500)).plan();
    let zones: Vec<&str> = plan.new_claims[0]
        .offerings
        .iter()
        .take(3)
        .map(|it| &*it.zone)
        .collect();
    assert_eq!(zones, ["i", "j", "h"]);
}

#[test]
fn zones_where_the_pool_has_nodes_come_later() {
    let mut full = node("n1", 2, "h");
    full.allocatable = crate::resources::Resources::default();
    let plan = World::new(pool()).node(full).pod("a", spec(1500)).plan();
    assert_eq!(shown(&plan), ["a -> ecs.g7.2c i"]);
}

#[test]
fn a_pool_with_balanced_zones_takes_the_zone_with_fewest_nodes_before_the_cheapest() {
    let first_zones = |is_zone_balanced| {
        let mut offered = instance_type("ecs.g7.2c", 2);
        offered.offerings[0].price = crate::price::Price::from_per_hour(0.05);
        let pool = crate::node_pool::NodePool {
            is_zone_balanced,
            ..pool_of([offered])
        };
        let plan = World::new(pool).pods(pods("a", 6, &spec(1500))).plan();
        let claims = plan.new_claims.iter();
        let mut zones: Vec<String> = claims.map(|it| it.offerings[0].zone.to_string()).collect();
        zones.sort();
        zones.concat()
    };

    assert_eq!(first_zones(false), "hhhhhh");
    assert_eq!(first_zones(true), "hhiijj");
}

#[test]
fn selectors_choose_zone_and_capacity_type() {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let mut wanted = spec(1500);
    wanted.node_selector.insert(
        "topology.diskplugin.csi.alibabacloud.com/zone".to_owned(),
        "j".to_owned(),
    );
    wanted
        .node_selector
        .insert(labels::CAPACITY_TYPE.to_owned(), "on-demand".to_owned());

    let plan = World::new(pool_of([sold("ecs.g7.2c", 2, &ZONES, &both)]))
        .pod("a", wanted)
        .plan();

    assert_eq!(plan.new_claims[0].offerings.len(), 1);
    assert_eq!(
        plan.new_claims[0].offerings[0].capacity_type,
        CapacityType::OnDemand
    );
    assert_eq!(&*plan.new_claims[0].offerings[0].zone, "j");
}

#[test]
fn spot_is_first_where_it_is_cheaper_and_allowed() {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let plan = World::new(pool_of([sold("ecs.g7.2c", 2, &["h"], &both)]))
        .pod("a", spec(1500))
        .plan();
    let order: Vec<CapacityType> = plan.new_claims[0]
        .offerings
        .iter()
        .map(|it| it.capacity_type)
        .collect();
    assert_eq!(order, [CapacityType::Spot, CapacityType::OnDemand]);
}

#[test]
fn custom_labels_of_the_pool_can_be_selected_and_end_up_on_the_claim() {
    let mut pool = pool();
    pool.template
        .requirements
        .add(Requirement::in_values("example.com/team", ["a", "b"]));
    pool.template
        .labels
        .insert("example.com/tier".to_owned(), "web".to_owned());
    let mut wanted = spec(100);
    wanted
        .node_selector
        .insert("example.com/team".to_owned(), "b".to_owned());

    let plan = World::new(pool).pod("a", wanted).plan();

    let labels = &plan.new_claims[0].labels;
    assert_eq!(labels["example.com/team"], "b");
    assert_eq!(labels["example.com/tier"], "web");
    assert_eq!(labels[labels::NODE_POOL], "general");
}

#[test]
fn an_unknown_label_is_a_reason_with_a_hint() {
    let mut wanted = spec(100);
    wanted
        .node_selector
        .insert("kubernetes.io/arc".to_owned(), "amd64".to_owned());
    let plan = World::new(pool()).pod("a", wanted).plan();
    assert_eq!(
        only_reason(&plan),
        "pool general: wants kubernetes.io/arc In [amd64], a label without known values; did you mean kubernetes.io/arch?"
    );
}

#[test]
fn bounds_select_instance_types() {
    let with_cpu = |cores: u32| {
        let mut it = instance_type(&format!("ecs.g7.{cores}c"), cores);
        it.requirements.add(Requirement::in_values(
            labels::INSTANCE_CPU,
            [cores.to_string()],
        ));
        it
    };
    let mut pool = pool_of([2, 4, 8].map(with_cpu));
    let more_than_two = Requirement::parse(labels::INSTANCE_CPU, Operator::Gt, ["2"]).unwrap();
    pool.template.requirements.add(more_than_two);
    let plan = World::new(pool).pod("a", spec(100)).plan();
    assert_eq!(shown(&plan), ["a -> ecs.g7.4c h"]);
}

#[test]
fn types_that_do_not_speak_of_gpus_have_none() {
    let mut wanted = spec(100);
    let any_gpu = Requirement::exists("karpenter.k8s.alibabacloud/instance-gpu-name");
    wanted
        .required_node_terms
        .push([any_gpu].into_iter().collect());
    assert_eq!(
        World::new(pool())
            .pod("a", wanted)
            .plan()
            .unschedulable_pods(),
        1
    );
}

#[test]
fn taints_must_be_tolerated() {
    let mut tainted = pool();
    tainted
        .template
        .taints
        .push(Taint::new("example.com/gpu", TaintEffect::NoSchedule));
    tainted
        .template
        .startup_taints
        .push(Taint::new("example.com/agent", TaintEffect::NoSchedule));
    let mut tolerant = spec(100);
    tolerant.tolerations.push(Toleration {
        key: Some("example.com/gpu".to_owned()),
        operator: TolerationOperator::Exists,
        value: String::new(),
        effect: None,
    });

    let plan = World::new(tainted)
        .pod("a", spec(100))
        .pod("b", tolerant)
        .plan();

    assert_eq!(shown(&plan), ["b -> ecs.g7.2c h"]);
    assert_eq!(
        only_reason(&plan),
        "pool general: does not tolerate taint example.com/gpu:NoSchedule"
    );
}

#[test]
fn heavier_pools_come_first_and_lighter_ones_take_what_they_cannot() {
    let small = named("small", 50, pool_of([instance_type("ecs.g7.2c", 2)]));
    let plan = World::new(pool())
        .pool(small)
        .pod("a", spec(1000))
        .pod("b", spec(7500))
        .plan();
    let pools: Vec<&str> = plan.new_claims.iter().map(|claim| &*claim.pool).collect();
    assert_eq!(pools, ["general", "small"]);
}

#[test]
fn daemons_take_their_share_of_the_types_that_they_run_on() {
    let mut arm = instance_type("ecs.g8y.2c", 2);
    arm.requirements
        .replace(Requirement::in_values(labels::ARCH, ["arm64"]));
    arm.offerings
        .iter_mut()
        .for_each(|it| it.price = crate::price::Price::from_per_hour(0.19));
    let mut daemon = spec(600);
    daemon
        .node_selector
        .insert(labels::ARCH.to_owned(), "arm64".to_owned());
    let mut world = World::new(pool_of([instance_type("ecs.g7.2c", 2), arm])).pod("a", spec(1500));
    world.0.daemon_pods.push(DaemonPod {
        namespace: "kube-system".into(),
        name: "agent".into(),
        spec: daemon.into(),
    });

    let plan = world.plan();

    assert_eq!(shown(&plan), ["a -> ecs.g7.2c h"]);
}

#[test]
fn a_daemon_on_every_node_is_counted_in_the_claims_requests() {
    let mut world = World::new(pool()).pod("a", spec(1500));
    let daemon = spec(300).into();
    world.0.daemon_pods.push(DaemonPod {
        namespace: "kube-system".into(),
        name: "agent".into(),
        spec: daemon,
    });
    let plan = world.plan();
    assert_eq!(plan.new_claims[0].requests.cpu_milli(), 1800);
    assert_eq!(plan.new_claims[0].requests.pods(), 2);
}

#[test]
fn extended_resources_need_a_type_that_has_them() {
    let mut gpu = instance_type("ecs.gn7i.8c", 8);
    gpu.capacity.set("nvidia.com/gpu", 1);
    let mut wanted = spec(100);
    wanted.requests.set("nvidia.com/gpu", 1);
    let plan = World::new(pool_of([instance_type("ecs.g7.2c", 2), gpu]))
        .pods(pods("a", 2, &wanted))
        .plan();
    assert_eq!(
        shown(&plan),
        ["a-000 -> ecs.gn7i.8c h", "a-001 -> ecs.gn7i.8c i"]
    );
}

#[test]
fn what_is_too_large_is_told_how_near_the_closest_type_came() {
    let mut world = World::new(pool_of([instance_type("ecs.g7.2c", 2)])).pod("a", spec(3500));
    let daemon = spec(300).into();
    world.0.daemon_pods.push(DaemonPod {
        namespace: "kube-system".into(),
        name: "agent".into(),
        spec: daemon,
    });
    assert_eq!(
        only_reason(&world.plan()),
        "pool general: needs 3500m cpu after 300m for daemons; ecs.g7.2c leaves 1700m"
    );
}

#[test]
fn what_cannot_be_bought_is_told_where_and_why() {
    let mut sold_out = instance_type("ecs.g7.2c", 2);
    for offering in &mut sold_out.offerings {
        offering.unavailable = Some("out of stock".to_owned().into());
    }
    let plan = World::new(pool_of([sold_out])).pod("a", spec(500)).plan();
    assert_eq!(
        only_reason(&plan),
        "pool general: the smallest that fits is ecs.g7.2c, out of stock in h, i and j (on-demand)"
    );
    assert_eq!(plan.pool_problems.len(), 1);
}

#[test]
fn what_is_large_enough_but_sold_out_is_told_with_what_can_be_bought() {
    let mut large = instance_type("ecs.g7.8c", 8);
    for offering in &mut large.offerings {
        offering.unavailable = Some("no stock".to_owned().into());
    }
    let plan = World::new(pool_of([instance_type("ecs.g7.2c", 2), large]))
        .pod("a", spec(3500))
        .plan();
    assert_eq!(
        only_reason(&plan),
        "pool general: needs 3500m cpu; ecs.g7.2c leaves 2; the smallest that fits is ecs.g7.8c, \
         no stock in h, i and j (on-demand)"
    );
}

#[test]
fn a_pod_on_a_node_that_exists_is_told_why_it_is_there() {
    let plan = World::new(pool())
        .node(node("old", 4, "h"))
        .pod("a", spec(100))
        .plan();
    assert_eq!(plan.placements[0].reason, PlacementReason::FirstThatFits);
}

#[test]
fn host_ports_keep_pods_apart() {
    let mut with_port = spec(100);
    with_port.host_ports.push(HostPort {
        ip: None,
        port: 80,
        protocol: Protocol::Tcp,
    });
    let plan = World::new(pool()).pods(pods("a", 2, &with_port)).plan();
    assert_eq!(plan.new_claims.len(), 2);
}

#[test]
fn gated_pods_wait_and_say_why() {
    let gated = crate::pod::PodSpec {
        scheduling_gates: vec!["example.com/quota".to_owned()],
        ..spec(100)
    };
    let plan = World::new(pool()).pod("a", gated).plan();
    assert_eq!(
        only_reason(&plan),
        "waits for scheduling gates example.com/quota"
    );
}

#[test]
fn without_a_pool_that_can_grow_pods_say_so() {
    let not_ready = crate::node_pool::NodePool {
        not_ready: Some("NodeClassNotReady".to_owned()),
        ..pool()
    };
    assert_eq!(
        only_reason(&World::new(not_ready).pod("a", spec(100)).plan()),
        "pool general: not ready: NodeClassNotReady"
    );
    assert_eq!(
        only_reason(&World::default().pod("a", spec(100)).plan()),
        "no NodePool can make nodes; create one or see its Ready condition"
    );
}

#[test]
fn contradictory_constraints_are_a_reason() {
    let mut wanted = spec(100);
    wanted
        .node_selector
        .insert("example.com/team".to_owned(), "a".to_owned());
    wanted.required_node_terms.push(
        [Requirement::in_values("example.com/team", ["b"])]
            .into_iter()
            .collect(),
    );
    let reason = only_reason(&World::new(pool()).pod("a", wanted).plan());
    assert_eq!(
        reason,
        "cannot be planned: its node selector and node affinity contradict each other"
    );
}

#[test]
fn a_spent_budget_leaves_pods_for_the_next_round() {
    let world = World::new(pool()).pods(pods("a", 5, &spec(1500)));
    let plan = crate::schedule(
        &world.0,
        &crate::Preferences::none(),
        crate::WorkBudget(1),
        jiff::Timestamp::UNIX_EPOCH,
    );
    assert!(plan.is_partial);
    assert_eq!(
        plan.unschedulable[0].reason,
        crate::reason::UnschedulableReason::BudgetExhausted
    );
}

/// A daemon with host port 80 on the nodes of zone h.
fn daemon_of_zone_h() -> DaemonPod {
    let mut daemon = with_port(spec(100));
    daemon
        .node_selector
        .insert(labels::ZONE.to_owned(), "h".to_owned());
    DaemonPod {
        namespace: "kube-system".into(),
        name: "agent".into(),
        spec: daemon.into(),
    }
}

fn with_port(mut spec: crate::pod::PodSpec) -> crate::pod::PodSpec {
    spec.host_ports.push(HostPort {
        ip: None,
        port: 80,
        protocol: Protocol::Tcp,
    });
    spec
}

#[test]
fn a_pod_whose_host_port_a_daemon_of_one_zone_takes_goes_to_another_zone() {
    let mut world = World::new(pool()).pod("a", with_port(spec(500)));
    world.0.daemon_pods.push(daemon_of_zone_h());

    assert_eq!(shown(&world.plan()), ["a -> ecs.g7.2c i"]);
}

#[test]
fn a_pod_whose_host_port_a_daemon_takes_does_not_join_a_claim_with_that_daemon() {
    let mut in_zone_h = spec(1000);
    in_zone_h
        .node_selector
        .insert(labels::ZONE.to_owned(), "h".to_owned());
    let mut world = World::new(pool())
        .pod("a", in_zone_h)
        .pod("b", with_port(spec(500)));
    world.0.daemon_pods.push(daemon_of_zone_h());

    assert_eq!(
        shown(&world.plan()),
        ["a -> ecs.g7.2c h", "b -> ecs.g7.2c i"]
    );
}

#[test]
fn a_pod_does_not_take_the_host_port_of_a_daemon_that_has_yet_to_come_to_a_node() {
    let mut world = World::new(pool())
        .node(node("young", 4, "h"))
        .pod("a", with_port(spec(500)));
    world.0.daemon_pods.push(daemon_of_zone_h());

    assert_eq!(shown(&world.plan()), ["a -> ecs.g7.2c i"]);
}

#[test]
fn a_daemon_of_one_zone_takes_nothing_from_nodes_of_another() {
    let mut daemon = daemon_of_zone_h();
    let mut large = spec(600);
    large.node_selector.clone_from(&daemon.spec.node_selector);
    daemon.spec = large.into();
    let mut world = World::new(pool()).pod("a", spec(1800));
    world.0.daemon_pods.push(daemon);

    // A node of two cores holds it where the daemon is not.
    assert_eq!(shown(&world.plan()), ["a -> ecs.g7.2c i"]);
}
