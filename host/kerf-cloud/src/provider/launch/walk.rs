//! The walk down the offerings, and the look at what an earlier walk left behind.

use std::time::Duration;

use jiff::SignedDuration;

use crate::error::{CloudError, ErrorClass};
use crate::provider::Inner;
use crate::provider::bootstrap::UserData;
use crate::provider::capacity::NodeCapacity;
use crate::provider::class::{Image, VSwitch};
use crate::provider::config::CniMode;
use crate::provider::facts::TypeFacts;
use crate::provider::instance::{Instance, InstanceStatus};
use crate::provider::launch::params::{Call, DiskChoice};
use crate::provider::launch::user_data::{Machine, user_data};
use crate::provider::launch::verdict::{Verdict, verdict};
use crate::provider::launch::{
    Attempt, LaunchOffering, LaunchOutcome, LaunchRequest, Launched, Member, NotReadyReason,
    OfferingFailure, Resent,
};
use crate::provider::tags;
use crate::provider::unavailable::OfferingKey;

/// How long one launch waits for its instance to show; after that the next call finds it by its tags.
pub(super) const VISIBLE_WAIT: Duration = Duration::from_secs(10);
pub(super) const VISIBLE_POLL: Duration = Duration::from_millis(500);
/// Before a launch that is not decided is looked into again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Before a lost instance is looked for again whose call is refused now: each look is a RunInstances call too.
const UNSEEN_PAUSE: Duration = Duration::from_secs(10);
/// How long a client token is relied on. Its life is not published; the tags decide after this.
pub(super) const TOKEN_TRUST: SignedDuration = SignedDuration::from_hours(1);
/// Addresses that a new node takes: its own, and with Terway a first pool for its pods.
const NODE_IPS: u64 = 1;
const TERWAY_NODE_IPS: u64 = 6;

/// How a step ended.
pub(super) enum Step {
    Done(LaunchOutcome),
    /// A group has what [`Walk::made`] says.
    Made,
    /// On to the next offering.
    Next,
}

/// One launch under way.
pub(super) struct Walk<'a> {
    pub(super) inner: &'a Inner,
    request: &'a LaunchRequest,
    failures: Vec<OfferingFailure>,
    number: u32,
    /// What the next call asks for.
    pub(super) amount: u32,
    /// What a group's call made.
    pub(super) made: Vec<Member>,
}

/// Places in the lists of disk categories that are tried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Disks {
    system: usize,
    data: usize,
}

impl Disks {
    /// What to try after a refusal: the next category of the disks that it speaks of, if there is one.
    fn next(self, refusal: &CloudError, request: &LaunchRequest) -> Option<Self> {
        let class = &request.class.spec;
        let of_data = class.data_disks.iter().map(|it| it.categories.len()).max();
        let is_about_data = refusal.code().is_some_and(|it| it.contains("DataDisk"));
        let (next, count) = if is_about_data {
            let data = self.data + 1;
            (Self { data, ..self }, of_data.unwrap_or_default())
        } else {
            let system = self.system + 1;
            (Self { system, ..self }, class.system_disk.categories.len())
        };
        let place = if is_about_data {
            next.data
        } else {
            next.system
        };
        (place < count).then_some(next)
    }
}

