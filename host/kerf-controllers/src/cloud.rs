//! The cloud as reconcilers call it: each call is timed and counted under Karpenter's names.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_cloud::CloudError;
use kerf_cloud::provider::class::{NodeClassSpec, ResolveProblem, ResolvedNodeClass};
use kerf_cloud::provider::events::Announcement;
use kerf_cloud::provider::instance::{DeleteOutcome, Instance};
use kerf_cloud::provider::launch::{Attempt, GroupOutcome, LaunchOutcome, LaunchRequest, Resent};
use kerf_cloud::provider::prices::Quote;
use kerf_cloud::provider::unavailable::UnavailableOfferings;
use kerf_cloud::provider::{Provider, TypeList};
use kerf_cloud::rpc::ActionStats;
use kerf_core::instance_type::CapacityType;
use tokio::time::Instant;

use crate::metrics::cloud::{CallError, CloudMetrics};

/// The cloud, measured.
#[derive(Debug, Clone)]
pub struct Cloud {
    provider: Provider,
    metrics: CloudMetrics,
}

/// The cloud as one controller calls it.
#[derive(Debug)]
pub struct Calls<'a> {
    cloud: &'a Cloud,
    controller: &'static str,
}

impl Cloud {
    /// Makes no call.
    #[must_use]
    pub fn new(provider: Provider, metrics: CloudMetrics) -> Self {
        Self { provider, metrics }
    }

    /// For calls that count as those of this controller, by Karpenter's name for it where it has one.
    #[must_use]
    pub fn on(&self, controller: &'static str) -> Calls<'_> {
        Calls {
            cloud: self,
            controller,
        }
    }

    /// What requests have cost, by action.
    #[must_use]
    pub fn request_stats(&self) -> BTreeMap<&'static str, ActionStats> {
        self.provider.client().stats()
    }

    /// The marks that launch failures left.
    #[must_use]
    pub fn unavailable(&self) -> &UnavailableOfferings {
        self.provider.unavailable()
    }

    /// As [`Provider::publish_prices`].
    pub fn publish_prices(&self, is_round_over: bool) -> bool {
        self.provider.publish_prices(is_round_over)
    }

    /// As [`Provider::quotes`].
    #[must_use]
    pub fn quotes<'a>(
        &self,
        offerings: impl IntoIterator<Item = (&'a str, &'a str, CapacityType)>,
    ) -> Option<Vec<Quote>> {
        self.provider.quotes(offerings)
    }
}

