//! What the controllers call: resolve a node class, list its instance types, launch, describe and delete.
//!
//! Everything here may hang, fail, lie or succeed without telling, so each method says what is known for sure when it
//! returns. A [`Provider`] is cheap to clone and holds only caches: a restart loses nothing but warmth.

mod ask_prices;
pub mod bootstrap;
mod cache;
pub mod capacity;
pub mod catalog;
pub mod class;
pub mod config;
mod delete;
mod describe;
pub mod events;
pub mod facts;
mod fleet;
mod gathering;
pub mod instance;
mod instance_types;
pub mod launch;
pub mod offline;
pub mod permissions;
pub mod prices;
mod pull;
mod region;
mod resolve;
mod shared;
pub mod tags;
pub mod unavailable;
mod vswitches;

pub use shared::TypeList;

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kerf_core::ids::ZoneId;

use crate::actions::cluster::AttachScript;
use crate::error::CloudError;
use crate::provider::cache::Cache;
use crate::provider::catalog::Catalog;
use crate::provider::class::{NodeClassSpec, ResolveProblem, ResolvedNodeClass};
use crate::provider::config::ProviderConfig;
use crate::provider::delete::Deleter;
use crate::provider::describe::Describer;
use crate::provider::events::{Announcement, announcements};
use crate::provider::fleet::Fleet;
use crate::provider::instance::{DeleteOutcome, Instance};
use crate::provider::instance_types::{Sources, Zone, instance_types};
use crate::provider::launch::{
    Attempt, GroupOutcome, LaunchOutcome, LaunchRequest, NotReadyReason, Resent, group,
};
use crate::provider::prices::live::{LivePrices, LiveStore};
use crate::provider::prices::{Known, Layers, Lists, SpotDiscounts};
use crate::provider::region::{Region, Types};
use crate::provider::shared::{Inputs, SharedTypes};
use crate::provider::unavailable::{OfferingKey, UnavailableOfferings};
use crate::provider::vswitches::InFlight;
use crate::rpc::Client;

/// How long a surplus instance is asked to go before it is left to the orphan collection.
const DISCARD_WAIT: Duration = Duration::from_secs(30);
const DISCARD_PAUSE: Duration = Duration::from_millis(500);

/// The cloud as kerf uses it.
#[derive(Debug, Clone)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    client: Client,
    config: ProviderConfig,
    region: Region,
    describer: Arc<Describer>,
    deleter: Deleter,
    fleet: Fleet,
    unavailable: UnavailableOfferings,
    in_flight: InFlight,
    classes: Cache<String, ResolvedNodeClass>,
    types: SharedTypes,
    live: LiveStore,
    scripts: Cache<ScriptKey, String>,
}

/// Everything that an attach script depends on.
type ScriptKey = (String, AttachScript);

