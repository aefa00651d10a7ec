//! Which layer wins, and that what was not asked is compared fairly with what was.

use super::*;

const TYPES: [(&str, u32); 5] = [
    ("ecs.g7.large", 2),
    ("ecs.g7.xlarge", 4),
    ("ecs.g7.new", 16),
    ("ecs.c7.xlarge", 4),
    ("ecs.new9.large", 2),
];

/// A region with the types of [`TYPES`].
struct Region {
    id: &'static str,
    types: Types,
    given: PriceList,
    discounts: SpotDiscounts,
    live: LivePrices,
    account_discount_percent: f64,
}

impl Region {
    fn new() -> Self {
        let types = TYPES.map(|(name, cpus)| {
            let facts = TypeFacts {
                cpus,
                ..TypeFacts::plain(name)
            };
            (name.to_owned(), facts)
        });
        Self {
            id: "cn-hangzhou",
            types: types.into(),
            given: PriceList::new(),
            discounts: SpotDiscounts::default(),
            live: LivePrices::default(),
            account_discount_percent: 0.0,
        }
    }

    fn ask(&self, name: &str, capacity_type: CapacityType) -> (Option<f64>, PriceSource) {
        let layers = Layers::new(Known {
            lists: Lists {
                region_id: self.id,
                discounts: &self.discounts,
            },
            given: &self.given,
            live: &self.live,
            types: &self.types,
            account_discount_percent: self.account_discount_percent,
        });
        let (price, source) = layers.price(&self.types[name], "h", capacity_type);
        (price.per_hour(), source)
    }

    fn on_demand(&self, name: &str) -> (f64, PriceSource) {
        let (price, source) = self.ask(name, CapacityType::OnDemand);
        (price.unwrap(), source)
    }

    fn spot(&self, name: &str) -> (f64, PriceSource) {
        let (price, source) = self.ask(name, CapacityType::Spot);
        (price.unwrap(), source)
    }
}

fn assert_near(found: (f64, PriceSource), price: f64, source: PriceSource) {
    assert_eq!(found.1, source);
    assert!((found.0 - price).abs() < 1e-5, "{} for {price}", found.0);
}

#[test]
fn layers_are_tried_in_order() {
    let mut region = Region::new();
    let (list, source) = region.on_demand("ecs.g7.xlarge");
    assert_eq!(source, PriceSource::Catalog);
    assert_near(
        region.spot("ecs.g7.xlarge"),
        list * 0.5,
        PriceSource::Estimate,
    );

    let key = || ("ecs.g7.xlarge".to_owned(), "h".to_owned());
    region.discounts = SpotDiscounts::from_iter([(key(), 20)]);
    assert_near(
        region.spot("ecs.g7.xlarge"),
        list * 0.2,
        PriceSource::Advice,
    );

    let live = LivePrices::default().with_on_demand("ecs.g7.xlarge", 0.7);
    region.live = live.with_spot("ecs.g7.xlarge", "h", 0.1);
    assert_near(region.on_demand("ecs.g7.xlarge"), 0.7, PriceSource::Live);
    assert_near(region.spot("ecs.g7.xlarge"), 0.1, PriceSource::Live);

    let (name, zone) = key();
    let given = (name, zone, CapacityType::Spot);
    region.given.insert(given, Price::from_per_hour(3.0));
    assert_near(region.spot("ecs.g7.xlarge"), 3.0, PriceSource::Given);
    assert_eq!(region.on_demand("ecs.g7.xlarge").1, PriceSource::Live);

    region.live = LivePrices::default();
    region.id = "eu-central-1";
    assert_eq!(region.on_demand("ecs.g7.xlarge").1, PriceSource::Estimate);
}

#[test]
fn a_type_that_was_not_asked_looks_no_dearer_than_one_that_was() {
    let mut region = Region::new();
    let list = |name: &str| Region::new().on_demand(name).0;
    let discounted = list("ecs.g7.large") * 0.6;

    region.live = LivePrices::default().with_on_demand("ecs.g7.large", discounted);

    let of_family = region.on_demand("ecs.g7.xlarge");
    assert_near(of_family, list("ecs.g7.xlarge") * 0.6, PriceSource::Catalog);
    let of_another = region.on_demand("ecs.c7.xlarge");
    assert_near(
        of_another,
        list("ecs.c7.xlarge") * 0.6,
        PriceSource::Catalog,
    );
    // What is asked of a family counts before what is asked of all.
    region.live = region
        .live
        .with_on_demand("ecs.c7.xlarge", list("ecs.c7.xlarge"));
    let still = region.on_demand("ecs.g7.xlarge");
    assert_near(still, list("ecs.g7.xlarge") * 0.6, PriceSource::Catalog);
}

#[test]
fn spot_follows_the_market_and_not_the_discount_of_the_account() {
    let mut region = Region::new();
    let list = region.on_demand("ecs.g7.xlarge").0;
    region.account_discount_percent = 30.0;
    let half_price = Region::new().on_demand("ecs.g7.large").0 * 0.5;
    assert_near(
        region.on_demand("ecs.g7.xlarge"),
        list * 0.7,
        PriceSource::Catalog,
    );
    assert_near(
        region.spot("ecs.g7.xlarge"),
        list * 0.5,
        PriceSource::Estimate,
    );

    region.live = LivePrices::default().with_on_demand("ecs.g7.large", half_price);
    assert_near(
        region.on_demand("ecs.g7.xlarge"),
        list * 0.5,
        PriceSource::Catalog,
    );
    assert_near(
        region.spot("ecs.g7.xlarge"),
        list * 0.5,
        PriceSource::Estimate,
    );

    // A market at a fifth of the list price, where half was estimated.
    region.live = LivePrices::default().with_spot("ecs.g7.large", "h", half_price * 0.4);
    assert_near(
        region.spot("ecs.g7.xlarge"),
        list * 0.2,
        PriceSource::Estimate,
    );
}

#[test]
fn a_type_that_no_table_has_costs_what_its_family_costs_per_vcpu() {
    let mut region = Region::new();
    let per_vcpu = region.on_demand("ecs.g7.large").0 / 2.0;
    assert_near(
        region.on_demand("ecs.g7.new"),
        per_vcpu * 16.0,
        PriceSource::Estimate,
    );
    assert_near(
        region.spot("ecs.g7.new"),
        per_vcpu * 8.0,
        PriceSource::Estimate,
    );

    let live = LivePrices::default().with_on_demand("ecs.g7.large", 0.2);
    region.live = live.with_on_demand("ecs.g7.xlarge", 0.4);
    assert_near(region.on_demand("ecs.g7.new"), 1.6, PriceSource::Estimate);
}

#[test]
fn what_nobody_knows_is_unknown_and_never_zero() {
    let mut region = Region::new();
    let unknown = (None, PriceSource::Unknown);
    for capacity_type in CapacityType::ALL {
        assert_eq!(region.ask("ecs.new9.large", capacity_type), unknown);
    }

    region.live = LivePrices::default().with_on_demand("ecs.new9.large", 0.8);
    assert_near(region.on_demand("ecs.new9.large"), 0.8, PriceSource::Live);
    assert_near(region.spot("ecs.new9.large"), 0.4, PriceSource::Estimate);
}
