//! Whether the NodeClaims of a pool register: the latest four results of each pool, and the verdict on them.
//!
//! Informational: nothing is planned by it. The results outlive a restart in the controller's memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kerf_api::memory::REGISTRATIONS_MAX;
use kerf_api::nodeclaim::NodeClaim;
use kube::{Resource, ResourceExt};

/// This many failures among the latest results make a pool unhealthy (Karpenter: same, half of four).
const FAILURES_MAX: usize = REGISTRATIONS_MAX / 2;

/// Why a claim did not become a Node, in the words of its conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What the latest results say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Too little is known: what was said before stays.
    Open,
    /// Nodes register.
    Healthy,
    /// They do not; without a failure the one that was told before stays.
    Unhealthy(Option<Failure>),
}

/// The latest results of all pools, by the pool's uid.
#[derive(Debug, Default)]
pub struct Registrations(Mutex<BTreeMap<String, Record>>);

#[derive(Debug, Clone, Default)]
struct Record {
    results: Vec<bool>,
    /// Uids behind the latest results: a pass that is repeated counts once.
    claims: Vec<String>,
    failure: Option<Failure>,
}

impl Registrations {
    /// The claim's Node registered. A claim that no pool owns counts nowhere.
    pub fn succeeded(&self, claim: &NodeClaim) {
        self.record(claim, None);
    }

    /// The claim was given up.
    pub fn failed(&self, claim: &NodeClaim, failure: Failure) {
        self.record(claim, Some(failure));
    }

    fn record(&self, claim: &NodeClaim, failure: Option<Failure>) {
        let Some(pool) = pool_uid(claim) else { return };
        let uid = claim.uid().unwrap_or_default();
        self.with(|all| {
            let record = all.entry(pool).or_default();
            if record.claims.contains(&uid) {
                return;
            }
            push(&mut record.claims, uid);
            push(&mut record.results, failure.is_none());
            if failure.is_some() {
                record.failure = failure;
            }
        });
    }

    /// The verdict on a pool. `said_before` is its condition as far as that is known: where there are no results, such
    /// as after a restart without memory, it stands for them.
    #[must_use]
    pub fn verdict(&self, pool: &str, said_before: Option<bool>) -> Verdict {
        self.with(|all| {
            if let (None, Some(was_healthy)) = (all.get(pool), said_before) {
                let results = if was_healthy {
                    vec![true]
                } else {
                    vec![false; FAILURES_MAX]
                };
                all.insert(
                    pool.to_owned(),
                    Record {
                        results,
                        ..Record::default()
                    },
                );
            }
            all.get(pool).map_or(Verdict::Open, Record::verdict)
        })
    }

    /// The pool or its class changed: what was before says nothing about now.
    pub fn forget(&self, pool: &str) {
        self.with(|all| all.remove(pool));
    }

    /// All results, to be kept.
    #[must_use]
    pub fn results(&self) -> BTreeMap<String, Vec<bool>> {
        self.with(|all| {
            let results = all
                .iter()
                .map(|(pool, record)| (pool.clone(), record.results.clone()));
            results.filter(|(_, results)| !results.is_empty()).collect()
        })
    }

    /// Puts back what a predecessor kept, where nothing newer is known.
    pub fn restore(&self, kept: BTreeMap<String, Vec<bool>>) {
        self.with(|all| {
            for (pool, results) in kept {
                all.entry(pool).or_insert_with(|| Record {
                    results,
                    ..Record::default()
                });
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Record>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Record {
    fn verdict(&self) -> Verdict {
        let failures = self.results.iter().filter(|succeeded| !**succeeded).count();
        if failures >= FAILURES_MAX {
            return Verdict::Unhealthy(self.failure.clone());
        }
        // One failure among few results is no verdict, and neither is its end.
        if self.results.last() == Some(&true) {
            Verdict::Healthy
        } else {
            Verdict::Open
        }
    }
}

fn push<T>(list: &mut Vec<T>, item: T) {
    list.push(item);
    let surplus = list.len().saturating_sub(REGISTRATIONS_MAX);
    list.drain(..surplus);
}

/// The uid of the pool that made the claim.
fn pool_uid(claim: &NodeClaim) -> Option<String> {
    let kind = kerf_api::nodepool::NodePool::kind(&());
    let owners = claim.owner_references();
    owners
        .iter()
        .find(|owner| owner.kind == kind)
        .map(|owner| owner.uid.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn claim(uid: &str) -> NodeClaim {
        let mut claim = NodeClaim::new(uid, Default::default());
        claim.metadata.uid = Some(uid.to_owned());
        claim.metadata.owner_references = Some(vec![OwnerReference {
            kind: "NodePool".to_owned(),
            uid: "pool".to_owned(),
            ..OwnerReference::default()
        }]);
        claim
    }

    fn failure(message: &str) -> Failure {
        Failure {
            reason: "RegistrationFailed".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn two_failures_of_the_latest_four_make_a_pool_unhealthy_and_enough_successes_heal_it() {
        let all = Registrations::default();
        all.failed(&claim("1"), failure("first"));
        assert_eq!(all.verdict("pool", None), Verdict::Open);

        all.failed(&claim("2"), failure("second"));
        assert_eq!(
            all.verdict("pool", None),
            Verdict::Unhealthy(Some(failure("second")))
        );

        for uid in ["3", "4"] {
            all.succeeded(&claim(uid));
        }
        assert!(matches!(all.verdict("pool", None), Verdict::Unhealthy(_)));
        all.succeeded(&claim("5"));
        assert_eq!(all.verdict("pool", None), Verdict::Healthy);
    }

    #[test]
    fn a_claim_counts_once_however_often_its_pass_is_repeated() {
        let all = Registrations::default();
        all.failed(&claim("1"), failure("x"));
        all.failed(&claim("1"), failure("x"));

        assert_eq!(all.results()["pool"], [false]);
    }

    #[test]
    fn what_is_kept_over_a_restart_gives_the_same_verdict() {
        let before = Registrations::default();
        before.failed(&claim("1"), failure("x"));
        before.failed(&claim("2"), failure("x"));
        let after = Registrations::default();
        after.restore(before.results());

        assert_eq!(after.verdict("pool", Some(false)), Verdict::Unhealthy(None));
    }

    #[test]
    fn without_results_the_condition_stands_for_them() {
        let all = Registrations::default();

        assert_eq!(all.verdict("pool", Some(false)), Verdict::Unhealthy(None));
        all.forget("pool");
        assert_eq!(all.verdict("pool", None), Verdict::Open);
    }

    #[test]
    fn a_claim_that_no_pool_owns_counts_nowhere() {
        let all = Registrations::default();
        all.succeeded(&NodeClaim::new("x", Default::default()));

        assert!(all.results().is_empty());
    }
}
