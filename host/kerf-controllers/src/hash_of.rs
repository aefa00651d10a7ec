//! One number for anything that can be hashed: to remember that it was seen without keeping it, or to spread it.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The same in every process of one build, and nothing to be stored.
pub(crate) fn hash_of(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
