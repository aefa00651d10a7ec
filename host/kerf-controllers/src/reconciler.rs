//! Runs one reconcile function over the objects that the watches name.
//!
//! All watches are in `watch`; a reconciler gets keys from there and objects from the shared store, so that each kind
//! is watched once. kube's `Controller` brings deduplication, limits and requeues.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream;
use kube::Resource;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::error::{CONFLICT_RETRY, Error, backoff, chain, describe};
use crate::metrics::ReconcileLabels;

/// Keys that wait here are merged by the scheduler behind; a full channel slows the watch down, and nothing is lost.
const TRIGGER_BUFFER: usize = 1024;

/// Objects of one kind that are worked on at the same time. The work is waiting for others, so more than cores.
const CONCURRENCY: u16 = 64;

/// What a kind must be to have a reconciler.
pub trait Reconciled:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static>
    Reconciled for K
{
}

/// Where to say that an object should be looked at.
#[derive(Debug)]
pub struct Trigger<K: Resource<DynamicType = ()>>(mpsc::Sender<ObjectRef<K>>);

impl<K: Resource<DynamicType = ()>> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The other end of a [`Trigger`].
pub type Triggered<K> = mpsc::Receiver<ObjectRef<K>>;

impl<K: Resource<DynamicType = ()>> Trigger<K> {
    /// A trigger and what its reconciler reads.
    #[must_use]
    pub fn new() -> (Self, Triggered<K>) {
        let (keys_tx, keys_rx) = mpsc::channel(TRIGGER_BUFFER);
        (Self(keys_tx), keys_rx)
    }

    /// Asks for a look at the object.
    pub async fn send(&self, key: ObjectRef<K>) {
        // The receiver lives as long as the process; if it died, the supervisor is ending the process.
        let _ = self.0.send(key).await;
    }
}

/// Runs `reconcile` until the process ends.
pub async fn run<K, Fut>(
    name: &'static str,
    store: Store<K>,
    triggered: Triggered<K>,
    context: Arc<Context>,
    reconcile: fn(Arc<K>, Arc<Context>) -> Fut,
) where
    K: Reconciled,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin,
    Fut: Future<Output = Result<Action, Error>> + Send + 'static,
{
    let keys = stream::unfold(triggered, |mut keys| async {
        keys.recv().await.map(|key| (key, keys))
    });
    let failures = Arc::new(Failures::default());
    let on_error = {
        let failures = Arc::clone(&failures);
        move |object: Arc<K>, error: &Error, context: Arc<Context>| {
            failures.retry(name, &*object, error, &context)
        }
    };
    let work = move |object: Arc<K>, context: Arc<Context>| {
        let failures = Arc::clone(&failures);
        async move {
            let key = describe(&*object);
            let action = reconcile(object, Arc::clone(&context)).await?;
            failures.forget(&key);
            count(&context, name, "ok");
            Ok(action)
        }
    };
    Controller::for_stream(stream::pending(), store)
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