impl Calls<'_> {
    // The answers of the cloud are large: boxed, they do not make every future that waits for one large.

    /// As [`Provider::resolve`].
    ///
    /// # Errors
    /// As there.
    pub async fn resolve(
        &self,
        class: &NodeClassSpec,
    ) -> Result<Arc<ResolvedNodeClass>, Vec<ResolveProblem>> {
        let call = Box::pin(self.cloud.provider.resolve(class));
        let not_ready = |it: &Result<_, _>| it.as_ref().err().map(|_| CallError::NodeClassNotReady);
        self.timed("Resolve", call, not_ready).await
    }

    /// As [`Provider::instance_types`].
    ///
    /// # Errors
    /// As there.
    pub async fn instance_types(&self, class: &ResolvedNodeClass) -> Result<TypeList, CloudError> {
        let call = Box::pin(self.cloud.provider.instance_types(class));
        self.timed("GetInstanceTypes", call, failed).await
    }

    /// As [`Provider::ask_price`].
    ///
    /// # Errors
    /// As there.
    pub async fn ask_price(&self, instance_type: &str, zone: &str) -> Result<bool, CloudError> {
        let call = Box::pin(self.cloud.provider.ask_price(instance_type, zone));
        self.timed("GetPrice", call, failed).await
    }

    /// As [`Provider::ask_spot_prices`].
    ///
    /// # Errors
    /// As there.
    pub async fn ask_spot_prices(&self, instance_type: &str) -> Result<bool, CloudError> {
        let call = Box::pin(self.cloud.provider.ask_spot_prices(instance_type));
        self.timed("GetSpotPrices", call, failed).await
    }

    /// As [`Provider::launch`].
    pub async fn launch<F, Fut>(&self, request: &LaunchRequest, record: F) -> LaunchOutcome
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        let call = Box::pin(self.cloud.provider.launch(request, record));
        self.timed("Create", call, not_launched).await
    }

    /// As [`Provider::launch_group`].
    pub async fn launch_group<F, Fut>(&self, request: &LaunchRequest, record: F) -> GroupOutcome
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        let call = Box::pin(self.cloud.provider.launch_group(request, record));
        let error = |outcome: &GroupOutcome| match outcome {
            GroupOutcome::Made(_) => None,
            GroupOutcome::Not(outcome) => not_launched(outcome),
        };
        self.timed("CreateGroup", call, error).await
    }

    /// As [`Provider::resend_group`].
    pub async fn resend_group(&self, request: &LaunchRequest, last: &Attempt) -> Resent {
        let call = Box::pin(self.cloud.provider.resend_group(request, last));
        let error = |outcome: &Resent| match outcome {
            Resent::Made(_) | Resent::Refused | Resent::Changed => None,
            Resent::Not(outcome) => not_launched(outcome),
        };
        self.timed("CreateGroup", call, error).await
    }

    /// As [`Provider::group_members`].
    ///
    /// # Errors
    /// As there.
    pub async fn group_members(&self, group: &str) -> Result<Vec<Instance>, CloudError> {
        let call = Box::pin(self.cloud.provider.group_members(group));
        self.timed("List", call, failed).await
    }

    /// As [`Provider::identify`].
    pub async fn identify(
        &self,
        request: &LaunchRequest,
        last: &Attempt,
        instance: Instance,
    ) -> Option<LaunchOutcome> {
        let call = self.cloud.provider.identify(request, last, instance);
        Box::pin(call).await
    }

    /// As [`Provider::tag`].
    ///
    /// # Errors
    /// As there.
    pub async fn tag(&self, id: &str, tags: &[(String, String)]) -> Result<(), CloudError> {
        let call = Box::pin(self.cloud.provider.tag(id, tags));
        self.timed("Tag", call, failed).await
    }

    /// As [`Provider::describe`].
    ///
    /// # Errors
    /// As there.
    pub async fn describe(&self, ids: &[String]) -> Result<Vec<Instance>, CloudError> {
        let call = Box::pin(self.cloud.provider.describe(ids));
        let error = |found: &Result<Vec<Instance>, CloudError>| match found {
            Ok(found) if found.is_empty() => Some(CallError::NotFound),
            other => failed(other),
        };
        self.timed("Get", call, error).await
    }

    /// As [`Provider::find_by_tags`].
    ///
    /// # Errors
    /// As there.
    pub async fn find_by_tags(&self, tags: &[(&str, &str)]) -> Result<Vec<Instance>, CloudError> {
        let call = Box::pin(self.cloud.provider.find_by_tags(tags));
        self.timed("List", call, failed).await
    }

    /// As [`Provider::list_ours`].
    ///
    /// # Errors
    /// As there.
    pub async fn list_ours(&self) -> Result<Vec<Instance>, CloudError> {
        let call = Box::pin(self.cloud.provider.list_ours());
        self.timed("List", call, failed).await
    }

    /// As [`Provider::recycled`].
    ///
    /// # Errors
    /// As there.
    pub async fn recycled(&self) -> Result<Vec<Instance>, CloudError> {
        let call = Box::pin(self.cloud.provider.recycled());
        self.timed("ListRecycled", call, failed).await
    }

    /// As [`Provider::announcements`].
    ///
    /// # Errors
    /// As there.
    pub async fn announcements(&self) -> Result<Vec<Announcement>, CloudError> {
        let call = Box::pin(self.cloud.provider.announcements());
        self.timed("ListAnnouncements", call, failed).await
    }

    /// As [`Provider::delete`].
    pub async fn delete(&self, ids: &[String]) -> Vec<(String, DeleteOutcome)> {
        let call = Box::pin(self.cloud.provider.delete(ids));
        self.timed("Delete", call, not_deleted).await
    }

    async fn timed<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = T>,
        error: impl FnOnce(&T) -> Option<CallError>,
    ) -> T {
        let started = Instant::now();
        let answer = call.await;
        let seconds = started.elapsed().as_secs_f64();
        let error = error(&answer);
        let metrics = &self.cloud.metrics;
        metrics.called(self.controller, method, seconds, error);
        answer
    }
}

fn failed<T>(answer: &Result<T, CloudError>) -> Option<CallError> {
    answer.as_ref().err().map(|_| CallError::Other)
}

fn not_launched(outcome: &LaunchOutcome) -> Option<CallError> {
    match outcome {
        LaunchOutcome::Launched(_) => None,
        LaunchOutcome::InsufficientCapacity { .. } => Some(CallError::InsufficientCapacity),
        LaunchOutcome::NotReady { .. } => Some(CallError::NodeClassNotReady),
        LaunchOutcome::Retry { .. } => Some(CallError::Other),
    }
}

/// The worst of the outcomes.
fn not_deleted(outcomes: &Vec<(String, DeleteOutcome)>) -> Option<CallError> {
    let mut found = None;
    for (_, outcome) in outcomes {
        match outcome {
            DeleteOutcome::Accepted | DeleteOutcome::Requeue => {}
            DeleteOutcome::Gone => found = found.or(Some(CallError::NotFound)),
            DeleteOutcome::Refused(_) | DeleteOutcome::Failed(_) => return Some(CallError::Other),
        }
    }
    found
}
