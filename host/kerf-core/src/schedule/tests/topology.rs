//! Topology spread, pod affinity and anti-affinity, and how preferences give way.

use std::collections::BTreeMap;

use super::kit::*;
use crate::labels::{HOSTNAME, ZONE};
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::plan::Plan;
use crate::pod::{
    NodeInclusionPolicy, Pod, PodAffinityTerm, PodSpec, TopologySpread, Weighted, WhenUnsatisfiable,
};
use crate::requirement::Requirement;
use crate::selector::LabelSelector;
use crate::snapshot::PreferencePolicy;
use crate::taint::{Taint, TaintEffect};

fn labelled(app: &str) -> PodSpec {
    PodSpec {
        labels: [("app".to_owned(), app.to_owned())].into_iter().collect(),
        ..spec(1500)
    }
}

fn selector(app: &str) -> LabelSelector {
    LabelSelector::label("app", app)
}

fn term(key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.to_owned(),
        selector: Some(selector(app)),
        ..PodAffinityTerm::default()
    }
}

fn spread(app: &str, key: &str) -> PodSpec {
    PodSpec {
        topology_spread: vec![TopologySpread::new(key, 1, selector(app))],
        ..labelled(app)
    }
}

fn apart(app: &str, key: &str) -> PodSpec {
    PodSpec {
        anti_affinity: vec![term(key, app)],
        ..labelled(app)
    }
}

fn together(app: &str, with: &str, key: &str) -> PodSpec {
    PodSpec {
        affinity: vec![term(key, with)],
        ..labelled(app)
    }
}

/// Pods by zone, of new claims and of nodes that they were placed on.
fn by_zone(world: &World, plan: &Plan) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for claim in &plan.new_claims {
        *zones
            .entry(claim.offerings[0].zone.to_string())
            .or_default() += claim.pods.len();
    }
    for placement in &plan.placements {
        let node = world
            .0
            .nodes
            .iter()
            .find(|it| format!("{:?}", placement.node).contains(it.display_name()));
        *zones
            .entry(node.unwrap().zone().unwrap().to_owned())
            .or_default() += 1;
    }
    zones
}

fn zones(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts
        .iter()
        .map(|(zone, count)| ((*zone).to_owned(), *count))
        .collect()
}

fn bound(node: Node, pods: impl IntoIterator<Item = Pod>) -> Node {
    Node {
        pods: pods.into_iter().map(Into::into).collect(),
        ..node
    }
}

#[test]
fn a_zone_spread_is_even() {
    let world = World::new(pool()).pods(pods("a", 7, &spread("web", ZONE)));
    assert_eq!(
        by_zone(&world, &world.plan()),
        zones(&[("h", 3), ("i", 2), ("j", 2)])
    );
}

#[test]
fn a_spread_counts_pods_that_run_already() {
    let full = Node {
        allocatable: crate::resources::Resources::of(100, 0),
        ..node("n1", 2, "h")
    };
    let world = World::new(pool())
        .node(bound(full, pods("old", 2, &labelled("web"))))
        .pods(pods("a", 4, &spread("web", ZONE)));
    assert_eq!(by_zone(&world, &world.plan()), zones(&[("i", 2), ("j", 2)]));
}

#[test]
fn a_spread_over_hosts_gives_each_its_own() {
    let plan = World::new(pool())
        .pods(pods(
            "a",
            3,
            &PodSpec {
                requests: spec(10).requests,
                ..spread("web", HOSTNAME)
            },
        ))
        .plan();
    assert_eq!(plan.new_claims.len(), 3);
}

#[test]
fn a_spread_that_does_not_select_its_own_pods_does_not_count_them() {
    let other = PodSpec {
        labels: labelled("other").labels,
        requests: spec(10).requests,
        ..spread("web", HOSTNAME)
    };
    assert_eq!(
        World::new(pool())
            .pods(pods("a", 5, &other))
            .plan()
            .new_claims
            .len(),
        1
    );
}

#[test]
fn pods_without_constraints_are_counted_where_they_are_put() {
    let small = PodSpec {
        requests: spec(1700).requests,
        ..labelled("web")
    };
    let world = World::new(pool_of([instance_type("ecs.g7.2c", 2)]))
        .pods(pods("a", 2, &small))
        .pods(pods("b", 4, &spread("web", ZONE)));
    assert_eq!(
        by_zone(&world, &world.plan()),
        zones(&[("h", 2), ("i", 2), ("j", 2)])
    );
}

#[test]
fn min_domains_lower_the_least_count_to_zero() {
    let mut wanted = spread("web", ZONE);
    wanted.topology_spread[0].min_domains = Some(4);
    let plan = World::new(pool()).pods(pods("a", 6, &wanted)).plan();
    assert_eq!(plan.unschedulable_pods(), 3);
    assert_eq!(
        only_reason(&plan),
        "pool general: topology spread over topology.kubernetes.io/zone with maxSkew 1 (h: 1, i: 1, j: 1)"
    );
}

