//! DescribeImages and DescribeImageFromFamily.

use serde_json::{Value, json};

use super::{check_region, merged, numbered_page};
use crate::error::ApiError;
use crate::params::{Params, tags_match};
use crate::state::State;
use crate::world::Image;

const PAGE_SIZE_MAX: usize = 100;

pub(super) fn describe_images(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let ids: Option<Vec<_>> = params
        .text("ImageId")
        .map(|ids| ids.split(',').map(str::trim).collect());
    let arm64_wanted = match params.text("InstanceType") {
        None => None,
        Some(id) => Some(
            state
                .catalog
                .find(id)
                .ok_or_else(|| ApiError::invalid_parameter("InstanceType"))?
                .arm64,
        ),
    };
    let filter = params.tags("Tag");
    let wanted = |image: &&Image| {
        ids.as_ref()
            .is_none_or(|ids| ids.contains(&image.id.as_str()))
            && params
                .text("ImageFamily")
                .is_none_or(|family| family == image.family)
            && params
                .text("ImageName")
                .is_none_or(|name| is_like(name, &image.name))
            && params
                .text("Architecture")
                .is_none_or(|architecture| architecture == image.architecture)
            && params
                .text("ImageOwnerAlias")
                .is_none_or(|owner| owner == image.owner_alias)
            && params
                .text("ImageOwnerId")
                .is_none_or(|owner| owner == image.owner_id)
            && params.text("OSType").is_none_or(|os| os == "linux")
            && params
                .text("Status")
                .is_none_or(|status| status.contains("Available"))
            && arm64_wanted.is_none_or(|arm64| arm64 == (image.architecture == "arm64"))
            && tags_match(&filter, &image.tags)
    };
    let found: Vec<_> = state.world.images.iter().filter(wanted).collect();
    let page = numbered_page(state, params, found, PAGE_SIZE_MAX)?;
    let rows: Vec<_> = page.items.into_iter().map(row).collect();
    Ok(merged(
        page.fields,
        json!({"RegionId": state.world.region, "Images": {"Image": rows}}),
    ))
}

pub(super) fn describe_image_from_family(
    state: &State,
    params: &Params,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let family = params.required("ImageFamily")?;
    let members = state
        .world
        .images
        .iter()
        .filter(|image| image.family == family);
    let newest = members.max_by(|a, b| a.created_at.cmp(&b.created_at));
    Ok(newest.map_or_else(|| json!({}), |image| json!({"Image": row(image)})))
}

/// `*` at the start, at the end or in between stands for anything.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    for (i, piece) in pattern.split('*').enumerate() {
        match rest.find(piece) {
            Some(at) if i > 0 || at == 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('*')
}

fn row(image: &Image) -> Value {
    let tags: Vec<_> = image
        .tags
        .iter()
        .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
        .collect();
    json!({
        "ImageId": image.id,
        "ImageName": image.name,
        "ImageFamily": image.family,
        "ImageOwnerAlias": image.owner_alias,
        "ImageVersion": "",
        "Description": "",
        "Architecture": image.architecture,
        "OSName": "Alibaba Cloud Linux 3.2104 LTS",
        "OSNameEn": "Alibaba Cloud Linux 3.2104 LTS",
        "OSType": "linux",
        "Platform": "Aliyun",
        "Size": image.size_gib,
        "Status": "Available",
        "Progress": "100%",
        "Usage": "none",
        "CreationTime": image.created_at,
        "BootMode": if image.architecture == "arm64" { "UEFI" } else { "BIOS" },
        "IsSupportCloudinit": true,
        "IsSupportIoOptimized": true,
        "IsPublic": true,
        "Features": {"NvmeSupport": "supported"},
        "DiskDeviceMappings": {"DiskDeviceMapping": []},
        "Tags": {"Tag": tags},
    })
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(is_like(
            "aliyun_3_*alibase*",
            "aliyun_3_x64_20G_alibase_20250629.vhd"
        ));
        assert!(is_like("*.vhd", "a.vhd"));
        assert!(!is_like("aliyun", "aliyun_3"));
        assert!(!is_like("x64*", "aliyun_3_x64"));
    }
}
