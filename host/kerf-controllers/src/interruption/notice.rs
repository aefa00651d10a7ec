//! What a claim remembers of an announced interruption. Pure.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use kerf_api::names::annotation;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

/// The market's notice, where no time is said with it.
pub const RECLAIM_NOTICE: SignedDuration = SignedDuration::from_mins(5);

/// Maintenance that is nearer than this does not wait for budgets any more: a replacement that had to be tried twice, and a
/// drain, fit into it.
const URGENT_WITHIN: SignedDuration = SignedDuration::from_mins(15);

/// What a drain gets of the notice, however far the replacement is: most pods end within their 30 s, two in a row with
/// their budget.
const DRAIN_RESERVE: SignedDuration = SignedDuration::from_secs(120);

/// Pods that are still there this long before the end are deleted, whatever protects them: the machine ends them anyway, and
/// so they can still write what they have.
const END_RESERVE: SignedDuration = SignedDuration::from_secs(20);

/// What is announced, the most pressing first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// The market takes the spot instance back.
    Reclaim,
    /// The host or the instance fails.
    Failure,
    /// Work on the host at a time said ahead.
    Maintenance,
}

impl Kind {
    /// The label value of metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reclaim => "spot_reclaim",
            Self::Failure => "failure",
            Self::Maintenance => "maintenance",
        }
    }
}

/// Who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// The lock in DescribeInstances.
    Lock,
    /// System events of ECS.
    Events,
    /// A condition of the Node.
    Conditions,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lock, Self::Events, Self::Conditions];

    /// The word in arguments and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Events => "events",
            Self::Conditions => "conditions",
        }
    }
}

impl std::str::FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is none of lock, events, conditions"))
    }
}

/// An announced interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// What is announced.
    pub kind: Kind,
    /// Who said so.
    pub source: Source,
    /// The source's own word, such as `SystemMaintenance.Reboot`.
    pub word: String,
    /// When this process learnt of it.
    pub noticed_at: Timestamp,
    /// When it comes.
    pub ends_at: Timestamp,
}

impl Notice {
    /// What the claim remembers; none when it is not that.
    #[must_use]
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        let text = claim.annotations().get(annotation::INTERRUPTION)?;
        serde_json::from_str(text).ok()
    }

    /// Whether somebody evacuates the claim now.
    #[must_use]
    pub fn evacuates(claim: &NodeClaim, now: Timestamp) -> bool {
        Self::of(claim).is_some_and(|it| it.is_urgent(now))
    }

    /// The claim with this notice.
    #[must_use]
    pub fn put(&self, claim: &NodeClaim) -> NodeClaim {
        let mut claim = claim.clone();
        if let Ok(text) = serde_json::to_string(self) {
            let key = annotation::INTERRUPTION.to_owned();
            claim.annotations_mut().insert(key, text);
        }
        claim
    }

    /// The claim without any.
    #[must_use]
    pub fn remove(claim: &NodeClaim) -> NodeClaim {
        let mut claim = claim.clone();
        claim.annotations_mut().remove(annotation::INTERRUPTION);
        claim
    }

    /// Whether this is news to one who knows `known`: the same said again is not, nor is what has more time.
    #[must_use]
    pub fn changes(&self, known: &Self) -> bool {
        let is_moved = self.kind == Kind::Maintenance
            && (self.kind, self.source) == (known.kind, known.source)
            && self.word == known.word
            && self.ends_at != known.ends_at;
        let is_sooner = self.kind <= known.kind && self.ends_at < known.ends_at;
        self.kind < known.kind || is_sooner || is_moved
    }

    /// Whether it is evacuated without asking anybody.
    #[must_use]
    pub fn is_urgent(&self, now: Timestamp) -> bool {
        self.kind != Kind::Maintenance || self.ends_at.duration_since(now) <= URGENT_WITHIN
    }

    /// When the drain must begin, ready or not: a short notice is halved between boot and drain.
    #[must_use]
    pub fn drains_at(&self) -> Timestamp {
        let length = self.ends_at.duration_since(self.noticed_at);
        let reserve = DRAIN_RESERVE.min(length / 2);
        self.ends_at.saturating_sub(reserve).unwrap_or(self.ends_at)
    }

    /// When pods are deleted whatever protects them.
    #[must_use]
    pub fn forces_at(&self) -> Timestamp {
        let length = self.ends_at.duration_since(self.noticed_at);
        let reserve = END_RESERVE.min(length / 4);
        self.ends_at.saturating_sub(reserve).unwrap_or(self.ends_at)
    }
}

impl fmt::Display for Notice {
    /// As `spot_reclaim until 2026-08-20T10:00:00Z (lock: Recycling)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, source) = (self.kind.as_str(), self.source.as_str());
        let at = kerf_api::time::whole_seconds(self.ends_at);
        write!(f, "{kind} at {at} ({source}: {})", self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn notice(kind: Kind, noticed: i64, ends: i64) -> Notice {
        Notice {
            kind,
            source: Source::Events,
            word: "w".to_owned(),
            noticed_at: at(noticed),
            ends_at: at(ends),
        }
    }

    #[test]
    fn a_notice_survives_its_annotation_and_nonsense_is_none() {
        let claim = NodeClaim::new("general-1", Default::default());
        let notice = notice(Kind::Reclaim, 0, 300);

        let noted = notice.put(&claim);

        assert_eq!(Notice::of(&noted), Some(notice));
        assert_eq!(Notice::of(&Notice::remove(&noted)), None);
        let mut strange = claim;
        strange
            .annotations_mut()
            .insert(annotation::INTERRUPTION.to_owned(), "{".to_owned());
        assert_eq!(Notice::of(&strange), None);
    }

    #[test]
    fn the_same_said_again_later_changes_nothing_and_what_comes_sooner_does() {
        let lock = notice(Kind::Reclaim, 0, 300);
        let maintenance = notice(Kind::Maintenance, 0, 9000);

        for (new, known, is_news) in [
            (notice(Kind::Reclaim, 15, 315), &lock, false),
            (notice(Kind::Reclaim, 15, 200), &lock, true),
            (notice(Kind::Maintenance, 15, 100), &lock, false),
            (notice(Kind::Reclaim, 15, 315), &maintenance, true),
            (notice(Kind::Maintenance, 15, 9000), &maintenance, false),
            (notice(Kind::Maintenance, 15, 99_000), &maintenance, true),
        ] {
            assert_eq!(new.changes(known), is_news, "{new} after {known}");
        }
    }

    #[test]
    fn the_drain_gets_its_part_of_a_long_and_of_a_short_notice() {
        let long = notice(Kind::Reclaim, 0, 300);
        let short = notice(Kind::Reclaim, 0, 40);

        assert_eq!((long.drains_at(), long.forces_at()), (at(180), at(280)));
        assert_eq!((short.drains_at(), short.forces_at()), (at(20), at(30)));
    }

    #[test]
    fn maintenance_is_polite_until_it_is_near() {
        let maintenance = notice(Kind::Maintenance, 0, 3600);

        assert!(!maintenance.is_urgent(at(2699)));
        assert!(maintenance.is_urgent(at(2700)));
        assert!(notice(Kind::Failure, 0, 3600).is_urgent(at(0)));
    }
}
