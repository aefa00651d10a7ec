//! What a launch is to be made of, checked in the order in which a mistake should be told.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::launch_extras::{check_extras, data_disks, request_words};
use super::tags::checked_tags;
use crate::catalog::InstanceType;
use crate::error::ApiError;
use crate::instance::{CapacityType, Spec};
use crate::params::Params;
use crate::state::{State, vswitch_not_found};
use crate::world::{Image, VSwitch};

const SYSTEM_DISK_GIB_DEFAULT: u32 = 40;
/// Before base64.
const USER_DATA_BYTES_MAX: usize = 32 * 1024;

pub(super) fn launch_spec(state: &State, params: &Params) -> Result<Spec, ApiError> {
    let instance_type = instance_type(state, params)?;
    let image = image(state, params)?;
    check_architecture(instance_type, image)?;
    let vswitch = vswitch(state, params)?;
    let security_group_ids = security_groups(state, params)?;
    check_key_pair_and_role(state, params)?;
    check_extras(state, params, instance_type, &vswitch.zone)?;
    let data_disks = data_disks(params, instance_type)?;
    let spot = spot(state, params, instance_type, &vswitch.zone)?;
    let (system_disk_category, system_disk_gib) = system_disk(params, instance_type, image)?;
    Ok(Spec {
        instance_type: instance_type.clone(),
        zone: vswitch.zone.clone(),
        vswitch_id: vswitch.id.clone(),
        image_id: image.id.clone(),
        security_group_ids,
        name: params.text("InstanceName").unwrap_or("node").to_owned(),
        host_name: params.text("HostName").unwrap_or_default().to_owned(),
        tags: checked_tags(params, "Tag")?,
        user_data: user_data(params)?,
        capacity_type: spot.capacity_type,
        spot_strategy: params.text("SpotStrategy").unwrap_or("NoSpot").to_owned(),
        spot_price_limit: spot.price_limit,
        spot_duration: params.int("SpotDuration")?.unwrap_or(1),
        key_pair: params.text("KeyPairName").unwrap_or_default().to_owned(),
        ram_role: params.text("RamRoleName").unwrap_or_default().to_owned(),
        http_tokens: params.text("HttpTokens").unwrap_or("optional").to_owned(),
        system_disk_category,
        system_disk_gib,
        request: request_words(params),
        data_disks,
        deletion_protection: params.flag("DeletionProtection")?,
        price_per_hour: spot.price_per_hour,
    })
}

fn instance_type<'a>(state: &'a State, params: &Params) -> Result<&'a InstanceType, ApiError> {
    let name = params.required("InstanceType")?;
    state.catalog.find(name).ok_or_else(|| {
        ApiError::new(
            400,
            "InvalidInstanceType.ValueNotSupported",
            format!("The specified InstanceType {name} does not exist."),
        )
    })
}

fn image<'a>(state: &'a State, params: &Params) -> Result<&'a Image, ApiError> {
    let images = &state.world.images;
    let (wanted, found) = match (params.text("ImageId"), params.text("ImageFamily")) {
        (Some(id), _) => (id, images.iter().find(|image| image.id == id)),
        (None, Some(family)) => {
            let members = images.iter().filter(|image| image.family == family);
            (
                family,
                members.max_by(|a, b| a.created_at.cmp(&b.created_at)),
            )
        }
        (None, None) => return Err(ApiError::missing_parameter("ImageId")),
    };
    found.ok_or_else(|| {
        ApiError::new(
            404,
            "InvalidImageId.NotFound",
            format!("The specified image {wanted} does not exist."),
        )
    })
}

fn check_architecture(instance_type: &InstanceType, image: &Image) -> Result<(), ApiError> {
    if instance_type.arm64 == (image.architecture == "arm64") {
        return Ok(());
    }
    let message = format!(
        "The image {} does not support the instance type {}.",
        image.id, instance_type.id
    );
    Err(ApiError::new(403, "ImageNotSupportInstanceType", message))
}

fn vswitch<'a>(state: &'a State, params: &Params) -> Result<&'a VSwitch, ApiError> {
    let id = params.required("VSwitchId")?;
    let vswitch = state.vswitch(id).ok_or_else(|| vswitch_not_found(id))?;
    match params.text("ZoneId") {
        Some(zone) if zone != vswitch.zone => Err(ApiError::new(
            403,
            "ResourcesNotInSameZone",
            format!("The vSwitch {id} is in zone {}.", vswitch.zone),
        )),
        _ => Ok(vswitch),
    }
}

