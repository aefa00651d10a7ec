//! What is on sale where: DescribeAvailableResource, DescribeZones, DescribeRegions.

use serde_json::{Value, json};

use super::check_region;
use crate::catalog::InstanceType;
use crate::error::ApiError;
use crate::instance::CapacityType;
use crate::params::Params;
use crate::state::{State, Stock};

const DISK_SIZE_GIB_MIN: u32 = 20;
const DISK_SIZE_GIB_MAX: u32 = 2048;

pub(super) fn describe_available_resource(
    state: &State,
    params: &Params,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let destination = params.required("DestinationResource")?;
    let capacity_type = capacity_type(params)?;
    let zones = state
        .world
        .zones()
        .into_iter()
        .filter(|zone| params.text("ZoneId").is_none_or(|wanted| wanted == *zone));
    let zones: Result<Vec<_>, ApiError> = zones
        .map(|zone| {
            let rows = match destination {
                "InstanceType" => type_rows(state, params, zone, capacity_type)?,
                "SystemDisk" | "DataDisk" => disk_rows(state, params)?,
                "Zone" => Vec::new(),
                _ => {
                    return Err(ApiError::new(
                        404,
                        "Invalid.DestinationResource",
                        "The DestinationResource is not valid.",
                    ));
                }
            };
            Ok(zone_row(state, zone, destination, &rows))
        })
        .collect();
    Ok(json!({"AvailableZones": {"AvailableZone": zones?}}))
}

fn capacity_type(params: &Params) -> Result<CapacityType, ApiError> {
    match params.text("SpotStrategy").unwrap_or("NoSpot") {
        "NoSpot" => Ok(CapacityType::OnDemand),
        "SpotAsPriceGo" | "SpotWithPriceLimit" => Ok(CapacityType::Spot),
        _ => Err(ApiError::new(
            404,
            "Invalid.SpotStrategy",
            "The specified SpotStrategy is not valid.",
        )),
    }
}

fn zone_row(state: &State, zone: &str, destination: &str, rows: &[Value]) -> Value {
    json!({
        "ZoneId": zone,
        "RegionId": state.world.region,
        "Status": "Available",
        "StatusCategory": "WithStock",
        "AvailableResources": {"AvailableResource": [{
            "Type": destination,
            "SupportedResources": {"SupportedResource": rows},
        }]},
    })
}

fn type_rows(
    state: &State,
    params: &Params,
    zone: &str,
    capacity_type: CapacityType,
) -> Result<Vec<Value>, ApiError> {
    let (cores, memory) = (params.int("Cores")?, params.float("Memory")?);
    let wanted = |instance_type: &&InstanceType| {
        params
            .text("InstanceType")
            .is_none_or(|id| id == instance_type.id)
            && cores.is_none_or(|cores| cores == i64::from(instance_type.cpu))
            && memory.is_none_or(|memory| (memory - instance_type.memory_gib).abs() < f64::EPSILON)
    };
    let rows = state
        .catalog
        .iter()
        .filter(wanted)
        .filter_map(|instance_type| {
            let (status, category) = match state.stock(instance_type, zone, capacity_type) {
                Stock::NotOnSale => return None,
                Stock::Left(Some(0)) => ("SoldOut", "WithoutStock"),
                Stock::Left(_) => ("Available", "WithStock"),
            };
            Some(json!({"Value": instance_type.id, "Status": status, "StatusCategory": category}))
        });
    Ok(rows.collect())
}

fn disk_rows(state: &State, params: &Params) -> Result<Vec<Value>, ApiError> {
    let id = params.required("InstanceType")?;
    let instance_type = state
        .catalog
        .find(id)
        .ok_or_else(|| ApiError::invalid_parameter("InstanceType"))?;
    let rows = instance_type.disk_categories().iter().map(|category| {
        json!({
            "Value": category, "Status": "Available", "StatusCategory": "WithStock",
            "Min": DISK_SIZE_GIB_MIN, "Max": DISK_SIZE_GIB_MAX, "Unit": "GiB",
        })
    });
    Ok(rows.collect())
}

pub(super) fn describe_zones(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let verbose = params.text("Verbose").is_none() || params.flag("Verbose")?;
    let zones: Vec<_> = state
        .world
        .zones()
        .into_iter()
        .map(|zone| zone_detail(state, zone, verbose))
        .collect();
    Ok(json!({"Zones": {"Zone": zones}}))
}

fn zone_detail(state: &State, zone: &str, verbose: bool) -> Value {
    let sold = |instance_type: &&InstanceType| {
        state.stock(instance_type, zone, CapacityType::OnDemand) != Stock::NotOnSale
    };
    let types: Vec<_> = state
        .catalog
        .iter()
        .filter(|_| verbose)
        .filter(sold)
        .map(|instance_type| &instance_type.id)
        .collect();
    json!({
        "ZoneId": zone,
        "LocalName": zone,
        "ZoneType": "AvailabilityZone",
        "AvailableResourceCreation": {"ResourceTypes": ["VSwitch", "IoOptimized", "Instance", "Disk"]},
        "AvailableDiskCategories": {"DiskCategories": ["cloud_essd", "cloud_auto", "cloud_essd_entry", "cloud_ssd", "cloud_efficiency"]},
        "AvailableInstanceTypes": {"InstanceTypes": types},
    })
}

pub(super) fn describe_regions(state: &State) -> Value {
    let region = &state.world.region;
    json!({"Regions": {"Region": [{
        "RegionId": region, "LocalName": region, "RegionEndpoint": format!("ecs.{region}.aliyuncs.com"), "Status": "available",
    }]}})
}
