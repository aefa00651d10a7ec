//! How far each of many has come, in nine bytes for each: of every pod of a cluster nothing else is remembered.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Numbers of stages are smaller.
const STAGES: u64 = 4;

/// The number of a stage by a hash of what has come so far. Of the hash all but two bits are kept.
#[derive(Debug, Default)]
pub(crate) struct Stages(HashSet<Entry>);

/// The hash, with the stage in place of its last bits. Equal where the rest is.
#[derive(Debug, Clone, Copy)]
struct Entry(u64);

impl Entry {
    fn new(key: u64, stage: u8) -> Self {
        Self(key - key % STAGES + u64::from(stage) % STAGES)
    }

    fn stage(self) -> u8 {
        (self.0 % STAGES) as u8
    }

    fn key(self) -> u64 {
        self.0 / STAGES
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Stages {
    /// Sets the stage; returns the one before.
    pub(crate) fn insert(&mut self, key: u64, stage: u8) -> Option<u8> {
        let entry = Entry::new(key, stage);
        self.0.replace(entry).map(Entry::stage)
    }

    /// Forgets the key; returns its stage.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u8> {
        self.0.take(&Entry::new(key, 0)).map(Entry::stage)
    }

    /// The stage.
    pub(crate) fn get(&self, key: u64) -> Option<u8> {
        self.0.get(&Entry::new(key, 0)).map(|it| it.stage())
    }

    /// Forgets all others.
    pub(crate) fn retain(&mut self, keys: &HashSet<u64>) {
        let keys: HashSet<Entry> = keys.iter().map(|key| Entry::new(*key, 0)).collect();
        self.0.retain(|entry| keys.contains(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stage_of_each_is_known_whatever_the_last_bits_of_its_key_are() {
        let mut stages = Stages::default();

        assert_eq!(stages.insert(u64::MAX, 2), None);
        assert_eq!(stages.insert(8, 0), None);
        assert_eq!(stages.insert(8, 1), Some(0));
        assert_eq!(stages.insert(8, 3), Some(1));
        assert_eq!(stages.get(u64::MAX), Some(2));
        assert_eq!(stages.get(16), None);

        stages.retain(&HashSet::from([u64::MAX]));
        assert_eq!(stages.remove(8), None);
        assert_eq!(stages.remove(u64::MAX), Some(2));
        assert_eq!(stages.get(u64::MAX), None);
    }
}