/// What all calls for one offering share.
pub(super) struct Target<'a> {
    pub(super) offering: &'a LaunchOffering,
    pub(super) facts: TypeFacts,
    image: &'a Image,
    pub(super) node: NodeCapacity,
    user_data: UserData,
    node_ips: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(inner: &'a Inner, request: &'a LaunchRequest) -> Self {
        let number = request.last_attempt.as_ref().map_or(0, |last| last.number);
        Self {
            inner,
            request,
            failures: Vec::new(),
            number,
            amount: request.amount.max(1),
            made: Vec::new(),
        }
    }

    /// What came of an attempt that was made before; [`Step::Next`] if nothing did and the walk goes on.
    pub(super) async fn resume(&mut self, last: &Attempt) -> Step {
        let tags = [
            (tags::CLUSTER, self.inner.config.cluster.as_str()),
            (tags::LAUNCH_GROUP, self.request.group.as_str()),
        ];
        let found = match self.inner.describer.by_tags(&tags).await {
            Ok(found) => found,
            Err(error) => return retry(RETRY_PAUSE, &error),
        };
        let live = found.into_iter().filter(|it| !is_ending(&it.status));
        let live: Vec<_> = live.collect();
        if !live.is_empty()
            && let Some(step) = self.adopt(&live, last).await
        {
            return step;
        }
        let age = self.inner.client.now().duration_since(last.at);
        let lag =
            SignedDuration::try_from(self.inner.config.visibility_lag * 2).unwrap_or(TOKEN_TRUST);
        let again = self.request.offerings.iter().find(|it| is_of(it, last));
        let step = match again {
            Some(offering) if age < TOKEN_TRUST => self.resend(offering, last, age < lag).await,
            Some(_) | None => Step::Next,
        };
        match step {
            // Whatever the cloud says now, the first call may have made an instance that does not show yet.
            Step::Next if age < lag => look_again(lag - age),
            step => step,
        }
    }

    /// Takes the first instance that an offering allows; the others are surplus and go. `None` if none is left.
    async fn adopt(&self, found: &[Instance], last: &Attempt) -> Option<Step> {
        let chosen = found.iter().find(|it| self.allows(it, last));
        let chosen_id = chosen.map(|instance| instance.id.as_str());
        let surplus = found.iter().map(|instance| &instance.id);
        let surplus: Vec<_> = surplus
            .filter(|id| Some(id.as_str()) != chosen_id)
            .cloned()
            .collect();
        if !surplus.is_empty() {
            tracing::warn!(
                group = self.request.group,
                ?surplus,
                "surplus instances are deleted"
            );
            self.inner.discard(&surplus).await;
        }
        let instance = chosen?.clone();
        Some(Step::Done(self.adopted(instance).await))
    }

    /// Whether the instance is one that the claim may be.
    pub(super) fn allows(&self, instance: &Instance, last: &Attempt) -> bool {
        let offerings = &self.request.offerings;
        offerings.iter().any(|it| is_instance_of(instance, it)) || is_of_attempt(instance, last)
    }

    /// What an instance that was found is. It exists: whatever cannot be asked now, no other one is made.
    pub(super) async fn adopted(&self, instance: Instance) -> LaunchOutcome {
        let later = |message: String| LaunchOutcome::Retry {
            after: RETRY_PAUSE,
            message,
        };
        let types = match self.inner.region.types().await {
            Ok(types) => types,
            Err(error) => return later(error.to_string()),
        };
        let Some(facts) = types.get(&instance.instance_type) else {
            return later(format!(
                "the region does not list {} at the moment",
                instance.instance_type
            ));
        };
        let max_pods = match self.node(facts).await {
            Ok((node, _)) => node.max_pods,
            Err(error) => return later(error.to_string()),
        };
        LaunchOutcome::Launched(Box::new(Launched {
            instance,
            architecture: facts.architecture,
            max_pods,
            is_adopted: true,
        }))
    }

    /// Sends the stored attempt once more; [`Step::Next`] if that gave nothing.
    async fn resend(
        &mut self,
        offering: &'a LaunchOffering,
        last: &Attempt,
        is_recent: bool,
    ) -> Step {
        match self.send_again(offering, last, 1).await {
            Ok((target, ids)) => self.settle(&target, &ids, is_recent).await,
            Err(Resent::Not(outcome)) => Step::Done(outcome),
            Err(Resent::Made(_) | Resent::Changed | Resent::Refused) => Step::Next,
        }
    }

    /// The stored attempt's call once more: the token makes it the same one, and the answer the same ids.
    ///
    /// # Errors
    /// Anything but [`Resent::Made`].
    pub(super) async fn send_again(
        &mut self,
        offering: &'a LaunchOffering,
        last: &Attempt,
        amount: u32,
    ) -> Result<(Target<'a>, Vec<String>), Resent> {
        let target = self.target(offering).await.map_err(|step| match step {
            Step::Done(outcome) => Resent::Not(outcome),
            Step::Made | Step::Next => Resent::Changed,
        })?;
        let vswitches = &self.request.class.vswitches;
        let vswitch = vswitches.iter().find(|it| it.id == last.vswitch_id);
        let vswitch = vswitch.ok_or(Resent::Changed)?;
        let call = self.call(&target, vswitch, Disks::default());
        let run = call.params(last.number, amount).map_err(|error| {
            Resent::Not(LaunchOutcome::NotReady {
                reason: NotReadyReason::UserData,
                message: error.to_string(),
            })
        })?;
        let error = match self.inner.client.run_instances(&run).await {
            Ok(ids) => return Ok((target, ids)),
            Err(error) => error,
        };
        Err(match verdict(&error) {
            Verdict::LookAgain => Resent::Changed,
            found => match self.on_failure(&target, vswitch, &error, found) {
                Some(Step::Done(outcome)) => Resent::Not(outcome),
                Some(Step::Made | Step::Next) | None => Resent::Refused,
            },
        })
    }

    /// Tries one offering in each vSwitch and with each disk category that it may need.
    pub(super) async fn try_offering<F, Fut>(
        &mut self,
        offering: &'a LaunchOffering,
        record: &mut F,
    ) -> Step
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        let target = match self.target(offering).await {
            Ok(target) => target,
            Err(step) => return step,
        };
        let mut disks = Disks::default();
        loop {
            let Some(vswitch) = self.pick_vswitch(&target) else {
                self.fail(offering, None, "no vSwitch with free addresses in the zone");
                return Step::Next;
            };
            let call = self.call(&target, vswitch, disks);
            let number = self.number + 1;
            let amount = self.amount_in(vswitch, target.node_ips);
            let run = match call.params(number, amount) {
                Ok(run) => run,
                Err(error) => return not_ready(NotReadyReason::UserData, error.to_string()),
            };
            let attempt = call.attempt(&run, number, self.inner.client.now());
            if let Err(message) = record(attempt).await {
                let message = format!("cannot store the launch attempt: {message}");
                return Step::Done(LaunchOutcome::Retry {
                    after: RETRY_PAUSE,
                    message,
                });
            }
            self.number = number;
            let ips = target.node_ips.saturating_mul(u64::from(amount));
            self.inner.in_flight.take(&vswitch.id, ips);
            let error = match self.inner.client.run_instances(&run).await {
                Ok(ids) if self.request.amount > 1 => {
                    return self.settle_group(&target, &ids).await;
                }
                Ok(ids) => return self.settle(&target, &ids, true).await,
                Err(error) => error,
            };
            if !error.is_outcome_unknown() {
                self.inner.in_flight.put_back(&vswitch.id, ips);
            }
            if self.halves(&error) {
                continue;
            }
            let found = verdict(&error);
            if found == Verdict::NextDiskCategory
                && let Some(next) = disks.next(&error, self.request)
            {
                disks = next;
                continue;
            }
            if let Some(step) = self.on_failure(&target, vswitch, &error, found) {
                return step;
            }
        }
    }

    /// Marks what the error speaks of; `None` means that the same offering may be tried in another vSwitch.
    pub(super) fn on_failure(
        &mut self,
        target: &Target<'_>,
        vswitch: &VSwitch,
        error: &CloudError,
        found: Verdict,
    ) -> Option<Step> {
        let now = self.inner.client.now();
        let reason = error.code().unwrap_or(error.class().name());
        let key = key_of(target.offering, &target.facts);
        self.inner
            .unavailable
            .mark_error(error.class(), key, &vswitch.id, reason, now);
        match found {
            Verdict::NextVSwitch => None,
            Verdict::NextDiskCategory | Verdict::NextOffering => {
                self.fail(target.offering, Some(error.class()), &error.to_string());
                Some(Step::Next)
            }
            Verdict::LookAgain => Some(retry(RETRY_PAUSE, error)),
            Verdict::Retry(after) => Some(retry(after, error)),
            Verdict::Stop(reason) => Some(not_ready(reason, error.to_string())),
        }
    }

    /// Waits until the instance shows, and sees that it is what was asked for.
    async fn settle(&mut self, target: &Target<'_>, ids: &[String], is_recent: bool) -> Step {
        let Some((id, surplus)) = ids.split_first() else {
            let message = "RunInstances made no instance and gave no reason".to_owned();
            return Step::Done(LaunchOutcome::Retry {
                after: RETRY_PAUSE,
                message,
            });
        };
        if !surplus.is_empty() {
            self.inner.discard(surplus).await;
        }
        let seen = self.wait_until_visible(id).await;
        let instance = match seen {
            Some(instance) if !is_ending(&instance.status) => instance,
            None if is_recent => {
                let message = format!("instance {id} is made but does not show yet");
                return Step::Done(LaunchOutcome::Retry {
                    after: RETRY_PAUSE,
                    message,
                });
            }
            // The token gave an instance of long ago that has ended since; another attempt needs another token.
            Some(_) | None => {
                self.fail(
                    target.offering,
                    None,
                    &format!("instance {id} was made and has ended"),
                );
                return Step::Next;
            }
        };
        if !is_instance_of(&instance, target.offering) {
            let message = format!(
                "got {} in {} as {} instead; instance {id} is deleted",
                instance.instance_type, instance.zone_id, instance.capacity_type
            );
            tracing::error!(
                instance = id,
                message,
                "the cloud made another instance than was asked for"
            );
            self.inner.discard(std::slice::from_ref(id)).await;
            self.fail(target.offering, None, &message);
            return Step::Next;
        }
        let launched = Launched {
            instance,
            architecture: target.facts.architecture,
            max_pods: target.node.max_pods,
            is_adopted: false,
        };
        Step::Done(LaunchOutcome::Launched(Box::new(launched)))
    }

    async fn wait_until_visible(&self, id: &String) -> Option<Instance> {
        let deadline = tokio::time::Instant::now() + VISIBLE_WAIT;
        loop {
            let found = self.inner.describer.by_ids(std::slice::from_ref(id)).await;
            if let Ok(found) = found
                && let Some(instance) = found.into_iter().next()
            {
                return Some(instance);
            }
            if tokio::time::Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(VISIBLE_POLL).await;
        }
    }

    /// Everything that the calls for one offering share, or why there can be none.
    pub(super) async fn target(
        &mut self,
        offering: &'a LaunchOffering,
    ) -> Result<Target<'a>, Step> {
        let types = self
            .inner
            .region
            .types()
            .await
            .map_err(|error| retry(RETRY_PAUSE, &error))?;
        let Some(facts) = types.get(&offering.instance_type).cloned() else {
            return Err(self.pass_over(offering, "the region does not know the type"));
        };
        let now = self.inner.client.now();
        if let Some(reason) = self.inner.unavailable.reason(key_of(offering, &facts), now) {
            return Err(self.pass_over(offering, &format!("a launch failed recently: {reason}")));
        }
        let class = &self.request.class;
        if !class.has_pool_for(&offering.instance_type, &offering.zone_id) {
            let message = "no private pool of the class has room for the type in the zone";
            return Err(self.pass_over(offering, message));
        }
        let Some(image) = class.image_for(facts.architecture) else {
            let message = format!("no image for {}", facts.architecture);
            return Err(self.pass_over(offering, &message));
        };
        let (node, node_ips) = self
            .node(&facts)
            .await
            .map_err(|error| retry(RETRY_PAUSE, &error))?;
        let machine = Machine {
            request: self.request,
            offering,
            image,
            architecture: facts.architecture,
            node: &node,
        };
        let user_data = user_data(self.inner, &machine).await.map_err(Step::Done)?;
        Ok(Target {
            offering,
            facts,
            image,
            node,
            user_data,
            node_ips,
        })
    }

    async fn node(&self, facts: &TypeFacts) -> Result<(NodeCapacity, u64), CloudError> {
        let class = &self.request.class;
        let cni = self.inner.region.cni(&class.cluster_id).await?;
        let node_ips = if cni == CniMode::TerwayShared {
            TERWAY_NODE_IPS
        } else {
            NODE_IPS
        };
        let config = &self.inner.config;
        let node = crate::provider::capacity::node_capacity(facts, &class.spec, cni, config);
        Ok((node, node_ips))
    }

    pub(super) fn call<'b>(
        &'b self,
        target: &'b Target<'_>,
        vswitch: &'b VSwitch,
        disks: Disks,
    ) -> Call<'b> {
        let categories = &self.request.class.spec.system_disk.categories;
        Call {
            request: self.request,
            offering: target.offering,
            vswitch,
            image: target.image,
            disks: DiskChoice {
                system: categories.get(disks.system).map_or("", String::as_str),
                data: disks.data,
            },
            user_data: &target.user_data,
            cluster: &self.inner.config.cluster,
            region_id: &self.inner.config.region_id,
        }
    }

    fn pick_vswitch(&self, target: &Target<'_>) -> Option<&'a VSwitch> {
        let now = self.inner.client.now();
        let is_blocked = |id: &str| self.inner.unavailable.is_vswitch_blocked(id, now);
        let vswitches = &self.request.class.vswitches;
        self.inner
            .in_flight
            .pick(vswitches, &target.offering.zone_id, NODE_IPS, is_blocked)
    }

    fn pass_over(&mut self, offering: &LaunchOffering, message: &str) -> Step {
        self.fail(offering, None, message);
        Step::Next
    }

    fn fail(&mut self, offering: &LaunchOffering, class: Option<ErrorClass>, message: &str) {
        let message = message.to_owned();
        self.failures.push(OfferingFailure {
            offering: offering.clone(),
            class,
            message,
        });
    }

    /// The outcome when no offering is left.
    pub(super) fn exhausted(self) -> LaunchOutcome {
        let all_invalid = !self.failures.is_empty()
            && self
                .failures
                .iter()
                .all(|it| it.class == Some(ErrorClass::Invalid));
        match self.failures.first() {
            Some(first) if all_invalid => LaunchOutcome::NotReady {
                reason: NotReadyReason::InvalidRequest,
                message: first.message.clone(),
            },
            _ => LaunchOutcome::InsufficientCapacity {
                offerings: self.failures,
            },
        }
    }
}

