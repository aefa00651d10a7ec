//! What types cost this account: what is asked wins, lies and refusals change nothing.

use ecs_sim::{Effect, Fault, World};
use kerf_cloud::error::ErrorClass;
use kerf_cloud::provider::instance::CapacityType;
use kerf_cloud::provider::prices::{PriceSource, Quote};

use crate::cloud::Cloud;

const ASKED: &str = "ecs.g7.large";
const NOT_ASKED: &str = "ecs.g7.xlarge";
const ZONE: &str = "cn-hangzhou-h";

/// A world in which the account pays this for [`ASKED`].
fn paying(per_hour: f64) -> World {
    let mut world = World::default();
    world.account_prices.insert(ASKED.to_owned(), per_hour);
    world
}

fn refusal(action: &str, status: u16, code: &str) -> Fault {
    Fault {
        action: action.to_owned(),
        when: [].into(),
        skip: 0,
        times: 100,
        after: false,
        effect: Effect::Error {
            status,
            code: code.to_owned(),
        },
    }
}

impl Cloud {
    fn quote(&self, name: &str, capacity_type: CapacityType) -> Quote {
        let quotes = self.provider.quotes([(name, ZONE, capacity_type)]);
        quotes.unwrap()[0]
    }

    fn on_demand(&self, name: &str) -> (f64, PriceSource) {
        let quote = self.quote(name, CapacityType::OnDemand);
        (quote.price.per_hour().unwrap(), quote.source)
    }

    /// What the class would be launched for.
    async fn offered(&self, name: &str, capacity_type: CapacityType) -> f64 {
        let class = self.class().await;
        let types = self.provider.instance_types(&class).await.unwrap();
        let it = types.iter().find(|it| &*it.name == name).unwrap();
        let offering = it.offering(ZONE, capacity_type).unwrap();
        offering.price.per_hour().unwrap()
    }
}

#[tokio::test]
async fn what_the_account_is_told_wins_and_is_told_with_its_age() {
    let cloud = Cloud::start(paying(0.3)).await;
    let list = cloud.offered(ASKED, CapacityType::OnDemand).await;
    let other = cloud.offered(NOT_ASKED, CapacityType::OnDemand).await;
    assert_eq!(cloud.on_demand(ASKED), (list, PriceSource::Catalog));

    assert!(cloud.provider.ask_price(ASKED, ZONE).await.unwrap());
    assert!(cloud.provider.ask_spot_prices(ASKED).await.unwrap());
    assert_eq!(
        cloud.on_demand(ASKED),
        (list, PriceSource::Catalog),
        "not published yet"
    );
    assert!(cloud.provider.publish_prices(true));

    let quote = cloud.quote(ASKED, CapacityType::OnDemand);
    assert_eq!(
        (quote.price.per_hour(), quote.source),
        (Some(0.3), PriceSource::Live)
    );
    assert!(quote.asked_at.is_some());
    assert_eq!(
        cloud.quote(ASKED, CapacityType::Spot).source,
        PriceSource::Live
    );
    // Lists that were made before are made anew.
    let offered = cloud.offered(ASKED, CapacityType::OnDemand).await;
    assert!((offered - 0.3).abs() < 1e-9, "{offered}");
    let factor = (0.3 / list * 100.0_f64).round() / 100.0;
    let fair = cloud.offered(NOT_ASKED, CapacityType::OnDemand).await;
    assert!((fair - other * factor).abs() < 1e-5, "{fair}");
    assert_eq!(
        cloud.quote(NOT_ASKED, CapacityType::OnDemand).asked_at,
        None
    );
}

#[tokio::test]
async fn a_price_of_zero_or_in_another_currency_is_none() {
    let dollars = World {
        currency: "USD".to_owned(),
        ..World::default()
    };
    for (world, spot_is_usable) in [(paying(0.0), true), (dollars, false)] {
        let cloud = Cloud::start(world).await;
        let list = cloud.offered(ASKED, CapacityType::OnDemand).await;

        assert!(!cloud.provider.ask_price(ASKED, ZONE).await.unwrap());
        let is_usable = cloud.provider.ask_spot_prices(ASKED).await.unwrap();
        cloud.provider.publish_prices(true);

        assert_eq!(is_usable, spot_is_usable);
        assert_eq!(cloud.on_demand(ASKED), (list, PriceSource::Catalog));
    }
}

