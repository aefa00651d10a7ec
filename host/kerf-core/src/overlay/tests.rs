//! Which overlay counts where: unit tests over small catalogs.

use super::*;
use crate::instance_type::Offering;
use crate::labels;
use crate::price::Price;
use crate::requirement::Requirement;

fn instance_type(name: &str, price: f64) -> InstanceType {
    let offerings = ["h", "i"]
        .map(|zone| Offering::new(zone, CapacityType::OnDemand, Price::from_per_hour(price)));
    let labels = [Requirement::in_values(labels::ARCH, ["amd64"])];
    let capacity = Resources::of(4000, 8 << 30).with("pods", 110);
    InstanceType::new(
        name,
        labels,
        capacity,
        Resources::default(),
        offerings.into(),
    )
}

/// A pool with ecs.a at 1.0 and ecs.b at 2.0 in zones h and i.
fn pool(name: &str) -> NodePool {
    let types = [instance_type("ecs.a", 1.0), instance_type("ecs.b", 2.0)];
    NodePool {
        name: name.into(),
        instance_types: Arc::new(types.into_iter().map(Arc::new).collect()),
        ..NodePool::default()
    }
}

fn on(key: &str, value: &str) -> Requirements {
    [Requirement::in_values(key, [value])].into_iter().collect()
}

fn priced(name: &str, weight: u32, price: &str, requirements: Requirements) -> Overlay {
    Overlay {
        name: name.to_owned(),
        weight,
        requirements,
        price: Some(PriceChange::parse_price(price).unwrap()),
        capacity: Resources::default(),
    }
}

fn adding(name: &str, weight: u32, amount: i64, requirements: Requirements) -> Overlay {
    Overlay {
        name: name.to_owned(),
        weight,
        requirements,
        price: None,
        capacity: Resources::default().with("example.com/fuse", amount),
    }
}

/// `ecs.a h 0.5 +10` per offering of the pool: the price that ordering uses and the amount of fuses.
#[track_caller]
fn check(overlays: &[Overlay], pool: &NodePool, expected: &[&str]) -> Evaluation {
    let evaluation = evaluate(overlays, std::slice::from_ref(pool));
    let types = evaluation.pools.get(&pool.name);
    let types = types.unwrap_or(&pool.instance_types);
    let shown: Vec<String> = types
        .iter()
        .flat_map(|it| it.offerings.iter().map(move |offering| (it, offering)))
        .map(|(it, offering)| {
            let price = offering.ordering_price().per_hour().unwrap_or_default();
            let fuses = it.capacity_of(offering).amount("example.com/fuse");
            let fuses = if fuses == 0 {
                String::new()
            } else {
                format!(" +{fuses}")
            };
            format!("{} {} {price}{fuses}", it.name, offering.zone)
        })
        .collect();
    assert_eq!(shown, expected);
    evaluation
}

#[test]
fn the_heaviest_overlay_sets_the_price_and_lighter_ones_fill_the_rest() {
    let overlays = [
        priced("all", 1, "9", Requirements::default()),
        priced("a", 5, "0.5", on(labels::INSTANCE_TYPE, "ecs.a")),
        priced("h", 3, "7", on(labels::ZONE, "h")),
    ];

    let evaluation = check(
        &overlays,
        &pool("general"),
        &["ecs.a h 0.5", "ecs.a i 0.5", "ecs.b h 7", "ecs.b i 9"],
    );

    assert!(evaluation.conflicts.is_empty());
    let real = &evaluation.pools["general"][0].offerings[0].price;
    assert_eq!(real.per_hour(), Some(1.0));
}

#[test]
fn of_equal_weights_the_last_name_counts_and_nothing_of_the_other_applies() {
    let overlays = [
        priced("aa", 5, "0.1", Requirements::default()),
        priced("bb", 5, "0.5", on(labels::INSTANCE_TYPE, "ecs.b")),
    ];

    let evaluation = check(
        &overlays,
        &pool("general"),
        &["ecs.a h 1", "ecs.a i 1", "ecs.b h 0.5", "ecs.b i 0.5"],
    );

    assert_eq!(
        evaluation.conflicts["aa"].to_string(),
        "NodeOverlay bb has weight 5 too and changes the price of ecs.b in h (on-demand) in NodePool general as well; nothing of this one applies: give one of them another weight or narrow its requirements"
    );
}

