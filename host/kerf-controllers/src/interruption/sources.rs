//! Who announces interruptions: a lock that ECS shows, system events of ECS, and conditions of Nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_cloud::CloudError;
use kerf_cloud::provider::events::{Announcement, AnnouncementKind};
use kerf_cloud::provider::instance::{CapacityType, RECYCLING, parse_provider_id};
use kerf_core::labels;
use kube::ResourceExt;

use crate::context::Context;
use crate::error::chain;
use crate::interruption::notice::{Kind, Notice, RECLAIM_NOTICE, Source};

/// The name in metrics.
const CONTROLLER: &str = "interruption";

/// What ACK's node problem detector writes on a spot node whose instance metadata says that it goes.
const EXPIRED: &str = "InstanceExpired";
/// Where it is true, in the text of a Node: a node problem detector writes the condition on every Node, mostly as false.
pub(crate) const IS_EXPIRED: &str = "\"status\":\"True\",\"type\":\"InstanceExpired\"";

/// One instance that something was announced for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `i-…`; it need not be ours.
    pub instance_id: String,
    /// What is announced.
    pub kind: Kind,
    /// Who said so.
    pub source: Source,
    /// The source's own word.
    pub word: String,
    /// When it comes, where that is said.
    pub at: Option<Timestamp>,
}

impl Finding {
    /// The notice, for one who learns of it now. Maintenance whose time is not said or has come is as good as a failure: it
    /// may begin at any moment.
    #[must_use]
    pub fn notice(&self, now: Timestamp) -> Notice {
        let ahead = self.at.filter(|at| *at > now);
        let kind = match self.kind {
            Kind::Maintenance if ahead.is_none() => Kind::Failure,
            kind => kind,
        };
        let ends_at = ahead.or_else(|| now.checked_add(RECLAIM_NOTICE).ok());
        Notice {
            kind,
            source: self.source,
            word: self.word.clone(),
            noticed_at: now,
            ends_at: ends_at.unwrap_or(now),
        }
    }
}

/// What was said of each source that cannot be asked; it is said again when it is something else.
#[derive(Debug, Default)]
pub struct Told(BTreeMap<Source, String>);

impl Told {
    fn failed(&mut self, source: Source, error: &CloudError) {
        let message = chain(error);
        let class = error.code().unwrap_or(&message).to_owned();
        if self.0.get(&source) != Some(&class) {
            tracing::warn!(source = source.as_str(), %message, "interruptions are not announced by this source while it cannot be asked; the others are not affected");
            self.0.insert(source, class);
        }
    }

    fn answered(&mut self, source: Source) {
        if self.0.remove(&source).is_some() {
            tracing::info!(source = source.as_str(), "the source answers again");
        }
    }
}

/// What a source of the cloud announces; none when it cannot be asked, which proves nothing.
pub async fn ask(source: Source, told: &mut Told, context: &Context) -> Option<Vec<Finding>> {
    let found = match source {
        Source::Lock => lock(context).await,
        Source::Events => events(context).await,
        Source::Conditions => return Some(conditions(context)),
    };
    match found {
        Ok(found) => {
            told.answered(source);
            Some(found)
        }
        Err(error) => {
            told.failed(source, &error);
            None
        }
    }
}

async fn lock(context: &Context) -> Result<Vec<Finding>, CloudError> {
    let locked = context.cloud.on(CONTROLLER).recycled().await?;
    let findings = locked.into_iter().map(|instance| Finding {
        instance_id: instance.id,
        kind: Kind::Reclaim,
        source: Source::Lock,
        word: RECYCLING.to_owned(),
        at: None,
    });
    Ok(findings.collect())
}

async fn events(context: &Context) -> Result<Vec<Finding>, CloudError> {
    let announced = context.cloud.on(CONTROLLER).announcements().await?;
    Ok(announced.into_iter().filter_map(of_event).collect())
}

