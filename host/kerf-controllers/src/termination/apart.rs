//! How long Nodes have been set apart, as far as this process knows: the time that it waits for what the scheduler placed on
//! them just before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::lifecycle::registration::left;

/// A Node is looked at again after this long: a pod that the scheduler placed just before the taint may still arrive
/// (Karpenter: five seconds, because there the look goes through a cache).
const APART_MIN: Duration = Duration::from_secs(1);
/// Drains that take longer are forgotten, and their Nodes looked at once more than needed.
const REMEMBERED: Duration = Duration::from_mins(10);

/// When this process first saw each Node set apart, by uid. One that starts anew waits anew.
#[derive(Debug, Default)]
pub struct SetApart(Mutex<HashMap<String, Instant>>);

impl SetApart {
    /// How much longer pods may arrive on a Node that is set apart; none once all have.
    pub fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, at| now.duration_since(*at) < REMEMBERED);
        let at = *seen.entry(uid.to_owned()).or_insert(now);
        left(APART_MIN, now.duration_since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_pods_is_looked_at_twice_and_by_another_process_again() {
        let apart = SetApart::default();
        let start = Instant::now();

        assert_eq!(apart.wait("a", start), Some(APART_MIN));
        let half = APART_MIN / 2;
        assert_eq!(apart.wait("a", start + half), Some(half));
        assert_eq!(apart.wait("b", start + half), Some(APART_MIN));
        assert_eq!(apart.wait("a", start + APART_MIN), None);
        assert_eq!(SetApart::default().wait("a", start), Some(APART_MIN));
    }
}
