//! Answers of the cloud that are used again for a while. No lock is held across a call: two callers that find the
//! cache cold both ask, which costs a call and blocks nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Entries of one cache at most; keys come from objects of the cluster, which have no limit of their own.
const ENTRIES_MAX: usize = 1000;

/// Values by key, each with the time at which it was read.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    ttl: Duration,
    entries: Mutex<BTreeMap<K, Entry<V>>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    read_at: Instant,
    good_for: Duration,
}

impl<K: Ord + Clone, V> Cache<K, V> {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            entries: Mutex::default(),
        }
    }

    /// The value, if it is still good.
    pub(crate) fn fresh(&self, key: &K) -> Option<Arc<V>> {
        self.with(|entries| {
            let entry = entries.get(key)?;
            (entry.read_at.elapsed() < entry.good_for).then(|| Arc::clone(&entry.value))
        })
    }

    /// The value, however old: better than none while the cloud cannot be asked.
    pub(crate) fn stale(&self, key: &K) -> Option<Arc<V>> {
        self.with(|entries| entries.get(key).map(|entry| Arc::clone(&entry.value)))
    }

    pub(crate) fn put(&self, key: K, value: V) -> Arc<V> {
        self.put_for(key, Arc::new(value), self.ttl)
    }

    /// As [`Self::put`], with a time of its own: what stands in for an answer that did not come is good for less.
    pub(crate) fn put_for(&self, key: K, value: Arc<V>, good_for: Duration) -> Arc<V> {
        let entry = Entry {
            value: Arc::clone(&value),
            read_at: Instant::now(),
            good_for,
        };
        self.with(|entries| {
            if entries.len() >= ENTRIES_MAX {
                entries.retain(|_, entry| entry.read_at.elapsed() < entry.good_for);
            }
            entries.insert(key, entry);
        });
        value
    }

    pub(crate) fn clear(&self) {
        self.with(BTreeMap::clear);
    }

    fn with<T>(&self, update: impl FnOnce(&mut BTreeMap<K, Entry<V>>) -> T) -> T {
        update(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
