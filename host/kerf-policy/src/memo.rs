//! Answers that were given before. A policy has no clock, no randomness and no memory, so equal questions have equal answers.

use crate::digest::PolicyDigest;
use crate::selection::{Selection, SelectionInput};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Answers per generation; an answer for 300 candidates takes 3 KiB, so all of them stay below 4 MiB.
const GENERATION_MAX: usize = 512;

/// Which question it was. The input is hashed twice with keys of this process: 128 bits that nobody can aim at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    digest: PolicyDigest,
    input: [u64; 2],
}

/// Holds the newest answers. Old ones fall out a generation at a time.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    keys: [RandomState; 2],
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Arc<Selection>>,
    old: HashMap<Key, Arc<Selection>>,
}

impl Memo {
    pub(crate) fn key(&self, digest: PolicyDigest, config: &str, input: &SelectionInput) -> Key {
        let hash = |state: &RandomState| {
            let mut hasher = state.build_hasher();
            config.hash(&mut hasher);
            input.hash(&mut hasher);
            hasher.finish()
        };
        Key {
            digest,
            input: [hash(&self.keys[0]), hash(&self.keys[1])],
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Selection>> {
        let mut generations = self.lock();
        if let Some(found) = generations.young.get(key) {
            return Some(Arc::clone(found));
        }
        let found = generations.old.remove(key)?;
        generations.keep(*key, Arc::clone(&found));
        Some(found)
    }

    pub(crate) fn keep(&self, key: Key, answer: Arc<Selection>) {
        self.lock().keep(key, answer);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn keep(&mut self, key: Key, answer: Arc<Selection>) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, answer);
    }
}
