//! Which price is asked for next. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use kerf_core::ids::{InstanceTypeName, ZoneId};
use kerf_core::price::Price;
use tokio::time::Instant;

/// How a price is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// For one zone that stands for all.
    OnDemand,
    /// For all zones at once.
    Spot,
}

impl Kind {
    /// After this long it is asked again. On-demand prices change when a contract or a promotion does, the spot market
    /// by the hour.
    fn good_for(self) -> Duration {
        match self {
            Self::OnDemand => Duration::from_secs(12 * 60 * 60),
            Self::Spot => Duration::from_secs(60 * 60),
        }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) kind: Kind,
    pub(super) instance_type: InstanceTypeName,
}

/// Why a question is worth a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) family: String,
    /// One that sells the type.
    pub(super) zone: ZoneId,
    /// Whether a node is one; others only might be.
    pub(super) is_running: bool,
    /// What a vCPU of it costs, as far as that is known.
    pub(super) per_vcpu: Price,
}

pub(super) type Candidates = BTreeMap<Question, Candidate>;

type ByKind = BTreeMap<Kind, u32>;
type ByFamily<'a> = BTreeMap<(Kind, &'a str), u32>;

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The cloud answered, if only that it has no price.
    Answered,
    /// The account may not ask.
    Denied,
    /// Nothing was heard, or too much was asked.
    Failed,
}

/// The account's rights change when somebody changes them.
const DENIED_PAUSE: Duration = Duration::from_secs(60 * 60);
/// The first pause after a failure; each further one in a row doubles it.
const FAILED_PAUSE: Duration = Duration::from_secs(60);
/// An hour of trouble then costs some seven calls.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(30 * 60);

/// What was asked, and what must not be asked now. No longer than the region has types.
#[derive(Debug, Default)]
pub(super) struct Trickle {
    due_at: BTreeMap<Question, Instant>,
    pauses: BTreeMap<Kind, Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    failures: u32,
}

impl Trickle {
    /// What to ask now, if anything: what was never asked, else what was asked too long ago.
    pub(super) fn next(&self, candidates: &Candidates, now: Instant) -> Option<Question> {
        let open = candidates
            .iter()
            .filter(|(it, _)| !self.is_paused(it.kind, now));
        let (asked, new): (Vec<_>, Vec<_>) = open.partition(|(it, _)| self.due_at.contains_key(it));
        let (by_kind, by_family) = self.asked(candidates);
        // One of each family comes before the second of any, because the others follow the one: a discount is mostly
        // one of the family. Both markets take turns. By vCPU, because by themselves the smallest would come first,
        // which few pods want.
        let first = new.into_iter().min_by_key(|(question, it)| {
            let of_family = by_family.get(&(question.kind, it.family.as_str()));
            let of_family = of_family.copied().unwrap_or_default();
            let of_kind = by_kind.get(&question.kind).copied().unwrap_or_default();
            (!it.is_running, of_family, of_kind, it.per_vcpu, *question)
        });
        let stale = || {
            let due = asked
                .into_iter()
                .filter_map(|(it, _)| Some((it.kind, *self.due_at.get(it)?, it)));
            due.filter(|(_, due_at, _)| *due_at <= now).min()
        };
        first
            .map(|(question, _)| question)
            .or_else(|| stale().map(|(_, _, question)| question))
            .cloned()
    }

    /// Whether everything was asked once that may be asked.
    pub(super) fn is_round_over(&self, candidates: &Candidates, now: Instant) -> bool {
        let mut questions = candidates.keys();
        questions.all(|it| self.due_at.contains_key(it) || self.is_paused(it.kind, now))
    }

    /// Whether it is the first time in a row that the account may not ask.
    pub(super) fn note(&mut self, question: Question, outcome: Outcome, now: Instant) -> bool {
        let kind = question.kind;
        let before = self.pauses.get(&kind).map_or(0, |it| it.failures);
        let (pause, due_in) = match outcome {
            Outcome::Answered => {
                self.pauses.remove(&kind);
                self.due_at.insert(question, now + kind.good_for());
                return false;
            }
            // It was not asked: where the account may not ask for one, it may ask for none.
            Outcome::Denied => (DENIED_PAUSE, None),
            Outcome::Failed => {
                let pause = FAILED_PAUSE.saturating_mul(1 << before.min(5));
                // Others come first then, should it be this one that the cloud cannot answer.
                (pause.min(FAILED_PAUSE_MAX), Some(FAILED_PAUSE_MAX))
            }
        };
        if let Some(due_in) = due_in {
            self.due_at.insert(question, now + due_in);
        }
        let pause = Pause {
            until: now + pause,
            failures: before.saturating_add(1),
        };
        self.pauses.insert(kind, pause);
        outcome == Outcome::Denied && before == 0
    }

    fn is_paused(&self, kind: Kind, now: Instant) -> bool {
        self.pauses.get(&kind).is_some_and(|it| now < it.until)
    }

