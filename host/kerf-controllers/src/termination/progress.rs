//! How far the end of a Node has come, written into its claim's conditions.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_api::condition::{Change, ConditionStatus};
use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};

use crate::clock;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::lifecycle::registration::since;
use crate::termination::node::deadline;

/// The claim that is going, if the Node has one.
#[derive(Debug)]
pub struct Progress<'a> {
    draft: Option<Draft>,
    /// Shared state of the process.
    pub context: &'a Context,
    /// When the drain must be over.
    pub deadline: Option<Timestamp>,
    now: Timestamp,
}

impl<'a> Progress<'a> {
    /// As it is now.
    #[must_use]
    pub fn new(claim: Option<&NodeClaim>, context: &'a Context) -> Self {
        let now = clock::now();
        Self {
            draft: claim.map(|claim| Draft::open(claim, now)),
            context,
            deadline: claim.and_then(deadline),
            now,
        }
    }

    /// Whether the drain must be over already.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.now > deadline)
    }

    /// How long the step has been as it is; no time where that is not known.
    #[must_use]
    pub fn since(&self, type_: &str) -> Duration {
        let found = self.draft.as_ref().and_then(|it| it.conditions.find(type_));
        found.map_or(Duration::ZERO, |it| {
            since(it.last_transition_time, self.now)
        })
    }

    /// Tells once on the Node that its time is limited.
    pub async fn tell_deadline(&self, node: &Node) {
        let Some(deadline) = self.deadline else {
            return;
        };
        let note = format!(
            "node {} is gone at {deadline} at the latest, with what is still on it",
            node.name_any()
        );
        self.context
            .events
            .warning(node, event::TERMINATION_GRACE_PERIOD_EXPIRING, &note)
            .await;
    }

    /// The step goes on, and the pass ends here.
    ///
    /// # Errors
    /// When the claim cannot be written.
    pub async fn waits(&mut self, type_: &str, reason: &str, message: &str) -> Result<(), Error> {
        self.set(&Change {
            type_,
            status: ConditionStatus::Unknown,
            reason,
            message,
        });
        self.write().await
    }

    /// The step is over. It is written with what follows in the same pass.
    pub fn done(&mut self, type_: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::True,
            reason: "",
            message: "",
        });
    }

    /// The step was broken off. It is written with what follows in the same pass.
    pub fn gave_up(&mut self, type_: &str, reason: &str, message: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::False,
            reason,
            message,
        });
    }

    fn set(&mut self, change: &Change<'_>) {
        if let Some(draft) = &mut self.draft {
            draft.conditions.set(change);
        }
    }

    /// Writes what differs.
    ///
    /// # Errors
    /// When the claim cannot be written.
    pub async fn write(&mut self) -> Result<(), Error> {
        let Some(draft) = &mut self.draft else {
            return Ok(());
        };
        match draft.write(&Api::all(self.context.client.clone())).await {
            // The claim's own reconcile writes it too; the next pass sees what it wrote.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            other => other,
        }
    }
}
