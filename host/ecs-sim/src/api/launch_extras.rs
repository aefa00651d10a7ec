//! Parameters of a launch that shape the machine without deciding where it is: log-in, internet, pools, templates, disks.

use crate::catalog::InstanceType;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;
use crate::world::{PrivatePool, Tags};

const INTERNET_CHARGE_TYPES: &[&str] = &["PayByTraffic", "PayByBandwidth"];
const BANDWIDTH_OUT_MAX: i64 = 100;
const DATA_DISKS_MAX: usize = 16;
/// Beginnings of what [`request_words`] keeps.
const KEPT: &[&str] = &[
    "DataDisk.",
    "HttpEndpoint",
    "HttpPutResponseHopLimit",
    "HttpTokens",
    "Internet",
    "KeyPairName",
    "LaunchTemplateId",
    "PasswordInherit",
    "PrivatePoolOptions.",
    "RamRoleName",
    "ResourceGroupId",
    "SystemDisk.",
];

/// What the call asked for in its own words.
pub(super) fn request_words(params: &Params) -> Tags {
    let words = params.iter().filter(|(name, value)| {
        !value.is_empty() && KEPT.iter().any(|start| name.starts_with(start))
    });
    words
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Refuses what the real API refuses.
pub(super) fn check_extras(
    state: &State,
    params: &Params,
    instance_type: &InstanceType,
    zone: &str,
) -> Result<(), ApiError> {
    if params.flag("PasswordInherit")? && params.text("KeyPairName").is_some() {
        let message = "PasswordInherit and KeyPairName cannot be specified at the same time.";
        return Err(ApiError::new(400, "InvalidParameter.Conflict", message));
    }
    check_internet(params)?;
    if let Some(id) = params
        .text("LaunchTemplateId")
        .filter(|id| !state.world.launch_templates.iter().any(|known| known == id))
    {
        let message = format!("The specified launch template {id} does not exist.");
        return Err(ApiError::new(
            404,
            "InvalidLaunchTemplate.NotFound",
            message,
        ));
    }
    check_pool(state, params, instance_type, zone)
}

fn check_internet(params: &Params) -> Result<(), ApiError> {
    if let Some(kind) = params.text("InternetChargeType")
        && !INTERNET_CHARGE_TYPES.contains(&kind)
    {
        return Err(ApiError::invalid_parameter("InternetChargeType"));
    }
    match params.int("InternetMaxBandwidthOut")? {
        Some(bandwidth) if !(0..=BANDWIDTH_OUT_MAX).contains(&bandwidth) => {
            Err(ApiError::invalid_parameter("InternetMaxBandwidthOut"))
        }
        _ => Ok(()),
    }
}

fn check_pool(
    state: &State,
    params: &Params,
    instance_type: &InstanceType,
    zone: &str,
) -> Result<(), ApiError> {
    let id = params.text("PrivatePoolOptions.Id");
    match (params.text("PrivatePoolOptions.MatchCriteria"), id) {
        (None | Some("Open" | "None"), None) => Ok(()),
        (Some("Target"), Some(id)) => {
            let is_it = |pool: &&PrivatePool| {
                pool.id == id && pool.instance_type == instance_type.id && pool.zone == zone
            };
            let pool = state
                .world
                .private_pools
                .iter()
                .find(is_it)
                .ok_or_else(|| {
                    let message = format!(
                        "The private pool {id} has no {} in {zone}.",
                        instance_type.id
                    );
                    ApiError::new(404, "InvalidPrivatePoolOptions.NotFound", message)
                })?;
            if state.used_of_pool(id) < pool.count as usize {
                return Ok(());
            }
            let message = "The private pool has no room left.";
            Err(ApiError::new(403, "OperationDenied.NoStock", message))
        }
        _ => Err(ApiError::invalid_parameter(
            "PrivatePoolOptions.MatchCriteria",
        )),
    }
}

/// How many data disks are asked for, each of a kind that the type has.
pub(super) fn data_disks(params: &Params, instance_type: &InstanceType) -> Result<usize, ApiError> {
    let mut count = 0;
    for number in 1..=DATA_DISKS_MAX {
        let field = |name: &str| format!("DataDisk.{number}.{name}");
        let category = params.text(&field("Category"));
        let (size, snapshot) = (
            params.int(&field("Size"))?,
            params.text(&field("SnapshotId")),
        );
        if category.is_none() && size.is_none() && snapshot.is_none() {
            break;
        }
        if let Some(category) = category
            && !instance_type.disk_categories().contains(&category)
        {
            let message = format!(
                "The data disk category {category} is not supported by {}.",
                instance_type.id
            );
            let code = "InvalidDataDiskCategory.ValueNotSupported";
            return Err(ApiError::new(400, code, message));
        }
        count += 1;
    }
    Ok(count)
}
