//! What the last passes looked at. A claim that is as it was, on a node to which no pod came, is not read again: of a large
//! fleet, reading all of them takes a tenth of a second each time.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::kept::version_of;

/// All claims are looked at this often: images, vSwitches and policies change without a sign in the index.
pub(super) const ALL_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// Claims whose conditions say what they should, until something changes.
#[derive(Debug, Default)]
pub(super) struct Looked {
    by_name: HashMap<Box<str>, Look>,
    all_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Look {
    version: u64,
    node: Option<Box<str>>,
    pod_event: Option<Timestamp>,
    due: Option<Timestamp>,
}

impl Looked {
    /// Begins a pass, and forgets everything where that is due or what claims are compared with is another.
    pub(super) fn begin(&mut self, are_surroundings_same: bool, now: Timestamp) {
        let is_recent = |at: Timestamp| now.duration_since(at).abs() < ALL_AFTER;
        if !are_surroundings_same || !self.all_at.is_some_and(is_recent) {
            self.by_name.clear();
            self.all_at = Some(now);
        }
    }

    /// Whether nothing has changed since the look at the claim of that name; `pod_event` tells when a pod last came to a node.
    pub(super) fn is_current(
        &self,
        name: &str,
        version: Option<u64>,
        pod_event: impl Fn(&str) -> Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        self.by_name.get(name).is_some_and(|look| {
            let seen = look.node.as_deref().and_then(pod_event);
            version == Some(look.version)
                && seen == look.pod_event
                && look.due.is_none_or(|due| due > now)
        })
    }

    /// The claim needs no write before `due`, unless something changes.
    pub(super) fn note(
        &mut self,
        claim: &NodeClaim,
        pod_event: Option<Timestamp>,
        due: Option<Timestamp>,
    ) {
        let Some(version) = version_of(claim) else {
            return;
        };
        let node = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
        let look = Look {
            version,
            node: node.map(Into::into),
            pod_event,
            due,
        };
        self.by_name.insert(claim.name_any().into(), look);
    }

    /// When waiting alone will change something.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.by_name.values().filter_map(|it| it.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim() -> NodeClaim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        claim.metadata.resource_version = Some("7".to_owned());
        claim.status.get_or_insert_default().node_name = Some("node-1".to_owned());
        claim
    }

    #[test]
    fn a_claim_is_read_again_when_it_its_pods_or_its_time_changed() {
        let mut looked = Looked::default();
        looked.begin(true, at(0));
        looked.note(&claim(), Some(at(1)), Some(at(6)));
        let is_current = |version, event: i64, now: i64| {
            let pod_event = |node: &str| (node == "node-1").then(|| at(event));
            looked.is_current("general-1", version, pod_event, at(now))
        };

        assert!(is_current(Some(7), 1, 5));
        assert!(!is_current(Some(8), 1, 5), "it was written");
        assert!(!is_current(Some(7), 2, 5), "a pod came");
        assert!(!is_current(Some(7), 1, 6), "its time has come");
        assert!(!is_current(None, 1, 5), "nobody knows");
        assert!(!looked.is_current("general-2", Some(7), |_| None, at(5)));
        assert_eq!(looked.due(), Some(at(6)));
    }

    #[test]
    fn all_are_read_again_in_other_surroundings_and_after_a_while() {
        let mut looked = Looked::default();
        let mut is_known_after = |are_same, second| {
            looked.begin(are_same, at(second));
            let is_known = !looked.by_name.is_empty();
            looked.note(&claim(), None, None);
            is_known
        };

        assert!(!is_known_after(true, 0));
        assert!(is_known_after(true, 9));
        assert!(!is_known_after(true, 10));
        assert!(!is_known_after(false, 11));
        assert!(is_known_after(true, 12));
        assert!(!is_known_after(true, -100), "the clock was set back");
    }
}
