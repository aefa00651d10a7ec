//! What the platform announces about machines: events that are listed, a lock, a condition on the Node.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::clock;

/// An entry of DescribeInstanceHistoryEvents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Announced {
    /// The same id again is the same event in another state.
    pub event_id: String,
    /// It need not be one that exists.
    pub instance_id: String,
    /// Such as `SystemMaintenance.Reboot`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// `Scheduled`, `Inquiring`, `Executing`, `Executed`, `Avoided`, `Failed` or `Canceled`.
    pub state: String,
    /// When it is carried out, in RFC 3339; empty for at once.
    #[serde(default)]
    pub not_before: String,
}

impl Announced {
    pub(crate) fn describe(&self) -> Value {
        json!({
            "EventId": self.event_id,
            "InstanceId": self.instance_id,
            "ResourceType": "instance",
            "EventType": {"Code": 0, "Name": self.event_type},
            "EventCycleStatus": {"Code": 0, "Name": self.state},
            "NotBefore": self.not_before,
            "EventPublishTime": "2026-01-01T00:00:00Z",
            "Reason": "simulated",
            "ImpactLevel": "100",
        })
    }
}

/// How a machine's owner can learn that it is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// `OperationLocks: Recycling` in DescribeInstances.
    Lock,
    /// An entry of DescribeInstanceHistoryEvents.
    Event,
    /// The condition `InstanceExpired` on the Node, as ACK's node problem detector writes it.
    Condition,
}

impl Notice {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "lock" => Some(Self::Lock),
            "event" => Some(Self::Event),
            "condition" => Some(Self::Condition),
            _ => None,
        }
    }
}

impl App {
    /// Adds an event, or moves one that is there on.
    pub(crate) fn announce(&self, event: Announced) {
        let mut state = self.state();
        state.events.retain(|it| it.event_id != event.event_id);
        state.events.push(event);
    }

    /// Announces in one way that a machine is taken back, and takes it back after a while. False where there is none.
    pub(crate) fn interrupt(self: &Arc<Self>, id: &str, after: Duration, notice: Notice) -> bool {
        let is_there = |app: &Self| {
            let state = app.state();
            let found = state.instances.get(id);
            found.is_some_and(|it| it.deleted_at.is_none())
        };
        if !is_there(self) {
            return false;
        }
        self.give(id, after, notice);
        let (app, id) = (Arc::clone(self), id.to_owned());
        self.tasks.spawn(async move {
            tokio::time::sleep(after).await;
            app.state().delete_instance(&id, clock::now());
            app.start_effects();
        });
        true
    }

    fn give(self: &Arc<Self>, id: &str, after: Duration, notice: Notice) {
        match notice {
            Notice::Lock => {
                if let Some(instance) = self.state().instances.get_mut(id) {
                    instance.recycling = true;
                }
            }
            Notice::Event => {
                let after = jiff::SignedDuration::try_from(after).unwrap_or_default();
                let at = clock::now().saturating_add(after).unwrap_or_default();
                self.announce(Announced {
                    event_id: format!("e-{id}"),
                    instance_id: id.to_owned(),
                    event_type: "Instance:PreemptibleInstanceInterruption".to_owned(),
                    state: "Executing".to_owned(),
                    not_before: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                });
            }
            Notice::Condition => {
                let (app, id) = (Arc::clone(self), id.to_owned());
                self.tasks.spawn(async move { app.tell_node(&id).await });
            }
        }
    }

    async fn tell_node(&self, id: &str) {
        let found = self.state().instances.get(id).cloned();
        let node = found.and_then(|it| it.node_name);
        let (Some(kubelet), Some(node)) = (&self.machine_room.kubelet, node) else {
            return;
        };
        let since = clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = json!({
            "type": "InstanceExpired", "status": "True", "reason": "InstanceToBeTerminated",
            "message": "the spot instance is released soon", "lastTransitionTime": since, "lastHeartbeatTime": since,
        });
        if let Err(error) = kubelet.set_condition(&node, condition).await {
            tracing::warn!(%node, %error, "write a condition");
        }
    }
}