fn key_of<'b>(offering: &'b LaunchOffering, facts: &'b TypeFacts) -> OfferingKey<'b> {
    OfferingKey {
        instance_type: &offering.instance_type,
        family: &facts.family,
        zone_id: &offering.zone_id,
        capacity_type: offering.capacity_type,
    }
}

pub(super) fn is_of(offering: &LaunchOffering, attempt: &Attempt) -> bool {
    offering.instance_type == attempt.instance_type
        && offering.zone_id == attempt.zone_id
        && offering.capacity_type.as_str() == attempt.capacity_type
}

pub(super) fn is_instance_of(instance: &Instance, offering: &LaunchOffering) -> bool {
    instance.instance_type == offering.instance_type
        && instance.zone_id == offering.zone_id
        && instance.capacity_type == offering.capacity_type
}

fn is_of_attempt(instance: &Instance, attempt: &Attempt) -> bool {
    instance.instance_type == attempt.instance_type
        && instance.zone_id == attempt.zone_id
        && instance.capacity_type.as_str() == attempt.capacity_type
}

pub(super) fn is_ending(status: &InstanceStatus) -> bool {
    match status {
        InstanceStatus::Stopping | InstanceStatus::Stopped => true,
        InstanceStatus::Pending
        | InstanceStatus::Starting
        | InstanceStatus::Running
        | InstanceStatus::Other(_) => false,
    }
}

/// An instance may show within this time.
fn look_again(rest: SignedDuration) -> Step {
    let rest = Duration::try_from(rest).unwrap_or(RETRY_PAUSE);
    let message = "an earlier call may have made an instance that does not show yet";
    Step::Done(LaunchOutcome::Retry {
        after: rest.min(UNSEEN_PAUSE),
        message: message.to_owned(),
    })
}

fn retry(after: Duration, error: &CloudError) -> Step {
    Step::Done(LaunchOutcome::Retry {
        after,
        message: error.to_string(),
    })
}

fn not_ready(reason: NotReadyReason, message: String) -> Step {
    Step::Done(LaunchOutcome::NotReady { reason, message })
}
