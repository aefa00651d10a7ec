//! DescribeInstances for many callers at once: ids that are asked for within a moment share a call.
//!
//! The call is a shared future that every caller polls, so one that goes away takes nothing from the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::actions::instances::{INSTANCES_PER_CALL_MAX, InstanceFilter, InstanceItem};
use crate::error::CloudError;
use crate::provider::gathering::Gathering;
use crate::provider::instance::{Instance, InstanceStatus, RECYCLING, capacity_type_of};
use crate::rpc::Client;

/// How long a call waits for others to join it.
const WINDOW: Duration = Duration::from_millis(50);

type Answer = Result<Arc<Vec<InstanceItem>>, CloudError>;

/// A call that is still open for more ids, or under way.
#[derive(Clone)]
struct Batch {
    ids: Gathering,
    answer: Shared<BoxFuture<'static, Answer>>,
}

/// Merges lookups by id.
pub(crate) struct Describer {
    client: Client,
    open: Mutex<Option<Batch>>,
}

impl std::fmt::Debug for Describer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Describer")
    }
}

impl Describer {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            open: Mutex::default(),
        }
    }

    /// The instances with these ids that the API shows, in id order.
    pub(crate) async fn by_ids(&self, ids: &[String]) -> Result<Vec<Instance>, CloudError> {
        let mut found = Vec::new();
        for chunk in ids.chunks(INSTANCES_PER_CALL_MAX) {
            let answer = self.join(chunk).await?;
            let wanted: BTreeSet<_> = chunk.iter().map(String::as_str).collect();
            let ours = answer
                .iter()
                .filter(|item| wanted.contains(item.instance_id.as_str()));
            found.extend(ours.map(instance));
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }

    /// The instances with all these tags, in id order.
    pub(crate) async fn by_tags(&self, tags: &[(&str, &str)]) -> Result<Vec<Instance>, CloudError> {
        let owned = tags
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let filter = InstanceFilter {
            tags: owned.collect(),
            ..InstanceFilter::default()
        };
        let items = self.client.describe_instances(&filter).await?;
        let mut found: Vec<_> = items.iter().map(instance).collect();
        // The filter is not trusted: what these tags do not prove to be ours must never look so.
        found.retain(|instance| instance.has_tags(tags));
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }

    /// The instances that are locked because the market takes them back, in id order.
    pub(crate) async fn recycled(&self) -> Result<Vec<Instance>, CloudError> {
        let filter = InstanceFilter {
            lock_reason: RECYCLING.to_owned(),
            ..InstanceFilter::default()
        };
        let items = self.client.describe_instances(&filter).await?;
        let mut found: Vec<_> = items.iter().map(instance).collect();
        // The filter is not trusted: an instance without the lock must never look as if it had to go.
        found.retain(Instance::is_being_recycled);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }

    fn join(&self, ids: &[String]) -> Shared<BoxFuture<'static, Answer>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = open.as_ref()
            && batch.ids.accept(ids)
        {
            return batch.answer.clone();
        }
        let batch = Batch::start(self.client.clone(), ids);
        *open = Some(batch.clone());
        batch.answer
    }
}

impl Batch {
    fn start(client: Client, ids: &[String]) -> Self {
        let ids = Gathering::of(ids);
        let taken = ids.clone();
        let answer = async move {
            tokio::time::sleep(WINDOW).await;
            let filter = InstanceFilter {
                ids: taken.take(),
                ..InstanceFilter::default()
            };
            client.describe_instances(&filter).await.map(Arc::new)
        };
        Self {
            ids,
            answer: answer.boxed().shared(),
        }
    }
}

fn instance(item: &InstanceItem) -> Instance {
    let tags = item
        .tags
        .tag
        .iter()
        .map(|tag| (tag.tag_key.clone(), tag.tag_value.clone()));
    Instance {
        id: item.instance_id.clone(),
        region_id: item.region_id.clone(),
        zone_id: item.zone_id.clone(),
        instance_type: item.instance_type.clone(),
        image_id: item.image_id.clone(),
        capacity_type: capacity_type_of(&item.spot_strategy),
        status: InstanceStatus::parse(&item.status),
        vswitch_id: item.vpc_attributes.vswitch_id.clone(),
        security_group_ids: item.security_group_ids.security_group_id.clone(),
        private_ips: item.vpc_attributes.private_ip_address.ip_address.clone(),
        tags: tags.collect(),
        created_at: parse_time(&item.creation_time),
        locks: item
            .operation_locks
            .lock_reason
            .iter()
            .map(|it| it.lock_reason.clone())
            .collect(),
    }
}

/// `2026-01-02T03:04Z`: no seconds, which stricter parsers refuse.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let minutes = DateTime::strptime("%Y-%m-%dT%H:%MZ", text).ok()?;
    minutes
        .to_zoned(TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_times_come_without_seconds() {
        let expected: Timestamp = "2026-01-02T03:04:00Z".parse().unwrap();

        assert_eq!(parse_time("2026-01-02T03:04Z"), Some(expected));
        assert_eq!(parse_time("2026-01-02T03:04:00Z"), Some(expected));
        assert_eq!(parse_time(""), None);
    }
}