fn security_groups(state: &State, params: &Params) -> Result<Vec<String>, ApiError> {
    let ids = match (
        params.text("SecurityGroupId"),
        params.list("SecurityGroupIds"),
    ) {
        (Some(_), several) if !several.is_empty() => {
            let message =
                "SecurityGroupId and SecurityGroupIds.N cannot be specified at the same time.";
            return Err(ApiError::new(400, "InvalidParameter.Conflict", message));
        }
        (Some(id), _) => vec![id],
        (None, several) if several.is_empty() => {
            return Err(ApiError::missing_parameter("SecurityGroupId"));
        }
        (None, several) => several,
    };
    for id in &ids {
        let group = state
            .world
            .security_groups
            .iter()
            .find(|group| group.id == *id)
            .ok_or_else(|| {
                ApiError::new(
                    404,
                    "InvalidSecurityGroupId.NotFound",
                    format!("The specified security group {id} does not exist."),
                )
            })?;
        if group
            .vpc_id
            .as_ref()
            .is_some_and(|vpc_id| *vpc_id != state.world.vpc_id)
        {
            let message = format!("The security group {id} and the vSwitch are in different VPCs.");
            return Err(ApiError::new(
                403,
                "OperationDenied.InconsistentNetwork",
                message,
            ));
        }
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}

fn check_key_pair_and_role(state: &State, params: &Params) -> Result<(), ApiError> {
    if let Some(name) = params.text("KeyPairName").filter(|name| {
        !state
            .world
            .key_pairs
            .iter()
            .any(|known| known.name == *name)
    }) {
        return Err(ApiError::new(
            404,
            "InvalidKeyPairName.NotFound",
            format!("The specified key pair {name} does not exist."),
        ));
    }
    if let Some(name) = params
        .text("RamRoleName")
        .filter(|name| !state.world.ram_roles.iter().any(|known| known == name))
    {
        return Err(ApiError::new(
            404,
            "InvalidRamRole.NotFound",
            format!("The specified RAM role {name} does not exist."),
        ));
    }
    Ok(())
}

struct Spot {
    capacity_type: CapacityType,
    price_limit: f64,
    price_per_hour: f64,
}

fn spot(
    state: &State,
    params: &Params,
    instance_type: &InstanceType,
    zone: &str,
) -> Result<Spot, ApiError> {
    let region = &state.world.region;
    let spot_price = instance_type.spot_price(region, zone).unwrap_or(0.0);
    let price_limit = params.float("SpotPriceLimit")?;
    match params.text("SpotStrategy").unwrap_or("NoSpot") {
        "NoSpot" => {
            let price_per_hour = instance_type.price(region).unwrap_or(0.0);
            Ok(Spot {
                capacity_type: CapacityType::OnDemand,
                price_limit: 0.0,
                price_per_hour,
            })
        }
        "SpotAsPriceGo" => Ok(Spot {
            capacity_type: CapacityType::Spot,
            price_limit: price_limit.unwrap_or(0.0),
            price_per_hour: spot_price,
        }),
        "SpotWithPriceLimit" => {
            let price_limit =
                price_limit.ok_or_else(|| ApiError::missing_parameter("SpotPriceLimit"))?;
            if price_limit < spot_price {
                let message =
                    "The specified SpotPriceLimit is lower than the current public price.";
                return Err(ApiError::new(
                    400,
                    "InvalidSpotPriceLimit.LowerThanPublicPrice",
                    message,
                ));
            }
            Ok(Spot {
                capacity_type: CapacityType::Spot,
                price_limit,
                price_per_hour: spot_price,
            })
        }
        other => Err(ApiError::new(
            400,
            "InvalidSpotStrategy",
            format!("The specified SpotStrategy {other} is not valid."),
        )),
    }
}

fn user_data(params: &Params) -> Result<Vec<u8>, ApiError> {
    let Some(encoded) = params.text("UserData") else {
        return Ok(Vec::new());
    };
    let decoded = STANDARD.decode(encoded).map_err(|_| {
        ApiError::new(
            400,
            "InvalidUserData.Base64FormatInvalid",
            "The specified UserData is not valid base64.",
        )
    })?;
    if decoded.len() > USER_DATA_BYTES_MAX {
        return Err(ApiError::new(
            400,
            "InvalidUserData.SizeExceeded",
            "The specified UserData exceeds 32 KB.",
        ));
    }
    Ok(decoded)
}

/// The category and the size in GiB.
fn system_disk(
    params: &Params,
    instance_type: &InstanceType,
    image: &Image,
) -> Result<(String, u32), ApiError> {
    let category = params.text("SystemDisk.Category").unwrap_or("cloud_essd");
    if !instance_type.disk_categories().contains(&category) {
        let message = format!(
            "The disk category {category} is not supported by {}.",
            instance_type.id
        );
        return Err(ApiError::new(
            400,
            "InvalidSystemDiskCategory.ValueNotSupported",
            message,
        ));
    }
    let default_gib = i64::from(image.size_gib.max(SYSTEM_DISK_GIB_DEFAULT));
    let size = params.int("SystemDisk.Size")?.unwrap_or(default_gib);
    let size_gib = u32::try_from(size)
        .ok()
        .filter(|size| *size >= image.size_gib)
        .ok_or_else(|| {
            let message = "The specified SystemDisk.Size is smaller than the image.";
            ApiError::new(404, "InvalidSystemDiskSize.LessThanImageSize", message)
        })?;
    Ok((category.to_owned(), size_gib))
}
