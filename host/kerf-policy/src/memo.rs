//! Answers that were given before. A policy has no clock, no randomness and no memory, so equal questions have equal answers.

use crate::digest::PolicyDigest;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);

/// Stands for a value of this process: 128 bits, hashed with keys that nobody knows, so that nobody can aim at equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u64; 2]);

impl Fingerprint {
    pub(crate) fn of(value: &impl Hash) -> Self {
        Self([KEYS[0].hash_one(value), KEYS[1].hash_one(value)])
    }
}

/// Which question it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) digest: PolicyDigest,
    pub(crate) config: Fingerprint,
    pub(crate) input: Fingerprint,
}

/// Holds the newest answers. Old ones fall out a generation at a time.
#[derive(Debug)]
pub(crate) struct Memo<A> {
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
            generation_max,
            generations: Mutex::new(generations),
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
