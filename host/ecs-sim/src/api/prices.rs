//! Prices: DescribePrice, DescribeSpotPriceHistory, DescribeSpotAdvice.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::check_region;
use crate::catalog::InstanceType;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// Per GiB and hour, the list price of the usual system disk, rounded.
const DISK_PRICE_PER_GIB: f64 = 0.0015;
/// Without StartTime the history reaches back this far.
const HISTORY: SignedDuration = SignedDuration::from_hours(3);

fn instance_type<'a>(state: &'a State, id: &str) -> Result<&'a InstanceType, ApiError> {
    state.catalog.find(id).ok_or_else(|| {
        ApiError::new(
            400,
            "InvalidInstanceType.ValueNotSupported",
            format!("The specified InstanceType {id} does not exist."),
        )
    })
}

pub(super) fn describe_price(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let instance_type = instance_type(state, params.required("InstanceType")?)?;
    let list_price = instance_type.price(&state.world.region).ok_or_else(|| {
        ApiError::new(
            404,
            "PriceNotFound",
            format!("No price is found for {}.", instance_type.id),
        )
    })?;
    let is_spot = params
        .text("SpotStrategy")
        .is_some_and(|strategy| strategy != "NoSpot");
    let zone = params.text("ZoneId").unwrap_or_default();
    let instance = if is_spot {
        instance_type
            .spot_price(&state.world.region, zone)
            .unwrap_or(list_price)
    } else {
        let of_account = state.world.account_prices.get(&instance_type.id);
        of_account.copied().unwrap_or(list_price)
    };
    let disk = params.float("SystemDisk.Size")?.unwrap_or(40.0) * DISK_PRICE_PER_GIB;
    let amount = params.float("Amount")?.unwrap_or(1.0);
    let (original, trade) = ((list_price + disk) * amount, (instance + disk) * amount);
    let detail = |resource: &str, original: f64, trade: f64| {
        json!({
            "Resource": resource, "OriginalPrice": original * amount, "TradePrice": trade * amount,
            "DiscountPrice": (original - trade) * amount, "SubRules": {"Rule": []},
        })
    };
    Ok(json!({"PriceInfo": {
        "Price": {
            "Currency": state.world.currency, "OriginalPrice": original, "TradePrice": trade, "DiscountPrice": original - trade,
            "DetailInfos": {"DetailInfo": [detail("instanceType", list_price, instance), detail("systemDisk", disk, disk)]},
        },
        "Rules": {"Rule": []},
    }}))
}

/// Two rows per zone, oldest last in no promised order: readers must sort by time.
pub(super) fn describe_spot_price_history(
    state: &State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    params.required("NetworkType")?;
    let instance_type = instance_type(state, params.required("InstanceType")?)?;
    let zones = state
        .world
        .zones()
        .into_iter()
        .filter(|zone| params.text("ZoneId").is_none_or(|wanted| wanted == *zone));
    let rows = zones.flat_map(|zone| {
        let row = move |at: Timestamp, price: f64| {
            json!({
                "ZoneId": zone, "InstanceType": instance_type.id, "NetworkType": "vpc", "IoOptimized": "optimized",
                "Timestamp": at.strftime("%Y-%m-%dT%H:00:00Z").to_string(),
                "SpotPrice": price, "OriginPrice": instance_type.price(&state.world.region),
            })
        };
        let price = instance_type.spot_price(&state.world.region, zone);
        price.into_iter().flat_map(move |price| [row(now, price), row(now - HISTORY, price * 1.1)])
    });
    Ok(
        json!({"Currency": state.world.currency, "NextOffset": 0, "SpotPrices": {"SpotPriceType": rows.collect::<Vec<_>>()}}),
    )
}

pub(super) fn describe_spot_advice(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let asked = params.list("InstanceTypes");
    let family = params.text("InstanceTypeFamily");
    let (cores, memory) = (params.int("Cores")?, params.float("Memory")?);
    let wanted = |instance_type: &&InstanceType| {
        (asked.is_empty() || asked.contains(&instance_type.id.as_str()))
            && family.is_none_or(|family| family.trim_start_matches("ecs.") == instance_type.family)
            && cores.is_none_or(|cores| cores == i64::from(instance_type.cpu))
            && memory.is_none_or(|memory| (memory - instance_type.memory_gib).abs() < f64::EPSILON)
    };
    let zones = state
        .world
        .zones()
        .into_iter()
        .filter(|zone| params.text("ZoneId").is_none_or(|wanted| wanted == *zone));
    let zones = zones.map(|zone| {
        let rows = state.catalog.iter().filter(wanted).filter_map(|instance_type| {
            let list_price = instance_type.price(&state.world.region)?;
            let spot_price = instance_type.spot_price(&state.world.region, zone)?;
            // The discount is what is left to pay, in whole percent.
            let discount = (spot_price / list_price * 100.0).round();
            Some(json!({
                "InstanceType": instance_type.id, "AverageSpotDiscount": whole(discount),
                "InterruptRateDesc": "0-3%", "InterruptionRate": 1.5,
            }))
        });
        json!({"ZoneId": zone, "AvailableSpotResources": {"AvailableSpotResource": rows.collect::<Vec<_>>()}})
    });
    Ok(
        json!({"RegionId": state.world.region, "AvailableSpotZones": {"AvailableSpotZone": zones.collect::<Vec<_>>()}}),
    )
}

/// A number that the API gives without a fraction.
fn whole(number: f64) -> serde_json::Value {
    serde_json::from_str(&format!("{number:.0}")).unwrap_or_default()
}
