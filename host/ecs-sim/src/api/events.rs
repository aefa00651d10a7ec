//! DescribeInstanceHistoryEvents: what was announced about instances, also about those that nobody knows.

use serde_json::{Value, json};

use super::{PageBounds, check_region, token_page};
use crate::announced::Announced;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

const PAGE: PageBounds = PageBounds {
    min: 10,
    default: 10,
    max: 100,
};

pub(super) fn describe_instance_history_events(
    state: &State,
    params: &Params,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let kind = params.text("ResourceType").unwrap_or("instance");
    let states = params.list("InstanceEventCycleStatus");
    let types = params.list("InstanceEventType");
    let instance = params.text("InstanceId");
    let is_wanted = |wanted: &[&str], found: &str| wanted.is_empty() || wanted.contains(&found);
    let found = state.events.iter().filter(|event| {
        kind == "instance"
            && is_wanted(&states, &event.state)
            && is_wanted(&types, &event.event_type)
            && instance.is_none_or(|id| id == event.instance_id)
    });
    let found: Vec<Value> = found.map(Announced::describe).collect();
    let total = found.len();
    let (page, next) = token_page(state, params, found, PAGE)?;
    Ok(json!({
        "TotalCount": total,
        "PageNumber": 1,
        "PageSize": page.len(),
        "NextToken": next,
        "InstanceSystemEventSet": {"InstanceSystemEventType": page},
    }))
}
