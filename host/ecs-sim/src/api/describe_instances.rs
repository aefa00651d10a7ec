//! DescribeInstances: filters, two styles of pages, and reads that lag behind writes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    PageBounds, check_region, merged, numbered_page, page_size, page_token, parse_page_token,
};
use crate::error::ApiError;
use crate::instance::{Instance, Status};
use crate::params::{Params, tags_match};
use crate::state::State;

const IDS_MAX: usize = 100;
const TAGGED_SHOWN_MAX: usize = 1000;
/// MaxResults under 10 is read as 10, over 100 as 100.
const PAGE: PageBounds = PageBounds {
    min: 10,
    default: 10,
    max: 100,
};

pub(super) fn describe_instances(
    state: &State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let ids = params.json_list("InstanceIds")?;
    if ids.as_ref().is_some_and(|ids| ids.len() > IDS_MAX) {
        return Err(ApiError::invalid_parameter("InstanceIds"));
    }
    let filter = params.tags("Tag");
    let found = filter_and_sort(state, now, |instance, status| {
        let texts = [
            ("Status", status.as_str()),
            ("VpcId", &state.world.vpc_id),
            ("VSwitchId", &instance.spec.vswitch_id),
            ("ZoneId", &instance.spec.zone),
            ("InstanceType", &instance.spec.instance_type.id),
            ("ImageId", &instance.spec.image_id),
            ("InstanceChargeType", "PostPaid"),
            (
                "LockReason",
                if instance.recycling { "Recycling" } else { "" },
            ),
        ];
        let group = params.text("SecurityGroupId");
        instance.is_visible(&state.world.timing, now)
            && ids.as_ref().is_none_or(|ids| ids.contains(&instance.id))
            && tags_match(&filter, &instance.spec.tags)
            && texts
                .iter()
                .all(|(name, value)| params.text(name).is_none_or(|wanted| wanted == *value))
            && group.is_none_or(|group| {
                instance
                    .spec
                    .security_group_ids
                    .iter()
                    .any(|id| id == group)
            })
    });
    // A tag filter shows no more; ListTagResources does.
    let shown_max = if filter.is_empty() {
        usize::MAX
    } else {
        TAGGED_SHOWN_MAX
    };
    let found: Vec<_> = found.into_iter().take(shown_max).collect();
    let by_number = params.text("PageNumber").is_some() || params.text("PageSize").is_some();
    if by_number {
        page_by_number(state, params, found)
    } else {
        page_by_token(state, params, &found)
    }
}

/// Instances that are still there and satisfy the test, newest first.
pub(crate) fn filter_and_sort(
    state: &State,
    now: Timestamp,
    test: impl Fn(&Instance, Status) -> bool,
) -> Vec<(&Instance, Status)> {
    let living = state.instances.values().filter_map(|instance| {
        let status = instance.status(&state.world.timing, now)?;
        test(instance, status).then_some((instance, status))
    });
    let mut found: Vec<_> = living.collect();
    found.sort_by_key(|(instance, _)| std::cmp::Reverse(instance.sequence));
    found
}

fn page_by_number(
    state: &State,
    params: &Params,
    found: Vec<(&Instance, Status)>,
) -> Result<Value, ApiError> {
    let page = numbered_page(state, params, found, PAGE.max)?;
    Ok(merged(
        page.fields,
        json!({"NextToken": "", "Instances": {"Instance": shown(state, &page.items)}}),
    ))
}

/// The token names the last instance that was seen, so that instances which come and go between two pages neither repeat
/// nor hide others.
fn page_by_token(
    state: &State,
    params: &Params,
    found: &[(&Instance, Status)],
) -> Result<Value, ApiError> {
    let size = page_size(state, params, PAGE)?;
    let before = parse_page_token(params)?.unwrap_or(u64::MAX);
    let rest: Vec<_> = found
        .iter()
        .filter(|(instance, _)| instance.sequence < before)
        .copied()
        .collect();
    let page = &rest[..rest.len().min(size)];
    let next = match page.last() {
        Some((last, _)) if rest.len() > size => page_token(last.sequence),
        _ => String::new(),
    };
    Ok(json!({
        "TotalCount": found.len(),
        "PageNumber": 1,
        "PageSize": size,
        "NextToken": next,
        "Instances": {"Instance": shown(state, page)},
    }))
}

fn shown(state: &State, page: &[(&Instance, Status)]) -> Vec<Value> {
    let world = &state.world;
    page.iter()
        .map(|(instance, status)| instance.describe(&world.region, &world.vpc_id, *status))
        .collect()
}
