//! Instance types as the files of cases have them.

use anyhow::{Context, Result};
use kerf_core::instance_type::{CapacityType, InstanceType, Offering, Reservation};
use kerf_core::labels;
use kerf_core::price::Price;
use kerf_core::quantity::Quantity;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;
use serde_json::{Map, Value, json};

use super::manifest::quantities;

pub(super) fn write(it: &InstanceType) -> Value {
    let own = |requirement: &&Requirement| {
        ![labels::INSTANCE_TYPE, labels::ZONE, labels::CAPACITY_TYPE].contains(&requirement.key())
    };
    let labels: Map<String, Value> = it
        .requirements
        .iter()
        .filter(own)
        .filter_map(|it| Some((it.key().to_owned(), json!(it.single_value()?))))
        .collect();
    let offerings: Vec<Value> = it.offerings.iter().map(write_offering).collect();
    json!({
        "name": it.name.as_str(),
        "labels": labels,
        "capacity": quantities(&it.capacity),
        "overhead": quantities(&it.overhead),
        "offerings": offerings,
    })
}

fn write_offering(offering: &Offering) -> Value {
    let mut value = json!({
        "zone": offering.zone.as_str(),
        "capacityType": offering.capacity_type.as_str(),
        "priceMicros": offering.price.micros(),
    });
    if let Some(why) = &offering.unavailable {
        value["unavailable"] = json!(why.text);
    }
    if let Some(it) = &offering.reservation {
        value["reservation"] = json!({"id": it.id.as_str(), "remaining": it.remaining});
    }
    if let Some(capacity) = &offering.capacity_override {
        value["capacity"] = json!(quantities(capacity));
    }
    if let Some(overhead) = &offering.overhead_override {
        value["overhead"] = json!(quantities(overhead));
    }
    value
}

pub(super) fn read(value: &Value) -> Result<InstanceType> {
    let labels = value["labels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| Requirement::in_values(key, value.as_str()));
    let offerings = value["offerings"].as_array().into_iter().flatten();
    Ok(InstanceType::new(
        value["name"]
            .as_str()
            .context("an instance type without a name")?,
        labels,
        read_resources(&value["capacity"])?,
        read_resources(&value["overhead"])?,
        offerings.map(read_offering).collect::<Result<_>>()?,
    ))
}

fn read_offering(value: &Value) -> Result<Offering> {
    let zone = value["zone"]
        .as_str()
        .context("an offering without a zone")?;
    let capacity_type = value["capacityType"].as_str().and_then(CapacityType::parse);
    let capacity_type = capacity_type.context("an offering without a capacityType")?;
    let price = value["priceMicros"]
        .as_u64()
        .context("an offering without a price")?;
    let optional = |name: &str| match &value[name] {
        Value::Null => Ok(None),
        list => read_resources(list).map(Box::new).map(Some),
    };
    let mut offering = Offering::new(zone, capacity_type, Price::from_micros(price));
    offering.unavailable = value["unavailable"]
        .as_str()
        .map(|why| why.to_owned().into());
    offering.reservation = value["reservation"]["id"].as_str().map(|id| Reservation {
        id: id.into(),
        remaining: value["reservation"]["remaining"]
            .as_u64()
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or_default(),
    });
    offering.capacity_override = optional("capacity")?;
    offering.overhead_override = optional("overhead")?;
    Ok(offering)
}

fn read_resources(list: &Value) -> Result<Resources> {
    let mut resources = Resources::default();
    for (name, amount) in list.as_object().into_iter().flatten() {
        let text = amount.as_str().context("an amount is a string")?;
        resources.set_quantity(name, Quantity::parse(text)?);
    }
    Ok(resources)
}