#[test]
fn two_constraints_that_differ_only_in_min_domains_are_both_kept() {
    let mut strict = spread("web", ZONE);
    strict.topology_spread[0].min_domains = Some(4);
    let plan = World::new(pool())
        .pods(pods("a", 3, &spread("web", ZONE)))
        .pods(pods("b", 1, &strict))
        .plan();
    assert_eq!(plan.unschedulable_pods(), 1);
}

#[test]
fn zones_that_the_pods_node_affinity_refuses_do_not_count_unless_the_policy_says_so() {
    let mut wanted = spread("web", ZONE);
    wanted.required_node_terms.push(
        [Requirement::in_values(ZONE, ["h", "i"])]
            .into_iter()
            .collect(),
    );
    let honouring = World::new(pool()).pods(pods("a", 4, &wanted));
    assert_eq!(
        by_zone(&honouring, &honouring.plan()),
        zones(&[("h", 2), ("i", 2)])
    );

    wanted.topology_spread[0].node_affinity_policy = NodeInclusionPolicy::Ignore;
    assert_eq!(
        World::new(pool())
            .node(node("n1", 0, "j"))
            .pods(pods("a", 4, &wanted))
            .plan()
            .unschedulable_pods(),
        2
    );
}

#[test]
fn a_pod_too_large_for_the_nodes_that_anothers_spread_counts_goes_to_others() {
    let picky = PodSpec {
        required_node_terms: vec![[Requirement::in_values(ZONE, ["k"])].into_iter().collect()],
        ..spread("web", HOSTNAME)
    };
    let large = PodSpec {
        requests: spec(5000).requests,
        ..spread("web", HOSTNAME)
    };
    let on_demand = [crate::instance_type::CapacityType::OnDemand];
    let types = [
        sold("ecs.g7.2c", 2, &["k"], &on_demand),
        sold("ecs.g7.8c", 8, &["h"], &on_demand),
    ];

    // Its pod would count for the first one's constraint in zone k only, where nothing is large enough.
    let plan = World::new(pool_of(types))
        .pod("picky", picky)
        .pod("large", large)
        .plan();

    assert_eq!(plan.unschedulable_pods(), 0, "{:?}", plan.unschedulable);
    assert_eq!(
        shown(&plan),
        ["large -> ecs.g7.8c h", "picky -> ecs.g7.2c k"]
    );
}

#[test]
fn zones_of_tainted_nodes_count_unless_the_policy_says_so() {
    let mut tainted = named(
        "tainted",
        0,
        pool_of([sold(
            "ecs.g7.2c",
            2,
            &["k"],
            &[crate::instance_type::CapacityType::OnDemand],
        )]),
    );
    tainted
        .template
        .taints
        .push(Taint::new("example.com/team", TaintEffect::NoSchedule));
    let in_k = Node {
        taints: tainted.template.taints.clone(),
        ..node("n1", 0, "k")
    };
    let world = |policy| {
        let mut wanted = spread("web", ZONE);
        wanted.topology_spread[0].node_taints_policy = policy;
        World::new(pool())
            .pool(tainted.clone())
            .node(in_k.clone())
            .pods(pods("a", 6, &wanted))
    };
    assert_eq!(
        world(NodeInclusionPolicy::Honor)
            .plan()
            .unschedulable_pods(),
        0
    );
    assert_eq!(
        world(NodeInclusionPolicy::Ignore)
            .plan()
            .unschedulable_pods(),
        3
    );
}

#[test]
fn a_spread_counts_zones_that_could_have_nodes_as_long_as_all_pods_find_a_place() {
    let mut small_in_j = sold(
        "ecs.g7.2c",
        2,
        &["j"],
        &[crate::instance_type::CapacityType::OnDemand],
    );
    small_in_j.name = "ecs.t6.2c".into();
    small_in_j.capacity.set("cpu", 100);
    let elsewhere = sold(
        "ecs.g7.2c",
        2,
        &["h", "i"],
        &[crate::instance_type::CapacityType::OnDemand],
    );
    let world =
        World::new(pool_of([small_in_j, elsewhere])).pods(pods("a", 6, &spread("web", ZONE)));
    assert_eq!(by_zone(&world, &world.plan()), zones(&[("h", 3), ("i", 3)]));
}

#[test]
fn match_label_keys_count_only_pods_of_the_same_revision() {
    let with_revision = |revision: &str| {
        let mut wanted = spread("web", HOSTNAME);
        wanted.requests = spec(10).requests;
        wanted
            .labels
            .insert("pod-template-hash".to_owned(), revision.to_owned());
        wanted.topology_spread[0]
            .match_label_keys
            .push("pod-template-hash".to_owned());
        wanted
    };
    let world = World::new(pool())
        .pods(pods("a", 2, &with_revision("1")))
        .pods(pods("b", 2, &with_revision("2")));
    assert_eq!(world.plan().new_claims.len(), 2);
}