impl Provider {
    /// Makes no call.
    #[must_use]
    pub fn new(client: Client, config: ProviderConfig) -> Self {
        let describer = Arc::new(Describer::new(client.clone()));
        let inner = Inner {
            region: Region::new(client.clone(), &config),
            deleter: Deleter::new(client.clone(), Arc::clone(&describer)),
            describer,
            fleet: Fleet::default(),
            unavailable: UnavailableOfferings::default(),
            in_flight: InFlight::default(),
            classes: Cache::new(config.resolve_ttl),
            types: SharedTypes::default(),
            live: LiveStore::default(),
            scripts: Cache::new(config.attach_script_ttl),
            client,
            config,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The client, for its counters.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The marks that launch failures left, to keep over a restart.
    #[must_use]
    pub fn unavailable(&self) -> &UnavailableOfferings {
        &self.inner.unavailable
    }

    /// Finds what the class's selectors mean right now; cached for `resolve_ttl`.
    ///
    /// # Errors
    /// One problem per selector term that found nothing, and one per kind that could not be asked.
    pub async fn resolve(
        &self,
        class: &NodeClassSpec,
    ) -> Result<Arc<ResolvedNodeClass>, Vec<ResolveProblem>> {
        let inner = &*self.inner;
        // All fields, by value: the text holds no addresses and the maps are ordered.
        let key = format!("{class:?}");
        if let Some(resolved) = inner.classes.fresh(&key) {
            return Ok(resolved);
        }
        // Five lists at once make a large future, which every caller would carry.
        let resolving = resolve::resolve(&inner.client, class, &inner.config.cluster_id);
        let resolved = Box::pin(resolving).await?;
        Ok(inner.classes.put(key, resolved))
    }

    /// Every instance type that can be a node of this class, with its offerings, in name order. While nothing changed it
    /// is the list that was given last; equal types of several classes are one.
    ///
    /// # Errors
    /// When the type list or the cluster's network was never read and cannot be read now.
    pub async fn instance_types(&self, class: &ResolvedNodeClass) -> Result<TypeList, CloudError> {
        let inner = &*self.inner;
        let (types, stock, discounts, cni) = futures::join!(
            inner.region.types(),
            inner.region.stock(),
            inner.region.discounts(),
            inner.region.cni(&class.cluster_id),
        );
        let (types, cni) = (types?, cni?);
        let live = inner.live.published();
        let now = inner.client.now();
        let zones = inner.zones(class, now);
        let inputs = Inputs {
            types: Arc::downgrade(&types),
            stock: Arc::downgrade(&stock),
            discounts: Arc::downgrade(&discounts),
            live: Arc::downgrade(&live),
            cni,
            zones: zones.clone(),
            marks: inner.unavailable.snapshot(now),
            class: class.clone(),
        };
        let mark = |key: OfferingKey<'_>| inner.unavailable.reason(key, now);
        let prices = LazyCell::new(|| Layers::new(inner.known_prices(&types, &discounts, &live)));
        Ok(inner.types.list(inputs, || {
            instance_types(Sources {
                class,
                config: &inner.config,
                cni,
                types: &types,
                stock: &stock,
                prices: &prices,
                mark: &mark,
                zones: &zones,
            })
        }))
    }

    /// What the region sells, as this account sees it now, whatever a class selects. Only reads. Stock and spot prices
    /// that cannot be asked for are told in the catalog's `source`.
    ///
    /// # Errors
    /// When the types or the zones cannot be read.
    pub async fn catalog(&self) -> Result<Catalog, CloudError> {
        let inner = &*self.inner;
        let (types, zones, stock, discounts) = futures::join!(
            inner.region.types(),
            inner.client.describe_zones(),
            inner.region.stock(),
            inner.region.discounts(),
        );
        let zones = zones?.into_iter().map(|zone| zone.zone_id);
        Ok(pull::catalog(&pull::Seen {
            zones: zones.collect(),
            stock: &stock,
            known: inner.known_prices(&*types?, &discounts, &inner.live.published()),
            at: inner.client.now(),
        }))
    }

    /// Launches one instance for one claim, or finds the one that an earlier call made.
    ///
    /// `record` stores the attempt in the claim; the call is only sent after it returned `Ok`.
    pub async fn launch<F, Fut>(&self, request: &LaunchRequest, record: F) -> LaunchOutcome
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        let outcome = launch::launch(&self.inner, request, record).await;
        if let LaunchOutcome::NotReady {
            reason: NotReadyReason::ClassResourceMissing,
            ..
        } = outcome
        {
            // What the selectors found is no longer true.
            self.inner.classes.clear();
        }
        outcome
    }

    /// Launches up to `request.amount` instances for a group of claims of one shape.
    ///
    /// `record` stores the attempt in all of them; the call is only sent after it returned `Ok`.
    pub async fn launch_group<F, Fut>(&self, request: &LaunchRequest, record: F) -> GroupOutcome
    where
        F: FnMut(Attempt) -> Fut + Send,
        Fut: Future<Output = Result<(), String>> + Send,
    {
        group::launch_group(&self.inner, request, record).await
    }

    /// Sends the stored attempt of a group once more, to learn what it made.
    pub async fn resend_group(&self, request: &LaunchRequest, last: &Attempt) -> Resent {
        group::resend_group(&self.inner, request, last).await
    }

    /// The instances that show the group's tag and are not about to end, in id order.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn group_members(&self, group: &str) -> Result<Vec<Instance>, CloudError> {
        group::members_of(&self.inner, group).await
    }

