//! Runs one reconcile function over the objects that the watches name.
//!
//! All watches are in `watch`; a reconciler gets keys from there and objects from the shared store, so that each kind
//! is watched once. It keeps keys of what is due only: kube's `Controller` wants a store of whole objects beside ours.

mod queue;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use self::queue::{Key, Queue};
use crate::context::Context;
use crate::error::{CONFLICT_RETRY, Error, backoff, chain, describe};
use crate::kept::Kept;
use crate::metrics::ReconcileLabels;

/// Objects of one kind that are worked on at the same time. The work is waiting for others, so more than cores; and more than
/// two launch groups, whose claims all wait for one call.
const CONCURRENCY: usize = 256;

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

struct Waiting<K> {
    keys: Mutex<BTreeSet<Key>>,
    bell: Notify,
    kind: PhantomData<fn() -> K>,
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
            kind: PhantomData,
        });
        let trigger = Self(Arc::clone(&waiting));
        (trigger, Triggered { waiting, gather })
    }

    /// Asks for a look at the object.
    pub fn send(&self, object: &ObjectRef<K>) {
        self.0
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(queue::key_of(object));
        self.0.bell.notify_one();
    }
}

impl<K: Resource<DynamicType = ()>> Triggered<K> {
    /// Waits for keys and takes all that are there.
    async fn take(&self) -> BTreeSet<Key> {
        while self.keys().is_empty() {
            self.waiting.bell.notified().await;
        }
        if !self.gather.is_zero() {
            tokio::time::sleep(self.gather).await;
        }
        std::mem::take(&mut *self.keys())
    }

    fn keys(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        let keys = &self.waiting.keys;
        keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a reconciler finds what it was told the name of.
pub trait Objects<K: Reconciled>: Send + Sync + 'static {
    /// The object as it is now; none when it is gone.
    fn find(&self, key: &ObjectRef<K>) -> Option<Arc<K>>;

    /// Whether the object is older than what we have written.
    fn is_behind(&self, _object: &K) -> bool {
        false
    }
}

impl<K: Reconciled> Objects<K> for Store<K> {
    fn find(&self, key: &ObjectRef<K>) -> Option<Arc<K>> {
        self.get(key)
    }
}

impl<K: Reconciled + Serialize> Objects<K> for Kept<K> {
    fn find(&self, key: &ObjectRef<K>) -> Option<Arc<K>> {
        self.get(&key.name)
    }

    fn is_behind(&self, object: &K) -> bool {
        Self::is_behind(self, object)
    }
}

/// When an object is to be looked at again that nobody names before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    again_after: Option<Duration>,
}

impl Action {
    /// After this time at the latest.
    #[must_use]
    pub const fn requeue(after: Duration) -> Self {
        Self {
            again_after: Some(after),
        }
    }

    /// Only when somebody names it.
    #[must_use]
    pub const fn await_change() -> Self {
        Self { again_after: None }
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
    let named = stream::unfold(triggered, |triggered| async {
        Some((triggered.take().await, triggered))
    });
    let mut named = pin!(named);
    let worker = Arc::new(Worker {
        name,
        objects,
        context,
        reconcile,
        failures: Failures::default(),
    });
    let mut queue = Queue::default();
    // Tasks of their own: one that computes for a while does not hold up the others.
    let mut working = JoinSet::new();
    loop {
        let is_free = working.len() < CONCURRENCY;
        if is_free && let Some(key) = queue.take(Instant::now()) {
            working.spawn(Arc::clone(&worker).work(key));
            continue;
        }
        let due_at = queue.next_due().filter(|_| is_free);
        tokio::select! {
            Some(keys) = named.next() => {
                for key in keys {
                    queue.ask(key, Instant::now());
                }
            }
            Some(done) = working.join_next() => match done.map_err(JoinError::try_into_panic) {
                Ok((key, Action { again_after })) => {
                    queue.done(key, again_after.map(|after| Instant::now() + after));
                }
                Err(Ok(panic)) => resume_unwind(panic),
                // The runtime takes its tasks down, and this one is next.
                Err(Err(_)) => return,
            },
            () = sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => {}
        }
    }
}

/// What one look at an object needs.
struct Worker<K: Reconciled, O, Fut> {
    name: &'static str,
    objects: O,
    context: Arc<Context>,
    reconcile: fn(Arc<K>, Arc<Context>) -> Fut,
    failures: Failures,
}

impl<K, O, Fut> Worker<K, O, Fut>
where
    K: Reconciled,
    O: Objects<K>,
    Fut: Future<Output = Result<Action, Error>> + Send + 'static,
{
    async fn work(self: Arc<Self>, key: Key) -> (Key, Action) {
        let span = tracing::info_span!("reconcile", controller = self.name, object = %key);
        let action = self.look(&key).instrument(span).await;
        (key, action)
    }

    async fn look(&self, key: &Key) -> Action {
        let Some(object) = self.objects.find(&queue::reference(key)) else {
            self.failures.forget(key);
            return Action::await_change();
        };
        // A deletion goes on: it needs no newer state, and the watch may hang.
        let is_going = object.meta().deletion_timestamp.is_some();
        if !is_going && self.objects.is_behind(&object) {
            return Action::requeue(BEHIND_RETRY);
        }
        let described = describe(&*object);
        match (self.reconcile)(object, Arc::clone(&self.context)).await {
            Ok(action) => {
                self.failures.forget(key);
                self.count("ok");
                action
            }
            Err(error) => self.retry(key, &described, &error),
        }
    }

    fn retry(&self, key: &Key, described: &str, error: &Error) -> Action {
        self.count(error.kind());
        if error.is_not_found() {
            return Action::await_change();
        }
        if error.is_conflict() {
            return Action::requeue(CONFLICT_RETRY);
        }
        let wait = backoff(self.failures.add(key));
        tracing::warn!(controller = self.name, object = described, error = %chain(error), retry_secs = wait.as_secs(), "reconcile failed");
        Action::requeue(wait)
    }

    fn count(&self, result: &'static str) {
        let controller = self.name;
        self.context
            .metrics
            .reconciles
            .get_or_create(&ReconcileLabels { controller, result })
            .inc();
    }
}

/// How often in a row each object failed.
#[derive(Debug, Default)]
struct Failures(Mutex<HashMap<Key, u32>>);

impl Failures {
    fn forget(&self, key: &Key) {
        self.counts().remove(key);
    }

    /// Counts one more; how many there are now.
    fn add(&self, key: &Key) -> u32 {
        let mut counts = self.counts();
        let failures = counts.entry(Arc::clone(key)).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
