//! Values of topology labels by number.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The number of a topology key other than the hostname.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct KeyId(usize);

impl KeyId {
    pub(super) fn idx(self) -> usize {
        self.0
    }
}

/// The topology keys of a round and the values that were seen of each.
#[derive(Debug, Default)]
pub(super) struct Domains {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    name: Arc<str>,
    values: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, usize>,
}

impl Domains {
    pub(super) fn key(&mut self, name: &str) -> KeyId {
        if let Some(known) = self.keys.iter().position(|key| *key.name == *name) {
            return KeyId(known);
        }
        self.keys.push(Key {
            name: Arc::from(name),
            values: Vec::new(),
            ids: FxHashMap::default(),
        });
        KeyId(self.keys.len() - 1)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.keys.len()).map(KeyId)
    }

    pub(super) fn name(&self, key: KeyId) -> Arc<str> {
        Arc::clone(&self.keys[key.0].name)
    }

    pub(super) fn value(&self, key: KeyId, domain: usize) -> &Arc<str> {
        &self.keys[key.0].values[domain]
    }

    pub(super) fn intern(&mut self, key: KeyId, value: &str) -> usize {
        let key = &mut self.keys[key.0];
        if let Some(id) = key.ids.get(value) {
            return *id;
        }
        let value: Arc<str> = Arc::from(value);
        key.values.push(Arc::clone(&value));
        key.ids.insert(value, key.values.len() - 1);
        key.values.len() - 1
    }
}
