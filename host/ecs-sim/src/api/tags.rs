//! TagResources, UntagResources and ListTagResources, for instances.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{PageBounds, check_region, token_page};
use crate::error::ApiError;
use crate::params::{Params, tags_match};
use crate::state::State;
use crate::world::Tags;

const RESOURCES_MAX: usize = 50;
/// Tags in one call.
const TAGS_MAX: usize = 20;
const TAG_LENGTH_MAX: usize = 128;
/// All tags of one instance.
const TAGS_PER_RESOURCE_MAX: usize = 20;
const PAGE: PageBounds = PageBounds {
    min: 1,
    default: 50,
    max: 1000,
};

pub(super) fn tag_resources(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let ids = instance_ids(state, params, now)?;
    let tags = checked_tags(params, "Tag")?;
    if tags.is_empty() {
        return Err(ApiError::new(
            404,
            "MissingParameter.Tags",
            "The parameter Tag.N is not supplied.",
        ));
    }
    for id in &ids {
        let known = state.instances.get(id).map(|instance| &instance.spec.tags);
        let total = known.map_or(0, |known| {
            known
                .keys()
                .chain(tags.keys())
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        });
        if total > TAGS_PER_RESOURCE_MAX {
            return Err(ApiError::new(
                403,
                "QuotaExceed.Tags",
                format!("The instance {id} would have more than 20 tags."),
            ));
        }
    }
    for id in &ids {
        if let Some(instance) = state.instances.get_mut(id) {
            instance.spec.tags.extend(tags.clone());
        }
    }
    Ok(json!({}))
}

pub(super) fn untag_resources(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let ids = instance_ids(state, params, now)?;
    let keys = params.list("TagKey");
    let all = params.flag("All")?;
    for id in &ids {
        if let Some(instance) = state.instances.get_mut(id) {
            instance
                .spec
                .tags
                .retain(|key, _| !all && !keys.contains(&key.as_str()));
        }
    }
    Ok(json!({}))
}

fn instance_ids(state: &State, params: &Params, now: Timestamp) -> Result<Vec<String>, ApiError> {
    check_region(state, params)?;
    check_resource_type(params)?;
    let ids = params.list("ResourceId");
    if ids.is_empty() {
        return Err(ApiError::missing_parameter("ResourceId"));
    }
    if ids.len() > RESOURCES_MAX {
        return Err(ApiError::new(
            400,
            "NumberExceed.ResourceIds",
            "At most 50 resources can be specified.",
        ));
    }
    for id in &ids {
        if state.living(id, now).is_none() {
            return Err(ApiError::new(
                404,
                "InvalidResourceId.NotFound",
                format!("The specified ResourceId {id} is not found."),
            ));
        }
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}

fn check_resource_type(params: &Params) -> Result<(), ApiError> {
    match params.required("ResourceType")? {
        "instance" => Ok(()),
        other => Err(ApiError::new(
            404,
            "InvalidResourceType.NotFound",
            format!("The ResourceType {other} is not simulated."),
        )),
    }
}

/// Rows are pairs of a resource and one of its tags; a filter chooses resources, and then all their tags are listed.
pub(super) fn list_tag_resources(
    state: &State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    check_resource_type(params)?;
    let ids = params.list("ResourceId");
    let filter = params.tags("Tag");
    let living = state
        .instances
        .values()
        .filter(|instance| state.living(&instance.id, now).is_some());
    let chosen = living.filter(|instance| {
        instance.is_visible(&state.world.timing, now)
            && (ids.is_empty() || ids.contains(&instance.id.as_str()))
            && tags_match(&filter, &instance.spec.tags)
    });
    let rows = chosen.flat_map(|instance| {
        instance.spec.tags.iter().map(|(key, value)| {
            json!({"ResourceType": "instance", "ResourceId": instance.id, "TagKey": key, "TagValue": value})
        })
    });
    let (rows, next) = token_page(state, params, rows.collect(), PAGE)?;
    Ok(json!({"NextToken": next, "TagResources": {"TagResource": rows}}))
}

/// Tags to set, with the rules that all tag parameters share.
pub(super) fn checked_tags(params: &Params, name: &str) -> Result<Tags, ApiError> {
    let list = params.tags(name);
    if list.len() > TAGS_MAX {
        return Err(ApiError::new(
            400,
            "InvalidTagCount",
            "At most 20 tags can be specified.",
        ));
    }
    let mut tags = BTreeMap::new();
    for tag in list {
        let value = tag.value.unwrap_or_default();
        let reserved = tag.key.starts_with("aliyun")
            || tag.key.starts_with("acs:")
            || tag.key.contains("http://")
            || tag.key.contains("https://");
        if reserved || tag.key.chars().count() > TAG_LENGTH_MAX {
            return Err(ApiError::new(
                400,
                "InvalidTagKey.Malformed",
                format!("The tag key {} is not valid.", tag.key),
            ));
        }
        if value.chars().count() > TAG_LENGTH_MAX
            || value.contains("http://")
            || value.contains("https://")
        {
            return Err(ApiError::new(
                400,
                "InvalidTagValue.Malformed",
                format!("The value of tag {} is not valid.", tag.key),
            ));
        }
        if tags.insert(tag.key.clone(), value).is_some() {
            return Err(ApiError::new(
                400,
                "Duplicate.TagKey",
                format!("The tag key {} is given twice.", tag.key),
            ));
        }
    }
    Ok(tags)
}
