//! A NodeClaim under work: what was read, what it should become, and one write at the end.

use jiff::Timestamp;
use kerf_api::condition::Conditions;
use kerf_api::nodeclaim::{NodeClaim, NodeClaimStatus};
use kube::{Api, ResourceExt};

use crate::error::Error;
use crate::events::created_at;
use crate::patch;

/// A NodeClaim with its conditions open for change.
#[derive(Debug, Clone)]
pub struct Draft {
    before: NodeClaim,
    /// What it becomes; its conditions are in [`Self::conditions`] until the write.
    pub claim: NodeClaim,
    /// Its conditions.
    pub conditions: Conditions,
    /// The time that this pass decides by.
    pub now: Timestamp,
}

impl Draft {
    /// Opens a claim as it was read.
    #[must_use]
    pub fn open(claim: &NodeClaim, now: Timestamp) -> Self {
        let generation = claim.metadata.generation.unwrap_or_default();
        let conditions = Conditions::open(
            NodeClaim::CONDITIONS,
            claim.conditions(),
            generation,
            created_at(claim),
            now,
        );
        Self {
            before: claim.clone(),
            claim: claim.clone(),
            conditions,
            now,
        }
    }

    /// The status, made when there is none.
    pub fn status_mut(&mut self) -> &mut NodeClaimStatus {
        self.claim.status.get_or_insert_default()
    }

    /// The claim's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.claim.name_any()
    }

    /// Writes what differs beside the status, which stays to be written: a note that must be there before a call is made.
    ///
    /// # Errors
    /// As [`patch::write`].
    pub async fn note(&mut self, api: &Api<NodeClaim>) -> Result<(), Error> {
        let mut noted = self.claim.clone();
        noted.status.clone_from(&self.before.status);
        self.before = patch::write(api, &self.before, &noted).await?;
        self.claim.metadata.clone_from(&self.before.metadata);
        Ok(())
    }

    /// Writes what differs and goes on from what the API server has now.
    ///
    /// # Errors
    /// As [`patch::write`].
    pub async fn write(&mut self, api: &Api<NodeClaim>) -> Result<(), Error> {
        let conditions = self.conditions.clone().finish();
        self.status_mut().conditions = conditions;
        let written = patch::write(api, &self.before, &self.claim).await?;
        *self = Self::open(&written, self.now);
        Ok(())
    }
}