#[test]
fn a_selector_that_is_not_given_counts_nothing() {
    let mut wanted = spread("web", HOSTNAME);
    wanted.requests = spec(10).requests;
    wanted.topology_spread[0].selector = None;
    assert_eq!(
        World::new(pool())
            .pods(pods("a", 3, &wanted))
            .plan()
            .new_claims
            .len(),
        1
    );
}

#[test]
fn a_soft_spread_gives_way() {
    let mut wanted = spread("web", ZONE);
    wanted.topology_spread[0].when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway;
    wanted.node_selector.insert(ZONE.to_owned(), "h".to_owned());
    wanted.topology_spread[0].node_affinity_policy = NodeInclusionPolicy::Ignore;
    assert_eq!(
        World::new(pool())
            .pods(pods("a", 4, &wanted))
            .plan()
            .unschedulable_pods(),
        0
    );
}

#[test]
fn anti_affinity_over_zones_fills_each_zone_in_one_round() {
    let world = World::new(pool()).pods(pods("a", 4, &apart("web", ZONE)));
    let plan = world.plan();
    assert_eq!(
        by_zone(&world, &plan),
        zones(&[("h", 1), ("i", 1), ("j", 1)])
    );
    assert_eq!(
        only_reason(&plan),
        "pool general: every topology.kubernetes.io/zone has a pod that anti-affinity keeps apart"
    );
}

#[test]
fn anti_affinity_holds_the_other_way_round_too() {
    let owner = PodSpec {
        anti_affinity: vec![term(ZONE, "web")],
        ..labelled("db")
    };
    let world = World::new(pool())
        .node(bound(node("n1", 8, "h"), [Pod::new("db", owner)]))
        .pods(pods("a", 2, &labelled("web")));
    let plan = world.plan();
    assert!(plan.placements.is_empty());
    assert!(
        plan.new_claims
            .iter()
            .all(|claim| &*claim.offerings[0].zone != "h")
    );
}

#[test]
fn anti_affinity_of_an_earlier_pod_of_the_batch_keeps_a_later_one_away() {
    let owner = PodSpec {
        anti_affinity: vec![term(HOSTNAME, "web")],
        requests: spec(1600).requests,
        ..labelled("db")
    };
    let plan = World::new(pool())
        .pod("db", owner)
        .pod(
            "web",
            PodSpec {
                requests: spec(10).requests,
                ..labelled("web")
            },
        )
        .plan();
    assert_eq!(plan.new_claims.len(), 2);
}

#[test]
fn affinity_follows_the_pods_that_it_wants() {
    let world = World::new(pool())
        .node(bound(node("n1", 1, "j"), [Pod::new("db", labelled("db"))]))
        .pods(pods("a", 3, &together("web", "db", ZONE)));
    assert_eq!(by_zone(&world, &world.plan()), zones(&[("j", 3)]));
}

#[test]
fn affinity_to_oneself_starts_somewhere_and_stays_together() {
    let world = World::new(pool()).pods(pods("a", 5, &together("web", "web", ZONE)));
    assert_eq!(
        by_zone(&world, &world.plan())
            .into_values()
            .collect::<Vec<_>>(),
        [5]
    );
    let hosts = World::new(pool()).pods(pods("a", 5, &together("web", "web", HOSTNAME)));
    assert_eq!(hosts.plan().new_claims.len(), 1);
}

#[test]
fn affinity_to_a_pod_that_comes_later_in_the_batch_is_met() {
    let wants_db = PodSpec {
        requests: spec(1900).requests,
        ..together("web", "db", ZONE)
    };
    let world = World::new(pool())
        .pod("web", wants_db)
        .pod("db", labelled("db"));
    let plan = world.plan();
    assert_eq!(plan.unschedulable_pods(), 0);
    assert_eq!(by_zone(&world, &plan).len(), 1);
}

#[test]
fn affinity_to_nobody_is_a_reason() {
    let plan = World::new(pool())
        .pod("a", together("web", "db", ZONE))
        .plan();
    assert_eq!(
        only_reason(&plan),
        "pool general: no topology.kubernetes.io/zone has a pod that its affinity wants"
    );
}

#[test]
fn affinity_terms_count_only_pods_that_match_all_of_them() {
    let both = PodSpec {
        affinity: vec![term(ZONE, "db"), term(ZONE, "cache")],
        ..labelled("web")
    };
    let world = World::new(pool())
        .node(bound(node("n1", 1, "j"), [Pod::new("db", labelled("db"))]))
        .pod("a", both);
    assert_eq!(world.plan().unschedulable_pods(), 1);
}

