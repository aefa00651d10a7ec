//! One decision, with the policies: decide, ask about the replacements, decide again with what they said.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::{Command, Decision, DisruptionSettings, decide, validate};
use kerf_core::ids::NodePoolName;
use kerf_core::plan::{Plan, PlannedClaim};
use kerf_core::preferences::Preferences;
use kerf_core::schedule::Homes;
use kerf_core::snapshot::Snapshot;
use kerf_policy::{PolicyRun, ROUNDS_MAX, consult, consult_prices};

use crate::context::Context;
use crate::policies::report::Reporter;
use crate::provision::rounds::{self, Question};

/// What to start, and what to say of the rest.
#[derive(Debug)]
pub struct Decided {
    /// The world that it was decided on.
    pub snapshot: Arc<Snapshot>,
    /// The decision.
    pub decision: Decision,
}

/// Decides about the snapshot. Blocks for as long as the search and the policies take.
#[must_use]
pub fn with_policies(snapshot: Arc<Snapshot>, context: &Context, now: Timestamp) -> Decided {
    let question = Question {
        snapshot: &snapshot,
        homes: &Homes::new(),
        registry: context.policies.registry(),
        region: &context.settings.region,
        reason: "consolidate",
        now,
    };
    let settings = &context.settings.disruption;
    let reporter = Reporter::of(context);
    let decision = decide_with(&question, settings, &mut |class, run| {
        reporter.run(run, class);
    });
    Decided { snapshot, decision }
}

/// As [`with_policies`], for a caller without a cluster; `told` hears of every run of a policy, with its class.
#[must_use]
pub fn decide_with(
    question: &Question<'_>,
    settings: &DisruptionSettings,
    told: &mut dyn FnMut(&str, &PolicyRun),
) -> Decision {
    let Question {
        snapshot,
        registry,
        now,
        ..
    } = *question;
    let mut preferences = Preferences::none();
    let occasion = question.occasion();
    let prices = consult_prices(registry, snapshot, &mut preferences, occasion);
    rounds::report_prices(&prices, snapshot, told);
    let barred: BTreeSet<&NodePoolName> = prices.blocked.iter().map(|(pool, _)| pool).collect();
    let mut decision = decide(snapshot, &preferences, settings, now);
    for round in 1..=ROUNDS_MAX {
        let plan = Plan {
            new_claims: replacements(&decision),
            ..Plan::default()
        };
        if plan.new_claims.is_empty() {
            break;
        }
        let asked = consult(registry, snapshot, &plan, &mut preferences, occasion);
        rounds::report(&asked, &plan, told);
        if asked.is_changed && round < ROUNDS_MAX {
            decision = decide(snapshot, &preferences, settings, now);
            continue;
        }
        let blocked = asked.blocked.iter().map(|(index, _)| *index).collect();
        withhold(&mut decision, &blocked, asked.is_changed, &barred);
        break;
    }
    decision
}

fn replacements(decision: &Decision) -> Vec<PlannedClaim> {
    let all = decision.commands.iter().flat_map(|it| &it.replacements);
    all.cloned().collect()
}

/// Takes out commands with a replacement that a policy did not agree to. Pure.
fn withhold(
    decision: &mut Decision,
    blocked: &BTreeSet<usize>,
    is_open: bool,
    barred: &BTreeSet<&NodePoolName>,
) {
    let mut index = 0;
    decision.commands.retain(|command| {
        let first = index;
        index += command.replacements.len();
        let is_blocked = (first..index).any(|it| blocked.contains(&it));
        let is_barred = command
            .replacements
            .iter()
            .any(|it| barred.contains(&it.pool));
        let has_open_question = is_open && !command.replacements.is_empty();
        let is_withheld = is_blocked || is_barred || has_open_question;
        if is_withheld {
            tracing::warn!(%command, "withheld: a policy does not agree to the replacement");
        }
        !is_withheld
    });
}

