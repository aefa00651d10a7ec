//! Disruption: nodes that are not worth their price, or not what they should be, are removed or replaced.
//!
//! The decision is `kerf_core::disruption`'s; here it is carried out. One loop: move running commands on ([`running`],
//! [`step`], [`execute`]), take away what nobody carries out ([`leftovers`]), decide ([`decide`]), and start what was
//! decided. Another says why the rest stays ([`tell`]). What drifts is found in [`conditions`] and [`drift`].

pub mod conditions;
pub mod decide;
pub mod drift;
pub mod edit;
pub mod execute;
pub mod hash;
pub mod leftovers;
pub mod networks;
pub mod origin;
pub mod quiet;
pub mod record;
pub mod running;
pub mod step;
pub mod tell;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_core::disruption::Decision;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::clock;
use crate::context::Context;
use crate::disruption::decide::Decided;
use crate::disruption::running::Commands;
use crate::disruption::tell::{BudgetTeller, Kept};

/// Two looks at an unchanged cluster are at least this far apart.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// Running commands are looked at this often where no change rings (Karpenter: same).
const COMMAND_POLL: Duration = Duration::from_secs(1);
/// Two decisions are at least this far apart: a command that begins a second later costs less than the search.
const DECISION_PAUSE: Duration = Duration::from_secs(1);
/// After a decision, others get the core for this many times as long as it took.
const REST_FACTOR: u32 = 9;

/// Decides and carries out until the process ends.
///
/// Why the rest stays goes to `kept`, and from there to [`tell::run`].
pub async fn run(kept: watch::Sender<Kept>, context: Arc<Context>) {
    let mut changes = context.cluster.changes();
    let mut commands = Commands::adopt(&context);
    let mut teller = BudgetTeller::default();
    let (mut is_changed, mut due, mut rested) = (true, Instant::now(), Instant::now());
    loop {
        commands.advance(&context).await;
        leftovers::clear(&commands.candidates(), &context).await;
        let now = Instant::now();
        if now >= rested && (is_changed || now >= due) {
            is_changed = false;
            let Pass { took, pause } = pass(&mut commands, &mut teller, &kept, &context).await;
            rested = Instant::now() + (took * REST_FACTOR).max(DECISION_PAUSE);
            due = Instant::now() + pause;
        }
        sleep(PAUSE_MIN).await;
        let mut wake = due.max(rested);
        if is_changed {
            wake = rested;
        }
        if !commands.is_empty() {
            wake = wake.min(Instant::now() + COMMAND_POLL);
        }
        tokio::select! {
            changed = changes.changed() => is_changed |= changed.is_ok(),
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

struct Pass {
    /// What the decision took, without what it led to; with that, where something of it failed.
    took: Duration,
    /// After which time alone another is due.
    pause: Duration,
}

/// One decision and what follows at once.
async fn pass(
    commands: &mut Commands,
    teller: &mut BudgetTeller,
    kept: &watch::Sender<Kept>,
    context: &Arc<Context>,
) -> Pass {
    let (now, started) = (clock::now(), Instant::now());
    let poll = context.settings.disruption_poll;
    let Some(Decided { snapshot, decision }) = decided(context, now).await else {
        let took = started.elapsed();
        return Pass { took, pause: poll };
    };
    let Decision {
        commands: chosen,
        kept: staying,
        next_check,
        ..
    } = decision;
    let quiet = SignedDuration::try_from(context.settings.consolidation_quiet)
        .unwrap_or(SignedDuration::MAX);
    let (mut ripe, next) = decide::ripe(chosen, &snapshot, quiet, now);
    // A command of the last run whose candidates do not count as going yet holds them all the same.
    let held = commands.candidates();
    ripe.retain(|command| !command.claims().any(|claim| held.contains(claim.as_str())));
    let ripe = decide::still_valid(ripe, context);
    let mut took = started.elapsed();
    kept.send_replace(staying.into());
    teller.tell(&snapshot, context, now);
    drop(snapshot);
    // The next decision would mostly be the same, and fail as this one did.
    if !commands.start(ripe, context).await {
        took = started.elapsed();
    }
    let due = next.into_iter().chain(next_check).min();
    let pause = due.map_or(poll, |at| until(at, now).min(poll));
    Pass { took, pause }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// A decision may take seconds in a large cluster: it gets a thread of its own.
async fn decided(context: &Arc<Context>, now: Timestamp) -> Option<Decided> {
    let snapshot = context.snapshot();
    let shared = Arc::clone(context);
    let started = Instant::now();
    let decided =
        tokio::task::spawn_blocking(move || decide::with_policies(snapshot, &shared, now)).await;
    let seconds = started.elapsed().as_secs_f64();
    let decided = decided
        .inspect_err(|error| tracing::error!(%error, "a decision about disruption died: our bug; tried again"))
        .ok()?;
    let metrics = &context.metrics.disruption;
    metrics.decided(seconds, &decided.decision.report);
    Some(decided)
}
