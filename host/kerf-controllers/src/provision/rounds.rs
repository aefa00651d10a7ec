//! Planning with policies: plan, ask, plan again with what they said, until they say nothing new.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use kerf_core::ids::NodePoolName;
use kerf_core::plan::{Plan, WorkBudget};
use kerf_core::preferences::Preferences;
use kerf_core::rehearsal;
use kerf_core::schedule::{Homes, Rounds};
use kerf_core::snapshot::Snapshot;
use kerf_policy::{
    ChainError, Consultation, Now, Occasion, PolicyRun, PriceConsultation, ROUNDS_MAX, Registry,
    consult, consult_prices,
};

use crate::context::Context;
use crate::policies::report::Reporter;

/// The plan of a snapshot after at most [`ROUNDS_MAX`] rounds. `reason` is what policies are told.
///
/// Blocks for as long as the policies take: call it where a thread may block.
#[must_use]
pub fn plan(
    snapshot: &Snapshot,
    homes: &Homes,
    context: &Context,
    reason: &str,
    now: Timestamp,
) -> Plan {
    let question = Question {
        snapshot,
        homes,
        registry: context.policies.registry(),
        region: &context.settings.region,
        reason,
        now,
    };
    let reporter = Reporter::of(context);
    plan_with(&question, &mut |class, run| {
        reporter.run(run, class);
    })
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The world.
    pub snapshot: &'a Snapshot,
    /// Where pods were planned before.
    pub homes: &'a Homes,
    /// The policies of all classes.
    pub registry: &'a Registry,
    /// The region, for policies.
    pub region: &'a str,
    /// What policies are told: provision, consolidate, simulate.
    pub reason: &'a str,
    /// The time, for policies that ask for it.
    pub now: Timestamp,
}

impl<'a> Question<'a> {
    /// What policies are told of the moment.
    pub(crate) fn occasion(&self) -> Occasion<'a> {
        Occasion {
            region: self.region,
            reason: self.reason,
            now: Now {
                instant: Instant::now(),
                unix_secs: u32::try_from(self.now.as_second()).unwrap_or_default(),
            },
        }
    }
}

/// As [`plan`], for claims that are planned without pods: `make` plans them anew with what the policies said.
#[must_use]
pub fn plan_claims(
    snapshot: &Snapshot,
    context: &Context,
    now: Timestamp,
    make: &mut dyn FnMut(&Preferences) -> Plan,
) -> Plan {
    let question = Question {
        snapshot,
        homes: &Homes::new(),
        registry: context.policies.registry(),
        region: &context.settings.region,
        reason: "provision",
        now,
    };
    let reporter = Reporter::of(context);
    plan_claims_with(&question, make, &mut |class, run| {
        reporter.run(run, class);
    })
}

/// As [`plan_claims`], for a caller without a cluster; `told` hears of every run of a policy, with its class.
#[must_use]
pub fn plan_claims_with(
    question: &Question<'_>,
    make: &mut dyn FnMut(&Preferences) -> Plan,
    told: &mut dyn FnMut(&str, &PolicyRun),
) -> Plan {
    ask(
        question,
        None,
        &mut |preferences, _| make(preferences),
        told,
    )
}

/// As [`plan`], for a caller without a cluster; `told` hears of every run of a policy, with its class.
#[must_use]
pub fn plan_with(question: &Question<'_>, told: &mut dyn FnMut(&str, &PolicyRun)) -> Plan {
    let Question {
        snapshot,
        homes,
        now,
        ..
    } = *question;
    let mut drafts = Rounds::about(snapshot);
    let mut draft =
        |preferences: &Preferences| drafts.schedule_from(preferences, homes, WorkBudget::ROUND);
    let mut make = |preferences: &Preferences, draft: Option<Plan>| match draft {
        Some(it) => rehearsal::rehearse(it, snapshot, preferences, homes, WorkBudget::ROUND, now),
        None => rehearsal::schedule(snapshot, preferences, homes, WorkBudget::ROUND, now),
    };
    ask(question, Some(&mut draft), &mut make, told)
}

