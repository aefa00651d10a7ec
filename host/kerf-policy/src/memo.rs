//! Answers that were given before. A policy has no clock, no randomness and no memory, so equal questions have equal answers.

use crate::digest::PolicyDigest;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which question it was. The input is hashed twice with keys of this process: 128 bits that nobody can aim at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    digest: PolicyDigest,
    input: [u64; 2],
}

/// Holds the newest answers. Old ones fall out a generation at a time.
#[derive(Debug)]
pub(crate) struct Memo<A> {
    keys: [RandomState; 2],
    /// Answers per generation; there are two.
    generation_max: usize,
    generations: Mutex<Generations<A>>,
}

#[derive(Debug)]
struct Generations<A> {
    young: HashMap<Key, Arc<A>>,
    old: HashMap<Key, Arc<A>>,
}

impl<A> Memo<A> {
    pub(crate) fn new(generation_max: usize) -> Self {
        let generations = Generations {
            young: HashMap::new(),
            old: HashMap::new(),
        };
        Self {
            keys: Default::default(),
            generation_max,
            generations: Mutex::new(generations),
        }
    }

    pub(crate) fn key(&self, digest: PolicyDigest, config: &str, input: &impl Hash) -> Key {
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

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<A>> {
        let mut generations = self.lock();
        if let Some(found) = generations.young.get(key) {
            return Some(Arc::clone(found));
        }
        let found = generations.old.remove(key)?;
        generations.keep(*key, Arc::clone(&found), self.generation_max);
        Some(found)
    }

    pub(crate) fn keep(&self, key: Key, answer: Arc<A>) {
        self.lock().keep(key, answer, self.generation_max);
    }

    fn lock(&self) -> MutexGuard<'_, Generations<A>> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Generations<A> {
    fn keep(&mut self, key: Key, answer: Arc<A>, generation_max: usize) {
        if self.young.len() >= generation_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, answer);
    }
}