/// An account that owes loses every instance: replacing one by another would help nobody.
fn of_event(event: Announcement) -> Option<Finding> {
    let kind = match event.kind {
        AnnouncementKind::Reclaim => Kind::Reclaim,
        AnnouncementKind::Failure => Kind::Failure,
        AnnouncementKind::Maintenance => Kind::Maintenance,
        AnnouncementKind::Account => {
            tracing::error!(instance = %event.instance_id, event = %event.event_type, "the account owes: its instances stop");
            return None;
        }
    };
    Some(Finding {
        instance_id: event.instance_id,
        kind,
        source: Source::Events,
        word: event.event_type,
        at: event.not_before,
    })
}

/// What the conditions of Nodes announce.
#[must_use]
pub fn conditions(context: &Context) -> Vec<Finding> {
    let nodes = context.stores.nodes.iter_saying(&[IS_EXPIRED]);
    nodes.filter_map(|node| of_node(&node)).collect()
}

/// Pure.
fn of_node(node: &Node) -> Option<Finding> {
    let is_spot = node.labels().get(labels::CAPACITY_TYPE).map(String::as_str)
        == Some(CapacityType::Spot.as_str());
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let is_expired = conditions
        .iter()
        .any(|it| it.type_ == EXPIRED && it.status == "True");
    if !is_spot || !is_expired {
        return None;
    }
    let (_, id) = parse_provider_id(node.spec.as_ref()?.provider_id.as_deref()?)?;
    Some(Finding {
        instance_id: id.to_owned(),
        kind: Kind::Reclaim,
        source: Source::Conditions,
        word: EXPIRED.to_owned(),
        at: None,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn finding(kind: Kind, at: Option<i64>) -> Finding {
        Finding {
            instance_id: "i-1".to_owned(),
            kind,
            source: Source::Events,
            word: String::new(),
            at: at.map(|at| Timestamp::from_second(at).unwrap()),
        }
    }

    #[test]
    fn maintenance_that_may_begin_at_any_moment_is_as_urgent_as_a_failure() {
        let now = Timestamp::from_second(100).unwrap();
        for (given, kind, ends) in [
            (
                finding(Kind::Maintenance, Some(9000)),
                Kind::Maintenance,
                9000,
            ),
            (finding(Kind::Maintenance, Some(50)), Kind::Failure, 400),
            (finding(Kind::Maintenance, None), Kind::Failure, 400),
            (finding(Kind::Reclaim, Some(160)), Kind::Reclaim, 160),
        ] {
            let notice = given.notice(now);

            assert_eq!((notice.kind, notice.ends_at.as_second()), (kind, ends));
        }
    }

    fn node(capacity_type: &str, status: &str) -> Node {
        let mut node = Node::default();
        node.labels_mut()
            .insert(labels::CAPACITY_TYPE.to_owned(), capacity_type.to_owned());
        node.spec.get_or_insert_default().provider_id = Some("cn-hangzhou.i-1".to_owned());
        node.status = Some(NodeStatus {
            conditions: Some(vec![NodeCondition {
                type_: EXPIRED.to_owned(),
                status: status.to_owned(),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        });
        node
    }

    #[test]
    fn a_node_says_in_its_text_that_the_condition_is_true() {
        for (status, expected) in [("True", true), ("False", false)] {
            let mut node = node("spot", status);
            let conditions = node.status.iter_mut().flat_map(|it| &mut it.conditions);
            for condition in conditions.flatten() {
                condition.reason = Some("InstanceToBeTerminated".to_owned());
                condition.message = Some("soon".to_owned());
                condition.last_heartbeat_time = Some(Time(Timestamp::UNIX_EPOCH));
                condition.last_transition_time = Some(Time(Timestamp::UNIX_EPOCH));
            }
            let text = serde_json::to_string(&node).unwrap();

            assert_eq!(text.contains(IS_EXPIRED), expected, "{text}");
        }
    }

    #[test]
    fn the_condition_counts_on_spot_nodes_and_only_when_it_is_true() {
        assert!(of_node(&node("spot", "True")).is_some());
        assert!(of_node(&node("spot", "False")).is_none());
        assert!(of_node(&node("on-demand", "True")).is_none());
    }
}
