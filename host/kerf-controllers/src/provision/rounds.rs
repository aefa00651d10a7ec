//! Planning with policies: plan, ask, plan again with what they said, until they say nothing new.

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::Timestamp;
use kerf_core::plan::{Plan, WorkBudget};
use kerf_core::preferences::Preferences;
use kerf_core::schedule::schedule;
use kerf_core::snapshot::Snapshot;
use kerf_policy::{Consultation, Now, Occasion, ROUNDS_MAX, RunResult, consult};

use crate::context::Context;
use crate::metrics::PolicyLabels;

/// The plan of a snapshot after at most [`ROUNDS_MAX`] rounds. `reason` is what policies are told.
///
/// Blocks for as long as the policies take: call it where a thread may block.
#[must_use]
pub fn plan(snapshot: &Snapshot, context: &Context, reason: &str, now: Timestamp) -> Plan {
    let mut preferences = Preferences::none();
    let occasion = Occasion {
        region: &context.settings.region,
        reason,
        now: Now {
            instant: Instant::now(),
            unix_secs: u32::try_from(now.as_second()).unwrap_or_default(),
        },
    };
    let mut plan = schedule(snapshot, &preferences, WorkBudget::ROUND, now);
    for round in 1..=ROUNDS_MAX {
        let consultation = consult(
            context.policies.registry(),
            snapshot,
            &plan,
            &mut preferences,
            occasion,
        );
        report(&consultation, &plan, context);
        if !consultation.is_changed || round == ROUNDS_MAX {
            withhold(&mut plan, &consultation);
            break;
        }
        plan = schedule(snapshot, &preferences, WorkBudget::ROUND, now);
    }
    plan
}

/// Takes out the claims that a policy with failurePolicy Fail did not agree to.
fn withhold(plan: &mut Plan, consultation: &Consultation) {
    let blocked: BTreeSet<usize> = consultation
        .blocked
        .iter()
        .map(|(index, _)| *index)
        .collect();
    for (index, error) in &consultation.blocked {
        if let Some(claim) = plan.new_claims.get(*index) {
            tracing::warn!(nodepool = %claim.pool, pods = claim.pods.len(), %error, "NodeClaim withheld");
        }
    }
    let mut index = 0;
    plan.new_claims.retain(|_| {
        index += 1;
        !blocked.contains(&(index - 1))
    });
}

fn report(consultation: &Consultation, plan: &Plan, context: &Context) {
    for (index, run) in &consultation.runs {
        let class = plan
            .new_claims
            .get(*index)
            .map(|claim| claim.node_class.name.clone())
            .unwrap_or_default();
        let labels = PolicyLabels {
            nodeclass: class.clone(),
            policy: run.policy.clone(),
            result: run.result.class().to_owned(),
        };
        context.metrics.policy_calls.get_or_create(&labels).inc();
        if let RunResult::Failed(error) = &run.result {
            tracing::warn!(nodeclass = %class, policy = %run.policy, %error, "policy call failed");
        }
        for line in &run.log {
            tracing::info!(nodeclass = %class, policy = %run.policy, level = ?line.level, text = %line.text, "policy log");
        }
    }
}