/// The commands that may start now, and when those that wait may. Consolidation takes only nodes that have been quiet for
/// `quiet`, also where consolidateAfter is shorter.
///
/// Karpenter: differs, because it decides, waits 15 s and decides again; here a decision is carried out at once, on nodes
/// that showed the same quiet before it.
#[must_use]
pub fn ripe(
    commands: Vec<Command>,
    snapshot: &Snapshot,
    quiet: SignedDuration,
    now: Timestamp,
) -> (Vec<Command>, Option<Timestamp>) {
    let mut next: Option<Timestamp> = None;
    let mut ripe = Vec::new();
    for command in commands {
        let due = quiet_at(&command, snapshot, quiet).filter(|at| *at > now);
        match due {
            Some(at) => next = Some(next.map_or(at, |next| next.min(at))),
            None => ripe.push(command),
        }
    }
    (ripe, next)
}

/// The commands that still hold on the newest snapshot: policies and a long search take seconds, in which pods come. What
/// does not hold is decided anew, as the change that broke it calls for a decision anyway.
#[must_use]
pub fn still_valid(commands: Vec<Command>, context: &Context) -> Vec<Command> {
    if commands.is_empty() {
        return commands;
    }
    let settings = &context.settings.disruption;
    let answers = validate(
        &commands,
        &context.snapshot(),
        settings,
        crate::clock::now(),
    );
    let judged = commands.into_iter().zip(answers);
    let valid = judged.filter_map(|(command, answer)| match answer {
        Ok(()) => Some(command),
        Err(why) => {
            context.metrics.disruption.refused(command.kind);
            tracing::info!(%command, reason = why.as_str(), %why, "not started: the cluster has changed since the decision");
            None
        }
    });
    valid.collect()
}

fn quiet_at(command: &Command, snapshot: &Snapshot, quiet: SignedDuration) -> Option<Timestamp> {
    if command.kind.reason() != DisruptionReason::Underutilized {
        return None;
    }
    let names: BTreeSet<_> = command.claims().collect();
    let nodes = snapshot.nodes.iter().filter(|node| {
        node.node_claim
            .as_ref()
            .is_some_and(|it| names.contains(it))
    });
    let since = nodes
        .filter_map(|node| node.last_pod_event.max(node.initialized_at))
        .max()?;
    since.checked_add(quiet).ok()
}

#[cfg(test)]
mod tests {
    use kerf_core::disruption::CommandKind;
    use kerf_core::disruption::command::CommandCandidate;
    use kerf_core::node::Node;
    use kerf_core::price::Price;

    use super::*;

    fn command(kind: CommandKind) -> Command {
        Command {
            kind,
            candidates: vec![CommandCandidate {
                node_claim: "general-1".into(),
                node: None,
                pool: "general".into(),
                price: Price::UNKNOWN,
                note: String::new(),
            }],
            replacements: Vec::new(),
            promises: Vec::new(),
            price_before: Price::ZERO,
            price_after: Price::ZERO,
        }
    }

    #[test]
    fn consolidation_waits_until_its_nodes_have_been_quiet_and_the_others_do_not() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let node = Node {
            node_claim: Some("general-1".into()),
            last_pod_event: Some(at(100)),
            ..Node::default()
        };
        let snapshot = Snapshot {
            nodes: vec![Arc::new(node)],
            ..Snapshot::default()
        };
        let look = |kind, now| {
            let quiet = SignedDuration::from_secs(5);
            let (ripe, next) = ripe(vec![command(kind)], &snapshot, quiet, at(now));
            (ripe.len(), next.map(Timestamp::as_second))
        };

        assert_eq!(look(CommandKind::Single, 104), (0, Some(105)));
        assert_eq!(look(CommandKind::Single, 105), (1, None));
        assert_eq!(look(CommandKind::Drift, 101), (1, None));
        assert_eq!(look(CommandKind::Empty, 101), (1, None));
    }
}