#[tokio::test]
async fn refusals_of_prices_are_typed_and_change_nothing() {
    for (status, code, class) in [
        (403, "Forbidden.RAM", "Auth"),
        (400, "Throttling.User", "Throttled"),
    ] {
        let cloud = Cloud::start(World::default()).await;
        let list = cloud.offered(ASKED, CapacityType::OnDemand).await;
        for action in ["DescribePrice", "DescribeSpotPriceHistory"] {
            cloud.sim.add_fault(refusal(action, status, code));
        }

        let on_demand = cloud.provider.ask_price(ASKED, ZONE).await.unwrap_err();
        let spot = cloud.provider.ask_spot_prices(ASKED).await.unwrap_err();

        for error in [on_demand, spot] {
            match error.class() {
                ErrorClass::Auth(_) => assert_eq!(class, "Auth"),
                ErrorClass::Throttled => assert_eq!(class, "Throttled"),
                other => panic!("{other:?}"),
            }
        }
        assert!(!cloud.provider.publish_prices(true));
        assert_eq!(cloud.on_demand(ASKED), (list, PriceSource::Catalog));
        assert!(
            cloud.calls("DescribePrice") <= 2,
            "few attempts: nobody waits for it"
        );
    }
}

#[tokio::test]
async fn a_type_that_the_cloud_has_no_price_for_is_no_failure() {
    let cloud = Cloud::start(World::default()).await;

    let asked = cloud.provider.ask_price("ecs.none.large", ZONE).await;

    assert!(!asked.unwrap());
    assert!(
        !cloud
            .provider
            .ask_spot_prices("ecs.none.large")
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_market_that_may_not_be_asked_leaves_the_other_when_all_are_asked() {
    let small = r#"{"instanceTypes": [
        {"id": "ecs.g7.large", "cpu": 2, "memoryGib": 8, "pricePerHour": 0.5, "spotPercent": 30}]}"#;
    let cloud = Cloud::start(serde_json::from_str(small).unwrap()).await;
    let fault = refusal("DescribeSpotPriceHistory", 403, "Forbidden.RAM");
    cloud.sim.add_fault(fault);

    let failures = cloud.provider.ask_all_prices().await.unwrap();

    assert!(matches!(failures[..], [ref error] if matches!(error.class(), ErrorClass::Auth(_))));
    assert_eq!(cloud.on_demand(ASKED), (0.5, PriceSource::Live));
}

#[tokio::test]
async fn an_old_type_that_takes_no_current_disk_is_asked_with_another() {
    let cloud = Cloud::start(paying(0.3)).await;
    let mut fault = refusal(
        "DescribePrice",
        400,
        "InvalidSystemDiskCategory.ValueNotSupported",
    );
    fault.when = [("SystemDisk.Category".to_owned(), "cloud_essd".to_owned())].into();
    cloud.sim.add_fault(fault);

    assert!(cloud.provider.ask_price(ASKED, ZONE).await.unwrap());

    assert_eq!(cloud.calls("DescribePrice"), 2);
}

#[tokio::test]
async fn a_type_that_no_list_has_costs_what_its_family_costs() {
    let new: World = serde_json::from_str(
        r#"{"instanceTypes": [
            {"id": "ecs.g7.large", "cpu": 2, "memoryGib": 8, "pricePerHour": 0.5, "spotPercent": 30},
            {"id": "ecs.g7.giant", "cpu": 100, "memoryGib": 400, "pricePerHour": 9, "spotPercent": 30}]}"#,
    )
    .unwrap();
    let cloud = Cloud::start(new).await;
    let of_family = cloud.offered(ASKED, CapacityType::OnDemand).await;

    let giant = cloud.offered("ecs.g7.giant", CapacityType::OnDemand).await;

    assert!((giant - of_family * 50.0).abs() < 1e-4, "{giant}");
    assert_eq!(cloud.on_demand("ecs.g7.giant").1, PriceSource::Estimate);
}