    /// How many were asked, of each market and of each family there.
    fn asked<'a>(&self, candidates: &'a Candidates) -> (ByKind, ByFamily<'a>) {
        let (mut by_kind, mut by_family) = (ByKind::new(), ByFamily::new());
        for (question, it) in candidates {
            if self.due_at.contains_key(question) {
                *by_kind.entry(question.kind).or_default() += 1;
                let of_family = by_family.entry((question.kind, it.family.as_str()));
                *of_family.or_default() += 1;
            }
        }
        (by_kind, by_family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn question(kind: Kind, name: &str) -> Question {
        Question {
            kind,
            instance_type: name.into(),
        }
    }

    fn row(kind: Kind, name: &str, per_vcpu: f64, is_running: bool) -> (Question, Candidate) {
        let candidate = Candidate {
            family: name.rsplit_once('.').unwrap().0.to_owned(),
            zone: "h".into(),
            is_running,
            per_vcpu: Price::from_per_hour(per_vcpu),
        };
        (question(kind, name), candidate)
    }

    /// Two families; one type of the dearer one runs.
    fn candidates() -> Candidates {
        let on_demand = |name, price, is_running| row(Kind::OnDemand, name, price, is_running);
        [
            on_demand("c.large", 0.1, false),
            on_demand("c.xlarge", 0.1, false),
            on_demand("g.large", 0.2, false),
            on_demand("g.xlarge", 0.2, true),
            row(Kind::Spot, "c.large", 0.1, false),
        ]
        .into()
    }

    /// What is asked when all is answered at once.
    fn order(trickle: &mut Trickle, candidates: &Candidates, now: Instant) -> Vec<String> {
        let mut asked = Vec::new();
        while let Some(next) = trickle.next(candidates, now) {
            asked.push(format!("{:?} {}", next.kind, next.instance_type));
            trickle.note(next, Outcome::Answered, now);
        }
        asked
    }

    #[test]
    fn what_runs_comes_first_then_one_of_each_family_in_turns_of_both_markets() {
        let (mut trickle, now) = (Trickle::default(), Instant::now());
        assert!(!trickle.is_round_over(&candidates(), now));

        let asked = order(&mut trickle, &candidates(), now);

        let expected = [
            "OnDemand g.xlarge",
            "Spot c.large",
            "OnDemand c.large",
            "OnDemand c.xlarge",
            "OnDemand g.large",
        ];
        assert_eq!(asked, expected);
        assert!(trickle.is_round_over(&candidates(), now));
    }

    #[test]
    fn spot_is_asked_again_after_an_hour_and_the_others_after_twelve() {
        let (mut trickle, now) = (Trickle::default(), Instant::now());
        order(&mut trickle, &candidates(), now);

        assert_eq!(order(&mut trickle, &candidates(), now + HOUR / 2).len(), 0);
        let asked = order(&mut trickle, &candidates(), now + HOUR);
        assert_eq!(asked, ["Spot c.large"]);
        let asked = order(&mut trickle, &candidates(), now + 12 * HOUR);
        assert_eq!(asked.len(), 5);
        assert_eq!(asked[4], "Spot c.large", "a price that lasts comes first");
    }

    #[test]
    fn a_market_that_may_not_be_asked_rests_for_an_hour_and_the_other_goes_on() {
        let (mut trickle, now) = (Trickle::default(), Instant::now());
        let next = trickle.next(&candidates(), now).unwrap();
        assert!(trickle.note(next.clone(), Outcome::Denied, now));

        let asked = order(&mut trickle, &candidates(), now);

        assert_eq!(asked, ["Spot c.large"]);
        assert!(trickle.is_round_over(&candidates(), now));
        let later = now + HOUR;
        let again = trickle.next(&candidates(), later).unwrap();
        assert_eq!(again, next);
        assert!(
            !trickle.note(again, Outcome::Denied, later),
            "it was said before"
        );
    }

    #[test]
    fn failures_in_a_row_double_the_pause_and_others_get_their_turn() {
        let (mut trickle, mut now) = (Trickle::default(), Instant::now());
        let only: Candidates = candidates()
            .into_iter()
            .filter(|(it, _)| it.kind == Kind::OnDemand)
            .collect();
        let mut asked = Vec::new();
        for pause in [1, 2, 4] {
            let next = trickle.next(&only, now).unwrap();
            asked.push(next.instance_type.to_string());
            trickle.note(next, Outcome::Failed, now);
            let before = Duration::from_secs(pause * 60 - 1);
            assert_eq!(trickle.next(&only, now + before), None);
            now += Duration::from_secs(pause * 60);
        }

        assert_eq!(asked, ["g.xlarge", "c.large", "c.xlarge"]);
        let next = trickle.next(&only, now).unwrap();
        trickle.note(next, Outcome::Answered, now);
        let again = trickle.next(&only, now + HOUR).unwrap();
        assert_eq!(&*again.instance_type, "g.xlarge", "what failed comes back");
    }
}
