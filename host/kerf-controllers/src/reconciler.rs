//! Runs one reconcile function over the objects that the watches name.
//!
//! All watches are in `watch`; a reconciler gets keys from there and objects from the shared store, so that each kind
//! is watched once. kube's `Controller` brings deduplication, limits and requeues.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::context::Context;
use crate::error::{CONFLICT_RETRY, Error, backoff, chain, describe};
use crate::kept::{Kept, Named};
use crate::metrics::ReconcileLabels;

/// Objects of one kind that are worked on at the same time. The work is waiting for others, so more than cores; and more than
/// two launch groups, whose claims all wait for one call.
const CONCURRENCY: u16 = 256;

/// Before an object is looked at again whose watch is behind what we wrote. The watch itself names it as soon as it has caught
/// up; this is for an event that got lost on the way.
const BEHIND_RETRY: Duration = Duration::from_secs(5);

/// What a kind must be to have a reconciler.
pub trait Reconciled:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static>
    Reconciled for K
{
}

/// Where to say that an object should be looked at. Naming one twice is naming it once, so what waits is never more
/// than the objects of the kind, also in a standby whose reconcilers have not started.
pub struct Trigger<K: Resource<DynamicType = ()>>(Arc<Waiting<K>>);

/// The other end of a [`Trigger`].
pub struct Triggered<K: Resource<DynamicType = ()>> {
    waiting: Arc<Waiting<K>>,
    gather: Duration,
}

struct Waiting<K: Resource<DynamicType = ()>> {
    keys: Mutex<HashSet<ObjectRef<K>>>,
    bell: Notify,
}

impl<K: Resource<DynamicType = ()>> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Resource<DynamicType = ()>> Debug for Trigger<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trigger").finish_non_exhaustive()
    }
}

impl<K: Resource<DynamicType = ()>> Debug for Triggered<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Triggered").finish_non_exhaustive()
    }
}

impl<K: Resource<DynamicType = ()>> Trigger<K> {
    /// A trigger and what its reconciler reads.
    #[must_use]
    pub fn new() -> (Self, Triggered<K>) {
        Self::gathering(Duration::ZERO)
    }

    /// As `new`, for objects that each change of many others names: keys wait this long for their like.
    #[must_use]
    pub fn gathering(gather: Duration) -> (Self, Triggered<K>) {
        let waiting = Arc::new(Waiting {
            keys: Mutex::default(),
            bell: Notify::new(),
        });
        let trigger = Self(Arc::clone(&waiting));
        (trigger, Triggered { waiting, gather })
    }

    /// Asks for a look at the object.
    pub fn send(&self, key: ObjectRef<K>) {
        self.0
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key);
        self.0.bell.notify_one();
    }
}

impl<K: Resource<DynamicType = ()>> Triggered<K> {
    /// Waits for keys and takes all that are there.
    async fn take(&self) -> HashSet<ObjectRef<K>> {
        while self.keys().is_empty() {
            self.waiting.bell.notified().await;
        }
        if !self.gather.is_zero() {
            tokio::time::sleep(self.gather).await;
        }
        std::mem::take(&mut *self.keys())
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<ObjectRef<K>>> {
        let keys = &self.waiting.keys;
        keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a reconciler finds what it was told the name of.
pub trait Objects<K>: Send + Sync + 'static {
    /// What the queue of work knows of an object.
    type Known: Reconciled;

    /// All that there is to work on.
    fn known(&self) -> Store<Self::Known>;

    /// The object as it is now; none when it is gone.
    fn find(&self, known: Arc<Self::Known>) -> Option<Arc<K>>;

    /// Whether the object is older than what we have written.
    fn is_behind(&self, _object: &K) -> bool {
        false
    }
}

impl<K: Reconciled> Objects<K> for Store<K> {
    type Known = K;

    fn known(&self) -> Self {
        self.clone()
    }

    fn find(&self, known: Arc<K>) -> Option<Arc<K>> {
        Some(known)
    }
}

impl<K: Reconciled + Serialize> Objects<K> for Kept<K> {
    type Known = Named<K>;

    fn known(&self) -> Store<Named<K>> {
        self.names()
    }

    fn find(&self, known: Arc<Named<K>>) -> Option<Arc<K>> {
        self.get(&known.name_any())
    }

    fn is_behind(&self, object: &K) -> bool {
        Self::is_behind(self, object)
    }
}

/// Runs `reconcile` until the process ends.
pub async fn run<K, O, Fut>(
    name: &'static str,
    objects: O,
    triggered: Triggered<K>,
    context: Arc<Context>,
    reconcile: fn(Arc<K>, Arc<Context>) -> Fut,
) where
    K: Reconciled,
    O: Objects<K>,
    Fut: Future<Output = Result<Action, Error>> + Send + 'static,
{
    let keys = stream::unfold(triggered, |triggered| async {
        Some((stream::iter(triggered.take().await), triggered))
    });
    let keys = keys.flatten().map(|key| key.into_kind_unchecked(()));
    let known = objects.known();
    let objects = Arc::new(objects);
    let failures = Arc::new(Failures::default());
    let on_error = {
        let failures = Arc::clone(&failures);
        move |object: Arc<O::Known>, error: &Error, context: Arc<Context>| {
            failures.retry(name, &*object, error, &context)
        }
    };
    let work = move |known: Arc<O::Known>, context: Arc<Context>| {
        let (failures, objects) = (Arc::clone(&failures), Arc::clone(&objects));
        async move {
            let Some(object) = objects.find(known) else {
                return Ok(Action::await_change());
            };
            // A deletion goes on: it needs no newer state, and the watch may hang.
            let is_going = object.meta().deletion_timestamp.is_some();
            if !is_going && objects.is_behind(&object) {
                return Ok(Action::requeue(BEHIND_RETRY));
            }
            let key = describe(&*object);
            let action = reconcile(object, Arc::clone(&context)).await?;
            failures.forget(&key);
            count(&context, name, "ok");
            Ok(action)
        }
    };
    Controller::for_stream(stream::pending(), known)
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(keys)
        .run(work, on_error, context)
        .for_each(|_| std::future::ready(()))
        .await;
}

/// How often in a row each object failed.
#[derive(Debug, Default)]
struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    fn forget(&self, key: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    fn retry<K: Resource<DynamicType = ()>>(
        &self,
        name: &'static str,
        object: &K,
        error: &Error,
        context: &Context,
    ) -> Action {
        count(context, name, error.kind());
        if error.is_not_found() {
            return Action::await_change();
        }
        if error.is_conflict() {
            return Action::requeue(CONFLICT_RETRY);
        }
        let key = describe(object);
        let failures = {
            let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let failures = failures.entry(key.clone()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        let wait = backoff(failures);
        tracing::warn!(controller = name, object = %key, error = %chain(error), retry_secs = wait.as_secs(), "reconcile failed");
        Action::requeue(wait)
    }
}

fn count(context: &Context, controller: &'static str, result: &'static str) {
    context
        .metrics
        .reconciles
        .get_or_create(&ReconcileLabels { controller, result })
        .inc();
}