    /// What an instance of a group is for one of its claims; none when it is nothing that the claim may be.
    pub async fn identify(
        &self,
        request: &LaunchRequest,
        last: &Attempt,
        instance: Instance,
    ) -> Option<LaunchOutcome> {
        group::identify(&self.inner, request, last, instance).await
    }

    /// The instances with these ids that exist, in id order; one that is missing in the answer may be gone or not
    /// visible yet. Calls within a moment share a request.
    ///
    /// # Errors
    /// When any page could not be read: a part is never passed off as the whole.
    pub async fn describe(&self, instance_ids: &[String]) -> Result<Vec<Instance>, CloudError> {
        self.inner.describer.by_ids(instance_ids).await
    }

    /// The instances that carry all these tags, in id order.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn find_by_tags(&self, tags: &[(&str, &str)]) -> Result<Vec<Instance>, CloudError> {
        self.inner.describer.by_tags(tags).await
    }

    /// Every instance that kerf made for this cluster.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn list_ours(&self) -> Result<Vec<Instance>, CloudError> {
        let tags = [
            (tags::MANAGED_BY, tags::MANAGED_BY_KERF),
            (tags::CLUSTER, self.inner.config.cluster.as_str()),
        ];
        let Inner {
            fleet,
            describer,
            client,
            ..
        } = &*self.inner;
        fleet.with_tags(describer, client, &tags).await
    }

    /// The instances of the region that the market is taking back, in id order; they need not be ours. One call, however
    /// many instances there are.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn recycled(&self) -> Result<Vec<Instance>, CloudError> {
        self.inner.describer.recycled().await
    }

    /// What the platform announced about instances of the region and has not done yet; they need not be ours.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn announcements(&self) -> Result<Vec<Announcement>, CloudError> {
        let events = self.inner.client.describe_open_instance_events().await?;
        Ok(announcements(&events))
    }

    /// Deletes the instances; one outcome per id, in the order given. Safe to repeat.
    pub async fn delete(&self, instance_ids: &[String]) -> Vec<(String, DeleteOutcome)> {
        self.inner.delete(instance_ids).await
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
        self.inner
            .client
            .tag_instances(&[instance_id.to_owned()], tags)
            .await
    }
}

impl Inner {
    fn known_prices<'a>(
        &'a self,
        types: &'a Types,
        discounts: &'a SpotDiscounts,
        live: &'a LivePrices,
    ) -> Known<'a> {
        Known {
            lists: Lists {
                region_id: &self.config.region_id,
                discounts,
            },
            given: &self.config.prices,
            live,
            types,
            account_discount_percent: self.config.account_discount_percent,
        }
    }

    fn zones(&self, class: &ResolvedNodeClass, now: Timestamp) -> Vec<Zone> {
        let is_blocked = |id: &str| self.unavailable.is_vswitch_blocked(id, now);
        let zone = |id: &str| Zone {
            id: ZoneId::from(id),
            has_addresses: self
                .in_flight
                .pick(&class.vswitches, id, 1, is_blocked)
                .is_some(),
        };
        class.zone_ids().into_iter().map(zone).collect()
    }

    /// Deletes what must not stay, with patience: a new instance cannot be deleted while it is being made.
    async fn discard(&self, ids: &[String]) {
        let deadline = tokio::time::Instant::now() + DISCARD_WAIT;
        let mut left = ids.to_vec();
        while !left.is_empty() && tokio::time::Instant::now() < deadline {
            let outcomes = self.delete(&left).await;
            let is_done = |outcome: &DeleteOutcome| {
                matches!(outcome, DeleteOutcome::Accepted | DeleteOutcome::Gone)
            };
            let again = outcomes
                .into_iter()
                .filter(|(_, outcome)| !is_done(outcome));
            left = again.map(|(id, _)| id).collect();
            if !left.is_empty() {
                tokio::time::sleep(DISCARD_PAUSE).await;
            }
        }
        if !left.is_empty() {
            tracing::error!(instances = ?left, "instances that nobody needs cannot be deleted yet");
        }
    }

    async fn delete(&self, ids: &[String]) -> Vec<(String, DeleteOutcome)> {
        self.deleter.delete(ids).await
    }
}