#[test]
fn namespaces_of_a_term_are_the_pods_own_a_list_or_selected() {
    let in_other = Pod {
        namespace: "other".into(),
        ..Pod::new("db", labelled("db"))
    };
    let unschedulable = |term: PodAffinityTerm| {
        let wanted = PodSpec {
            affinity: vec![term],
            ..labelled("web")
        };
        let mut world = World::new(pool())
            .node(bound(node("n1", 1, "j"), [in_other.clone()]))
            .pod("a", wanted);
        let labels = [("team".to_owned(), "x".to_owned())].into_iter().collect();
        world.0.namespaces.insert("other".to_owned(), labels);
        world.plan().unschedulable_pods()
    };
    let selected = |selector| PodAffinityTerm {
        namespace_selector: Some(selector),
        ..term(ZONE, "db")
    };
    assert_eq!(unschedulable(term(ZONE, "db")), 1);
    assert_eq!(
        unschedulable(PodAffinityTerm {
            namespaces: vec!["other".to_owned()],
            ..term(ZONE, "db")
        }),
        0
    );
    assert_eq!(
        unschedulable(selected(LabelSelector::label("team", "x"))),
        0
    );
    assert_eq!(
        unschedulable(selected(LabelSelector::label("team", "y"))),
        1
    );
    assert_eq!(unschedulable(selected(LabelSelector::default())), 0);
}

#[test]
fn preferences_are_met_one_by_one_as_far_as_possible() {
    let mut wanted = labelled("web");
    wanted.preferred_node_terms.push(Weighted {
        weight: 1,
        term: [Requirement::in_values(ZONE, ["j"])].into_iter().collect(),
    });
    for (weight, key) in [(10, ZONE), (1, HOSTNAME)] {
        wanted.preferred_anti_affinity.push(Weighted {
            weight,
            term: term(key, "web"),
        });
    }
    let world = World::new(pool()).pods(pods(
        "a",
        3,
        &PodSpec {
            requests: spec(10).requests,
            ..wanted
        },
    ));
    let plan = world.plan();
    assert_eq!(by_zone(&world, &plan), zones(&[("j", 3)]));
    assert_eq!(plan.new_claims.len(), 3);
}

#[test]
fn ignored_preferences_change_nothing() {
    let mut wanted = PodSpec {
        requests: spec(10).requests,
        ..labelled("web")
    };
    wanted.preferred_anti_affinity.push(Weighted {
        weight: 1,
        term: term(HOSTNAME, "web"),
    });
    let mut world = World::new(pool()).pods(pods("a", 3, &wanted));
    world.0.settings.preference_policy = PreferencePolicy::Ignore;
    assert_eq!(world.plan().new_claims.len(), 1);
}

#[test]
fn required_node_terms_are_alternatives() {
    let mut wanted = spec(100);
    for zone in ["nowhere", "j"] {
        wanted
            .required_node_terms
            .push([Requirement::in_values(ZONE, [zone])].into_iter().collect());
    }
    assert_eq!(
        shown(&World::new(pool()).pod("a", wanted).plan()),
        ["a -> ecs.g7.2c j"]
    );
}

#[test]
fn soft_taints_give_way_last() {
    let mut soft = pool();
    soft.template
        .taints
        .push(Taint::new("example.com/old", TaintEffect::PreferNoSchedule));
    assert_eq!(
        World::new(soft.clone())
            .pod("a", spec(100))
            .plan()
            .new_claims
            .len(),
        1
    );

    let clean = named("clean", 0, pool());
    let heavier = NodePool { weight: 10, ..soft };
    assert_eq!(
        &*World::new(clean)
            .pool(heavier)
            .pod("a", spec(100))
            .plan()
            .new_claims[0]
            .pool,
        "clean"
    );
}

#[test]
fn zones_without_stock_do_not_hold_a_spread_back() {
    let mut it = instance_type("ecs.g7.2c", 2);
    it.offerings[2].unavailable = Some("out of stock".to_owned().into());
    let world = World::new(pool_of([it])).pods(pods("a", 4, &spread("web", ZONE)));
    assert_eq!(by_zone(&world, &world.plan()), zones(&[("h", 2), ("i", 2)]));
}

#[test]
fn custom_topology_keys_come_from_pools_and_nodes() {
    let mut rack = pool();
    rack.template
        .requirements
        .add(Requirement::in_values("example.com/rack", ["r1", "r2"]));
    let world = World::new(rack).pods(pods("a", 4, &spread("web", "example.com/rack")));
    let plan = world.plan();
    let mut racks: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in &plan.new_claims {
        *racks.entry(&claim.labels["example.com/rack"]).or_default() += claim.pods.len();
    }
    assert_eq!(racks, BTreeMap::from([("r1", 2), ("r2", 2)]));
}
