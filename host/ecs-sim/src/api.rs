//! The actions. Each one is a function from state, parameters and `now` to a reply or a refusal.

mod available;
mod cluster;
mod delete_instances;
mod describe_instances;
mod events;
mod identity;
mod images;
mod instance_types;
mod launch_extras;
mod launch_spec;
mod network;
mod prices;
mod run_instances;
mod tags;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// A call after routing: what is asked, and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) action: String,
    pub(crate) params: Params,
    /// The JSON body of a ROA call.
    pub(crate) body: Value,
    /// The cluster in the path of a ROA call, or empty.
    pub(crate) cluster_id: String,
    /// The add-on in the path of a ROA call, or empty.
    pub(crate) addon: String,
    /// None where the action takes anonymous calls.
    pub(crate) access_key_id: Option<String>,
    /// Where this server is reached, for scripts that nodes fetch.
    pub(crate) server_url: String,
}

/// Carries out one call.
pub(crate) fn dispatch(state: &mut State, call: &Call, now: Timestamp) -> Result<Value, ApiError> {
    let params = &call.params;
    match call.action.as_str() {
        "RunInstances" => run_instances::run_instances(state, params, now),
        "DescribeInstances" => describe_instances::describe_instances(state, params, now),
        "DescribeInstanceHistoryEvents" => events::describe_instance_history_events(state, params),
        "DeleteInstances" => delete_instances::delete_instances(state, params, now),
        "DeleteInstance" => delete_instances::delete_instance(state, params, now),
        "TagResources" => tags::tag_resources(state, params, now),
        "UntagResources" => tags::untag_resources(state, params, now),
        "ListTagResources" => tags::list_tag_resources(state, params, now),
        "DescribeInstanceTypes" => instance_types::describe_instance_types(state, params),
        "DescribeAvailableResource" => available::describe_available_resource(state, params),
        "DescribeZones" => available::describe_zones(state, params),
        "DescribeRegions" => Ok(available::describe_regions(state)),
        "DescribePrice" => prices::describe_price(state, params),
        "DescribeSpotPriceHistory" => prices::describe_spot_price_history(state, params, now),
        "DescribeSpotAdvice" => prices::describe_spot_advice(state, params),
        "DescribeImages" => images::describe_images(state, params),
        "DescribeImageFromFamily" => images::describe_image_from_family(state, params),
        "DescribeVSwitches" => network::describe_vswitches(state, params),
        "DescribeSecurityGroups" => network::describe_security_groups(state, params),
        "DescribeKeyPairs" => network::describe_key_pairs(state, params),
        "DescribeCapacityReservations" => network::describe_capacity_reservations(state, params),
        "DescribeClusterDetail" => cluster::describe_cluster_detail(state, call),
        "DescribeClusterAttachScripts" => {
            cluster::describe_cluster_attach_scripts(state, call, now)
        }
        "DescribeKubernetesVersionMetadata" => {
            Ok(cluster::describe_version_metadata(state, params))
        }
        "GetClusterAddonInstance" => cluster::get_cluster_addon_instance(state, call),
        "DescribeClusterNodePools" => cluster::describe_cluster_node_pools(state, call),
        "GetRole" => identity::get_role(state, params),
        "AssumeRoleWithOIDC" => identity::assume_role_with_oidc(state, params, now),
        "GetCallerIdentity" => Ok(identity::get_caller_identity(state, call)),
        other => Err(ApiError::new(
            404,
            "InvalidAction.NotFound",
            format!("The action {other} is not simulated."),
        )),
    }
}

/// All regional actions refuse a region that this world is not.
fn check_region(state: &State, params: &Params) -> Result<(), ApiError> {
    let region = params.required("RegionId")?;
    if region == state.world.region {
        return Ok(());
    }
    Err(ApiError::new(
        404,
        "InvalidRegionId.NotFound",
        format!("The specified RegionId {region} does not exist."),
    ))
}

/// One page of items by `PageNumber` and `PageSize`, with the three fields that such replies carry.
struct NumberedPage<T> {
    items: Vec<T>,
    fields: Value,
}

fn numbered_page<T>(
    state: &State,
    params: &Params,
    items: Vec<T>,
    size_max: usize,
) -> Result<NumberedPage<T>, ApiError> {
    const PAGE_SIZE_DEFAULT: usize = 10;
    let number = positive(params, "PageNumber")?.unwrap_or(1);
    let asked = positive(params, "PageSize")?.unwrap_or(PAGE_SIZE_DEFAULT);
    let size = asked
        .min(size_max)
        .min(state.world.page_size_max.unwrap_or(usize::MAX));
    let total = items.len();
    let items = items
        .into_iter()
        .skip((number - 1).saturating_mul(size))
        .take(size)
        .collect();
    Ok(NumberedPage {
        items,
        fields: json!({"PageNumber": number, "PageSize": size, "TotalCount": total}),
    })
}

fn positive(params: &Params, name: &str) -> Result<Option<usize>, ApiError> {
    match params.int(name)? {
        None => Ok(None),
        Some(value) => match usize::try_from(value) {
            Ok(value) if value > 0 => Ok(Some(value)),
            _ => Err(ApiError::invalid_parameter(name)),
        },
    }
}

/// How many items a page by `MaxResults` holds.
fn page_size(state: &State, params: &Params, bounds: PageBounds) -> Result<usize, ApiError> {
    let asked = positive(params, "MaxResults")?.unwrap_or(bounds.default);
    Ok(asked
        .clamp(bounds.min, bounds.max)
        .min(state.world.page_size_max.unwrap_or(usize::MAX)))
}

#[derive(Debug, Clone, Copy)]
struct PageBounds {
    min: usize,
    default: usize,
    max: usize,
}

/// Page tokens are opaque to clients; inside is the position after which the next page begins.
fn page_token(position: u64) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.encode(format!("after:{position}"))
}

fn parse_page_token(params: &Params) -> Result<Option<u64>, ApiError> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let Some(token) = params.text("NextToken") else {
        return Ok(None);
    };
    let decoded = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let position = decoded
        .as_deref()
        .and_then(|text| text.strip_prefix("after:"))
        .and_then(|text| text.parse().ok());
    position
        .map(Some)
        .ok_or_else(|| ApiError::invalid_parameter("NextToken"))
}

/// One page of items by `MaxResults` and `NextToken`, by position in the list.
fn token_page<T>(
    state: &State,
    params: &Params,
    items: Vec<T>,
    bounds: PageBounds,
) -> Result<(Vec<T>, String), ApiError> {
    let size = page_size(state, params, bounds)?;
    let start = parse_page_token(params)?
        .and_then(|position| usize::try_from(position).ok())
        .unwrap_or(0);
    let end = start.saturating_add(size);
    let next = if end < items.len() {
        page_token(end as u64)
    } else {
        String::new()
    };
    Ok((items.into_iter().skip(start).take(size).collect(), next))
}

/// Adds the fields of one object to another.
fn merged(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
