//! Claims that a plan is creating: a group of their kin waits for them, and one without kin waits for nobody.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kerf_api::names::{annotation, label};
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;
use tokio::time::Instant;

/// Nobody waits longer for a claim that was announced: a hundred are created in less where the API server answers at all.
pub(super) const WAITED_FOR_MAX: Duration = Duration::from_secs(5);

/// By kin, until when each claim is waited for.
#[derive(Debug, Default)]
pub(super) struct Expected(Mutex<BTreeMap<String, Vec<Instant>>>);

/// What claims that may share a call have in common before they exist: the pool and the order of offerings.
pub(super) fn kin(pool: &str, offerings: &str) -> String {
    format!("{pool} {offerings}")
}

/// The kin of a claim that exists.
pub(super) fn kin_of(claim: &NodeClaim) -> String {
    let pool = claim.labels().get(label::NODEPOOL);
    let offerings = claim.annotations().get(annotation::LAUNCH_OFFERINGS);
    let text = |found: Option<&String>| found.cloned().unwrap_or_default();
    kin(&text(pool), &text(offerings))
}

impl Expected {
    pub(super) fn announce(&self, kin: String, now: Instant) {
        self.with(|all| all.entry(kin).or_default().push(now + WAITED_FOR_MAX));
    }

    /// One has come, or comes no more. Whether it was waited for.
    pub(super) fn arrive(&self, kin: &str) -> bool {
        self.with(|all| {
            let Some(waiting) = all.get_mut(kin) else {
                return false;
            };
            waiting.pop();
            if waiting.is_empty() {
                all.remove(kin);
            }
            true
        })
    }

    /// Whether more are waited for.
    pub(super) fn is_awaiting(&self, kin: &str, now: Instant) -> bool {
        self.with(|all| {
            if let Some(waiting) = all.get_mut(kin) {
                waiting.retain(|until| *until > now);
                if waiting.is_empty() {
                    all.remove(kin);
                }
            }
            all.contains_key(kin)
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<Instant>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_announced_is_waited_for_until_it_comes_or_its_time_is_over() {
        let expected = Expected::default();
        let start = Instant::now();
        let kin = kin("general", "ecs.g7.large/h/on-demand");
        expected.announce(kin.clone(), start);
        expected.announce(kin.clone(), start);

        assert!(expected.arrive(&kin));
        assert!(expected.is_awaiting(&kin, start));
        assert!(!expected.is_awaiting("other", start));
        assert!(!expected.arrive("other"));
        assert!(!expected.is_awaiting(&kin, start + WAITED_FOR_MAX));
        assert!(!expected.arrive(&kin));
    }
}