/// Makes a plan, asks the policies about it, and makes it again with their answers. What they say of a draft holds too, so
/// the costlier plan is made when they have nothing to add to that, and of that very draft.
fn ask(
    question: &Question<'_>,
    draft: Option<&mut dyn FnMut(&Preferences) -> Plan>,
    make: &mut dyn FnMut(&Preferences, Option<Plan>) -> Plan,
    told: &mut dyn FnMut(&str, &PolicyRun),
) -> Plan {
    let Question {
        snapshot, registry, ..
    } = *question;
    let mut preferences = Preferences::none();
    let occasion = question.occasion();
    let prices = consult_prices(registry, snapshot, &mut preferences, occasion);
    report_prices(&prices, snapshot, told);
    let mut rounds = ROUNDS_MAX;
    let (mut agreed, mut said) = (None, None);
    if let Some(draft) = draft.filter(|_| has_selection(registry, snapshot)) {
        while rounds > 1 {
            rounds -= 1;
            let plan = draft(&preferences);
            let consultation = consult(registry, snapshot, &plan, &mut preferences, occasion);
            report(&consultation, &plan, told);
            if !consultation.is_changed {
                // Who failed is asked once more: one failure may be bad luck.
                if !consultation.has_failures() {
                    said = Some((plan.new_claims.clone(), consultation));
                }
                agreed = Some(plan);
                break;
            }
        }
    }
    let mut plan = make(&preferences, agreed);
    for round in 1..=rounds {
        // Most plans are the very draft: what was said of that needs not be asked again.
        let known = said.take().filter(|(claims, _)| *claims == plan.new_claims);
        let consultation = known.map(|(_, consultation)| consultation);
        let consultation = consultation.unwrap_or_else(|| {
            let consultation = consult(registry, snapshot, &plan, &mut preferences, occasion);
            report(&consultation, &plan, told);
            consultation
        });
        if !consultation.is_changed || round == rounds {
            withhold(&mut plan, &consultation, &prices);
            break;
        }
        plan = make(&preferences, None);
    }
    plan
}

fn has_selection(registry: &Registry, snapshot: &Snapshot) -> bool {
    snapshot.pools.iter().any(|pool| {
        let chain = registry.chain(&pool.template.node_class.name);
        chain.has_selection_for(&pool.name)
    })
}

/// Takes out the claims that a policy with failurePolicy Fail did not agree to.
fn withhold(plan: &mut Plan, consultation: &Consultation, prices: &PriceConsultation) {
    let by_claim: BTreeMap<usize, &ChainError> = consultation
        .blocked
        .iter()
        .map(|(index, error)| (*index, error))
        .collect();
    let by_pool: BTreeMap<&NodePoolName, &ChainError> = prices
        .blocked
        .iter()
        .map(|(pool, error)| (pool, error))
        .collect();
    let mut index = 0;
    plan.new_claims.retain(|claim| {
        let obstacle = by_claim.get(&index).or_else(|| by_pool.get(&claim.pool));
        index += 1;
        if let Some(error) = obstacle {
            tracing::warn!(nodepool = %claim.pool, pods = claim.pods.len(), %error, "NodeClaim withheld");
        }
        obstacle.is_none()
    });
}

pub(crate) fn report_prices(
    prices: &PriceConsultation,
    snapshot: &Snapshot,
    told: &mut dyn FnMut(&str, &PolicyRun),
) {
    for (name, run) in &prices.runs {
        let pool = snapshot.pools.iter().find(|pool| pool.name == *name);
        let class = pool
            .map(|pool| pool.template.node_class.name.as_str())
            .unwrap_or_default();
        told(class, run);
    }
}

pub(crate) fn report(
    consultation: &Consultation,
    plan: &Plan,
    told: &mut dyn FnMut(&str, &PolicyRun),
) {
    for (index, run) in &consultation.runs {
        let class = plan
            .new_claims
            .get(*index)
            .map(|claim| claim.node_class.name.as_str())
            .unwrap_or_default();
        told(class, run);
    }
}
