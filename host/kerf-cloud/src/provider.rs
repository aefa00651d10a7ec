//! What the controllers call: resolve a node class, list its instance types, launch, describe and delete.
//!
//! Everything here may hang, fail, lie or succeed without telling, so each method says what is known for sure when it
//! returns. A [`Provider`] is cheap to clone and holds only caches: a restart loses nothing but warmth.

pub mod bootstrap;
pub mod class;
pub mod config;
pub mod instance;
pub mod launch;
pub mod tags;

use std::sync::Arc;

use kerf_core::instance_type::InstanceType;

use crate::error::CloudError;
use crate::provider::class::{NodeClassSpec, ResolveProblem, ResolvedNodeClass};
use crate::provider::config::ProviderConfig;
use crate::provider::instance::{DeleteOutcome, Instance};
use crate::provider::launch::{Attempt, LaunchOutcome, LaunchRequest};
use crate::rpc::Client;

/// The cloud as kerf uses it.
#[derive(Debug, Clone)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    config: ProviderConfig,
}

impl Provider {
    /// Makes no call.
    #[must_use]
    pub fn new(client: Client, config: ProviderConfig) -> Self {
        Self {
            inner: Arc::new(Inner { client, config }),
        }
    }

    /// Finds what the class's selectors mean right now; cached for `resolve_ttl`.
    ///
    /// # Errors
    /// One problem per selector term that found nothing, and one per kind that could not be asked.
    pub async fn resolve(
        &self,
        class: &NodeClassSpec,
    ) -> Result<Arc<ResolvedNodeClass>, Vec<ResolveProblem>> {
        let _ = class;
        Err(Vec::new())
    }

    /// Every instance type that the region knows, with its offerings for this class, in name order.
    ///
    /// # Errors
    /// When the type list was never read and cannot be read now.
    pub async fn instance_types(
        &self,
        class: &ResolvedNodeClass,
    ) -> Result<Vec<InstanceType>, CloudError> {
        let _ = (class, &self.inner.client);
        Ok(Vec::new())
    }

    /// Launches one instance for one claim, or finds the one that an earlier call made.
    ///
    /// `record` stores the attempt in the claim; the call is only sent after it returned `Ok`.
    pub async fn launch<F, Fut>(&self, request: &LaunchRequest, record: F) -> LaunchOutcome
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        let _ = (request, record);
        LaunchOutcome::InsufficientCapacity {
            offerings: Vec::new(),
        }
    }

    /// The instances with these ids that exist; one that is missing in the answer may be gone or not visible yet.
    ///
    /// # Errors
    /// When any page could not be read: a part is never passed off as the whole.
    pub async fn describe(&self, instance_ids: &[String]) -> Result<Vec<Instance>, CloudError> {
        let _ = instance_ids;
        Ok(Vec::new())
    }

    /// The instances that carry all these tags.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn find_by_tags(&self, tags: &[(&str, &str)]) -> Result<Vec<Instance>, CloudError> {
        let _ = tags;
        Ok(Vec::new())
    }

    /// Every instance that kerf made for this cluster.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn list_ours(&self) -> Result<Vec<Instance>, CloudError> {
        self.find_by_tags(&[
            (tags::MANAGED_BY, tags::MANAGED_BY_KERF),
            (tags::CLUSTER, &self.inner.config.cluster),
        ])
        .await
    }

    /// Deletes the instances; one outcome per id, in the order given. Safe to repeat.
    pub async fn delete(&self, instance_ids: &[String]) -> Vec<(String, DeleteOutcome)> {
        let _ = instance_ids;
        Vec::new()
    }

    /// Adds or overwrites tags on one instance.
    ///
    /// # Errors
    /// When the call failed.
    pub async fn tag(
        &self,
        instance_id: &str,
        tags: &[(String, String)],
    ) -> Result<(), CloudError> {
        let _ = (instance_id, tags);
        Ok(())
    }
}
