//! One call for many claims of one shape: whatever it made is handed out in the order of the ids.
//!
//! The instances are alike, so that any of them will do for any claim of the group; which is whose is the caller's to
//! write down. Less than was asked for is a success too: `MinAmount` is 1.

use std::collections::BTreeMap;

use crate::error::{CloudError, ErrorClass, QuotaScope};
use crate::provider::Inner;
use crate::provider::class::VSwitch;
use crate::provider::instance::Instance;
use crate::provider::launch::walk::{
    RETRY_PAUSE, Step, TOKEN_TRUST, Target, VISIBLE_POLL, VISIBLE_WAIT, Walk, is_ending,
    is_instance_of, is_of,
};
use crate::provider::launch::{
    Attempt, GroupOutcome, LaunchOutcome, LaunchRequest, Launched, Member, Resent,
};
use crate::provider::tags;

/// Launches up to `request.amount` instances by as few calls as it takes.
pub(crate) async fn launch_group<F, Fut>(
    inner: &Inner,
    request: &LaunchRequest,
    mut record: F,
) -> GroupOutcome
where
    F: FnMut(Attempt) -> Fut + Send,
    Fut: Future<Output = Result<(), String>> + Send,
{
    let mut walk = Walk::new(inner, request);
    for offering in &request.offerings {
        match walk.try_offering(offering, &mut record).await {
            Step::Made => return GroupOutcome::Made(walk.made),
            Step::Done(outcome) => return GroupOutcome::Not(outcome),
            Step::Next => {}
        }
    }
    GroupOutcome::Not(walk.exhausted())
}

/// Sends a stored attempt of a group once more: the token makes it the same call, and the answer the same ids.
pub(crate) async fn resend_group(inner: &Inner, request: &LaunchRequest, last: &Attempt) -> Resent {
    let mut walk = Walk::new(inner, request);
    let age = inner.client.now().duration_since(last.at);
    let offering = request.offerings.iter().find(|it| is_of(it, last));
    let Some(offering) = offering.filter(|_| age < TOKEN_TRUST) else {
        return Resent::Changed;
    };
    let sent = walk.send_again(offering, last, last.amount).await;
    sent.map_or_else(|resent| resent, |(_, ids)| Resent::Made(ids))
}

/// What an instance of the group is for one of its claims; none when it is nothing that the claim may be.
pub(crate) async fn identify(
    inner: &Inner,
    request: &LaunchRequest,
    last: &Attempt,
    instance: Instance,
) -> Option<LaunchOutcome> {
    let walk = Walk::new(inner, request);
    match walk.allows(&instance, last) {
        true => Some(walk.adopted(instance).await),
        false => None,
    }
}

/// All instances that carry the group's tag and are not about to end, in the order of their ids.
pub(crate) async fn members_of(inner: &Inner, group: &str) -> Result<Vec<Instance>, CloudError> {
    let tags = [
        (tags::CLUSTER, inner.config.cluster.as_str()),
        (tags::LAUNCH_GROUP, group),
    ];
    let found = inner.describer.by_tags(&tags).await?;
    let live = found.into_iter().filter(|it| !is_ending(&it.status));
    Ok(live.collect())
}

impl Walk<'_> {
    /// Waits until the instances show, and sees that each is what was asked for; those that are not go.
    pub(super) async fn settle_group(&mut self, target: &Target<'_>, ids: &[String]) -> Step {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        if ids.is_empty() {
            let message = "RunInstances made no instance and gave no reason".to_owned();
            return Step::Done(LaunchOutcome::Retry {
                after: RETRY_PAUSE,
                message,
            });
        }
        let shown = self.wait_until_all_visible(&ids).await;
        let mut wrong = Vec::new();
        let mut made = Vec::new();
        for id in ids {
            match shown.get(&id) {
                Some(instance) if !is_instance_of(instance, target.offering) => wrong.push(id),
                shown => made.push(Member {
                    launched: shown.map(|instance| Launched {
                        instance: instance.clone(),
                        architecture: target.facts.architecture,
                        max_pods: target.node.max_pods,
                        is_adopted: false,
                    }),
                    instance_id: id,
                }),
            }
        }
        if !wrong.is_empty() {
            tracing::error!(instances = ?wrong, "the cloud made other instances than were asked for; they are deleted");
            self.inner.discard(&wrong).await;
        }
        self.made = made;
        Step::Made
    }

    async fn wait_until_all_visible(&self, ids: &[String]) -> BTreeMap<String, Instance> {
        let deadline = tokio::time::Instant::now() + VISIBLE_WAIT;
        let mut shown = BTreeMap::new();
        loop {
            let missing = ids.iter().filter(|id| !shown.contains_key(*id)).cloned();
            let missing: Vec<String> = missing.collect();
            if missing.is_empty() || tokio::time::Instant::now() >= deadline {
                return shown;
            }
            if let Ok(found) = self.inner.describer.by_ids(&missing).await {
                shown.extend(found.into_iter().map(|it| (it.id.clone(), it)));
            }
            tokio::time::sleep(VISIBLE_POLL).await;
        }
    }

    /// What a call for that vSwitch asks for: no more than it has addresses for.
    pub(super) fn amount_in(&self, vswitch: &VSwitch, node_ips: u64) -> u32 {
        let nodes = self.inner.in_flight.free(vswitch) / node_ips.max(1);
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        self.amount.min(nodes.max(1))
    }

    /// A quota is asked for the whole amount. Half of it may do, down to one.
    pub(super) fn halves(&mut self, error: &CloudError) -> bool {
        let is_quota = matches!(
            error.class(),
            ErrorClass::Quota(QuotaScope::Family | QuotaScope::Account)
        );
        let halves = is_quota && !error.is_outcome_unknown() && self.amount > 1;
        if halves {
            self.amount /= 2;
        }
        halves
    }
}
