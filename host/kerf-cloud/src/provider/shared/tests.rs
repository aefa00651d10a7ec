//! What is shared, and what is told apart.

use kerf_core::instance_type::{CapacityType, Offering};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;

use super::*;
use crate::provider::class::{NodeClassSpec, ResolvedNodeClass};

/// What the caches of a region would hold.
#[derive(Default)]
struct Caches {
    types: Arc<Types>,
    stock: Arc<Stock>,
    discounts: Arc<SpotDiscounts>,
    live: Arc<LivePrices>,
}

fn inputs(class: &str, caches: &Caches) -> Inputs {
    let spec = NodeClassSpec {
        name: class.to_owned(),
        ..NodeClassSpec::default()
    };
    Inputs {
        types: Arc::downgrade(&caches.types),
        stock: Arc::downgrade(&caches.stock),
        discounts: Arc::downgrade(&caches.discounts),
        live: Arc::downgrade(&caches.live),
        cni: CniMode::Other,
        class: ResolvedNodeClass {
            spec,
            cluster_id: String::new(),
            vswitches: Vec::new(),
            security_groups: Vec::new(),
            images: Vec::new(),
            key_pair_name: String::new(),
            private_pools: Vec::new(),
            warnings: Vec::new(),
        },
        zones: Vec::new(),
        marks: Vec::new(),
    }
}

fn sold_for(name: &str, micros: u64) -> InstanceType {
    InstanceType::new(
        name,
        [Requirement::in_values("kubernetes.io/arch", ["amd64"])],
        Resources::of(4000, 16 << 30),
        Resources::default(),
        vec![Offering::new(
            "h",
            CapacityType::OnDemand,
            Price::from_micros(micros),
        )],
    )
}

fn two(second: u64) -> std::vec::IntoIter<InstanceType> {
    vec![sold_for("a", 1), sold_for("b", second)].into_iter()
}

#[test]
fn while_nothing_changed_nothing_is_made() {
    let (shared, caches) = (SharedTypes::default(), Caches::default());
    let first = shared.list(inputs("c", &caches), || two(2));

    let made = std::cell::Cell::new(false);
    let second = shared.list(inputs("c", &caches), || {
        made.set(true);
        two(2)
    });

    assert!(Arc::ptr_eq(&first, &second) && !made.get());
}

#[test]
fn a_new_stock_table_that_says_the_same_gives_the_list_of_before() {
    let (shared, caches) = (SharedTypes::default(), Caches::default());
    let first = shared.list(inputs("c", &caches), || two(2));
    let fresh = Caches::default();

    let same = shared.list(inputs("c", &fresh), || two(2));
    let other = shared.list(inputs("c", &caches), || two(3));

    assert!(Arc::ptr_eq(&first, &same));
    assert!(Arc::ptr_eq(&first[0], &other[0]));
    assert_eq!(other[1].offerings[0].price, Price::from_micros(3));
}

#[test]
fn classes_whose_nodes_are_alike_have_their_types_in_common() {
    let (shared, caches) = (SharedTypes::default(), Caches::default());

    let one = shared.list(inputs("one", &caches), || two(2));
    let other = shared.list(inputs("other", &caches), || two(3));

    assert!(Arc::ptr_eq(&one[0], &other[0]));
    assert!(!Arc::ptr_eq(&one[1], &other[1]));
    let arch =
        |it: &InstanceType| std::ptr::from_ref(it.requirements.on("kubernetes.io/arch").unwrap());
    assert_eq!(arch(&one[0]), arch(&one[1]));
}

#[test]
fn what_nobody_holds_is_forgotten() {
    let (shared, caches) = (SharedTypes::default(), Caches::default());
    drop(shared.list(inputs("gone", &caches), || two(2)));

    let _held = shared.list(inputs("c", &caches), || vec![sold_for("z", 1)].into_iter());

    let known = shared.0.lock().unwrap();
    assert_eq!(known.lists.keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(known.types.len(), 1);
}
