//! Randomness for nonces and jitter. Nonces must be unique, not unguessable, so the standard library's hash seeds
//! (from the operating system) with a counter are enough and no random-number package is needed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rpc::encode;

static COUNTER: AtomicU64 = AtomicU64::new(0);

fn random_u64() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}

/// 32 hex digits that no other call of any process uses.
pub(crate) fn nonce() -> String {
    let mut bytes = random_u64().to_be_bytes().to_vec();
    bytes.extend(random_u64().to_be_bytes());
    encode::hex(&bytes)
}

/// A factor in `0.5..1.0`, so that callers that failed together do not come back together.
pub(crate) fn jitter() -> f64 {
    let part = u32::try_from(random_u64() >> 32).unwrap_or(0);
    0.5 + f64::from(part) / f64::from(u32::MAX) / 2.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nonces_do_not_repeat() {
        let nonces: BTreeSet<_> = (0..1000).map(|_| nonce()).collect();

        assert_eq!(nonces.len(), 1000);
        assert!(nonces.iter().all(|nonce| nonce.len() == 32));
    }
}
