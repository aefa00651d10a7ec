//! What the last passes looked at. A claim that is as it was, on a node to which no pod came, is not read again: of a large
//! fleet, reading all of them takes a tenth of a second each time.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::kept::version_of;

/// Each claim is looked at again after this time, or up to twice as much later. What claims are compared with is looked at in
/// each pass; this is for what time alone brings, such as drift by a type that is no longer sold.
const ALL_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// One pass takes as many of those claims as one in eight of all is: those that came together drift apart, and no pass holds a
/// core for as long as reading all of them takes.
const PASSES: usize = 8;
/// As many as this are read in four milliseconds, whatever part of all they are.
const SHARE_MIN: usize = 64;

/// Claims whose conditions say what they should, until something changes.
#[derive(Debug, Default)]
pub(super) struct Looked {
    by_name: HashMap<Box<str>, Look>,
}

#[derive(Debug)]
struct Look {
    at: Timestamp,
    version: u64,
    node: Option<Box<str>>,
    pod_event: Option<Timestamp>,
    due: Option<Timestamp>,
}

impl Looked {
    /// Begins a pass, and forgets what is to be looked at again: everything where what claims are compared with is another.
    pub(super) fn begin(&mut self, are_surroundings_same: bool, now: Timestamp) {
        if !are_surroundings_same {
            self.by_name.clear();
            return;
        }
        let mut old: Vec<(Timestamp, Box<str>)> = self
            .by_name
            .iter()
            .filter(|(_, look)| now.duration_since(look.at).abs() >= ALL_AFTER)
            .map(|(name, look)| (look.at, name.clone()))
            .collect();
        old.sort_unstable();
        let share = self.by_name.len().div_ceil(PASSES).max(SHARE_MIN);
        for (idx, (at, name)) in old.iter().enumerate() {
            let is_late = now.duration_since(*at).abs() >= ALL_AFTER * 2;
            if idx < share || is_late {
                self.by_name.remove(name);
            }
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
        now: Timestamp,
    ) {
        let Some(version) = version_of(claim) else {
            return;
        };
        let node = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
        let look = Look {
            at: now,
            version,
            node: node.map(Into::into),
            pod_event,
            due,
        };
        self.by_name.insert(claim.name_any().into(), look);
    }

    /// When waiting alone will change something.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let again_at = |look: &Look| look.at.checked_add(ALL_AFTER).ok();
        let looks = self.by_name.values();
        looks
            .filter_map(|look| look.due.into_iter().chain(again_at(look)).min())
            .min()
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
        looked.note(&claim(), Some(at(1)), Some(at(6)), at(0));
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
            looked.note(&claim(), None, None, at(second));
            is_known
        };

        assert!(!is_known_after(true, 0));
        assert!(is_known_after(true, 59));
        assert!(!is_known_after(true, 119), "a minute after the last look");
        assert!(!is_known_after(false, 120));
        assert!(is_known_after(true, 121));
        assert!(!is_known_after(true, -100), "the clock was set back");
    }

    #[test]
    fn claims_that_came_together_are_not_all_read_again_at_once() {
        let mut looked = Looked::default();
        for idx in 0..800 {
            let mut claim = claim();
            claim.metadata.name = Some(format!("general-{idx}"));
            looked.note(&claim, None, None, at(0));
        }
        let mut left = Vec::new();
        for second in [59, 60, 61, 62, 120] {
            looked.begin(true, at(second));
            left.push(looked.by_name.len());
        }

        assert_eq!(left, [800, 700, 612, 535, 0], "after twice the time, all");
        assert_eq!(looked.due(), None);
    }
}
