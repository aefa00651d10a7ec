//! DescribeInstanceHistoryEvents: what the platform announced about instances.

use serde::Deserialize;

use crate::actions::PAGES_MAX;
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// The most events that one call takes.
pub const EVENTS_PER_CALL_MAX: u32 = 100;

/// States of an event that is still to come or under way.
pub const OPEN_STATES: [&str; 3] = ["Scheduled", "Inquiring", "Executing"];

/// One event as the API shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct InstanceEventItem {
    pub event_id: String,
    pub instance_id: String,
    pub event_type: Named,
    pub event_cycle_status: Named,
    /// When it is carried out; empty for what happens at once.
    pub not_before: String,
    pub reason: String,
}

/// A word with its code; only the word is documented.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Named {
    pub name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeInstanceHistoryEventsReply {
    instance_system_event_set: InstanceSystemEventSet,
    next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct InstanceSystemEventSet {
    instance_system_event_type: Vec<InstanceEventItem>,
}

/// Builds one page's call: the events of all instances of the region that are in one of these states.
#[must_use]
pub fn describe_instance_history_events_request(
    region_id: &str,
    states: &[&str],
    next_token: &str,
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("ResourceType", "instance");
    params.put_list("InstanceEventCycleStatus", states);
    params.put("MaxResults", EVENTS_PER_CALL_MAX);
    params.put_text("NextToken", next_token);
    Request::rpc(Action::DescribeInstanceHistoryEvents, params)
}

impl Client {
    /// All events that are still to come or under way, over all pages.
    ///
    /// # Errors
    /// The first page's that fails: a part is never passed off as the whole.
    pub async fn describe_open_instance_events(
        &self,
    ) -> Result<Vec<InstanceEventItem>, CloudError> {
        let mut all = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let request =
                describe_instance_history_events_request(self.region_id(), &OPEN_STATES, &token);
            let reply: DescribeInstanceHistoryEventsReply = self.send(&request).await?;
            all.extend(reply.instance_system_event_set.instance_system_event_type);
            if reply.next_token.is_empty() || reply.next_token == token {
                break;
            }
            token = reply.next_token;
        }
        Ok(all)
    }
}