#[test]
fn a_conflict_in_one_pool_takes_the_overlay_out_of_all() {
    let overlays = [
        priced("aa", 5, "0.1", Requirements::default()),
        priced("bb", 5, "0.5", on(labels::NODE_POOL, "second")),
    ];

    let evaluation = evaluate(&overlays, &[pool("second"), pool("first")]);

    assert!(evaluation.conflicts.contains_key("aa"));
    assert_eq!(
        evaluation.pools.keys().map(|it| &**it).collect::<Vec<_>>(),
        ["second"]
    );
}

#[test]
fn equal_weights_on_different_targets_live_together() {
    let overlays = [
        priced("a", 5, "0.5", on(labels::ZONE, "h")),
        priced("b", 5, "0.7", on(labels::ZONE, "i")),
        adding("c", 5, 2, Requirements::default()),
    ];

    let evaluation = check(
        &overlays,
        &pool("general"),
        &[
            "ecs.a h 0.5 +2",
            "ecs.a i 0.7 +2",
            "ecs.b h 0.5 +2",
            "ecs.b i 0.7 +2",
        ],
    );

    assert!(evaluation.conflicts.is_empty());
}

#[test]
fn equal_weights_are_told_even_where_a_heavier_overlay_counts() {
    let overlays = [
        adding("a", 1, 1, Requirements::default()),
        adding("b", 1, 2, Requirements::default()),
        adding("heavy", 9, 3, Requirements::default()),
    ];

    let evaluation = evaluate(&overlays, &[pool("general")]);

    assert_eq!(evaluation.conflicts.keys().collect::<Vec<_>>(), ["a"]);
    let first = &evaluation.pools["general"][0];
    assert_eq!(first.capacity.amount("example.com/fuse"), 3);
}

#[test]
fn capacity_is_added_where_the_overlay_speaks_of_it_and_overrides_are_kept() {
    let mut pool = pool("general");
    let mut own = (*pool.instance_types[0]).clone();
    let overridden = Resources::of(4000, 6 << 30).with("pods", 64);
    own.offerings[1].capacity_override = Some(Box::new(overridden));
    Arc::make_mut(&mut pool.instance_types)[0] = Arc::new(own);
    let overlays = [
        adding("a", 5, 4, on(labels::INSTANCE_TYPE, "ecs.a")),
        adding("b", 1, 8, on(labels::ZONE, "i")),
    ];

    let evaluation = check(
        &overlays,
        &pool,
        &["ecs.a h 1 +4", "ecs.a i 1 +4", "ecs.b h 2", "ecs.b i 2 +8"],
    );

    let types = &evaluation.pools["general"];
    let kept = types[0].capacity_of(&types[0].offerings[1]);
    assert_eq!((kept.memory_bytes(), kept.pods()), (6 << 30, 64));
    assert_eq!(types[1].capacity.amount("example.com/fuse"), 0);
}

#[test]
fn pools_are_chosen_by_name_by_label_and_by_what_they_allow() {
    let mut gold = pool("gold");
    gold.template.labels = [("tier".to_owned(), "gold".to_owned())].into();
    gold.template.requirements = on(labels::ZONE, "i");
    let overlays = [
        priced("tier", 1, "0.5", on("tier", "gold")),
        priced("elsewhere", 1, "0.7", on(labels::ZONE, "h")),
    ];

    // Zone h is nothing that gold can use, so there is no conflict there.
    let evaluation = check(
        &overlays,
        &gold,
        &["ecs.a h 1", "ecs.a i 0.5", "ecs.b h 2", "ecs.b i 0.5"],
    );
    assert!(evaluation.conflicts.is_empty());

    let plain = evaluate(&overlays[..1], &[pool("plain")]);
    assert!(plain.pools.is_empty());
}

#[test]
fn the_order_of_overlays_and_pools_does_not_matter() {
    let mut overlays = vec![
        priced("aa", 5, "0.1", Requirements::default()),
        priced("bb", 5, "0.5", on(labels::ZONE, "h")),
        adding("cc", 2, 3, on(labels::ZONE, "i")),
        adding("dd", 2, 3, on(labels::NODE_POOL, "first")),
    ];
    let mut pools = vec![pool("first"), pool("second")];
    let forwards = evaluate(&overlays, &pools);

    overlays.reverse();
    pools.reverse();

    assert_eq!(evaluate(&overlays, &pools), forwards);
}
