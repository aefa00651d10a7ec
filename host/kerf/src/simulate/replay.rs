//! `--replay`: a trace played through: pods come and go, nodes are launched, consolidated and removed.
//!
//! Every decision is the controller's: the same plan for pods that wait, the same decision about nodes that exist. What
//! happens between two decisions is simple here: a node is there as soon as it is launched, and whatever was decided is done
//! at once ([`stage`]). What is not played: interruptions, drift, expiry and CapacityBuffers.

mod stage;
pub(crate) mod timeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_controllers::disruption::decide::decide_with;
use kerf_controllers::provision::rounds::plan_with;
use kerf_core::disruption::DisruptionSettings;
use kerf_core::pod::Pod;
use kerf_core::schedule::Homes;
use kerf_core::snapshot::Snapshot;
use kerf_policy::PolicyRun;

use crate::simulate::complaint::Complaint;
use crate::simulate::replay::stage::Stage;
use crate::simulate::replay::timeline::{Step, Timeline};
use crate::simulate::report::per_hour;
use crate::simulate::static_pools::StaticPools;
use crate::simulate::trace::Visit;
use crate::simulate::world::{Failures, Prepared};

/// Pods that come within this time are planned together, as the controller does at the latest (BATCH_MAX_DURATION).
const BATCH_SECS: i64 = 10;
/// Steps of a replay whose step nobody chose.
const STEPS_DEFAULT: i64 = 100;
/// More rows than anybody reads; a step that is this much too short is a mistake in its unit.
const STEPS_MAX: i64 = 100_000;
/// Decisions about existing nodes at the end of a step. Each keeps the budgets, so that it takes several to come to rest; a
/// step in which more are needed goes on in the next.
const PASSES_MAX: usize = 32;

/// What comes and goes, in order.
struct Script {
    /// By time, in order.
    arrivals: Vec<(i64, Arc<Pod>)>,
    departures: Vec<(i64, Arc<Pod>)>,
    first_secs: i64,
    last_secs: i64,
}

/// Plays the trace. `step_secs` is how often existing nodes are looked at, and how often the time line has a row.
/// `goes_on` hears before each step how many of how many are done, and says whether to go on.
///
/// # Errors
/// When the step is so short that there would be more rows than anybody reads.
pub(crate) fn play(
    world: &Prepared,
    step_secs: Option<i64>,
    goes_on: &dyn Fn(usize, usize) -> bool,
) -> Result<(Timeline, Vec<Complaint>), Complaint> {
    let (script, rest) = Script::of(&world.snapshot, &world.visits);
    let span_secs = (script.last_secs - script.first_secs).max(1);
    let step_secs = step_secs.unwrap_or_else(|| whole_minutes(span_secs / STEPS_DEFAULT));
    // The last event is in a step of its own when it is on the edge.
    let steps = span_secs / step_secs + 1;
    if steps > STEPS_MAX {
        let message = format!("makes {steps} steps of a trace of {span_secs} s");
        let complaint = Complaint::of(&format!("--step {step_secs}s"), &message);
        return Err(complaint.hint(&format!(
            "at most {STEPS_MAX} are played: take a longer step"
        )));
    }
    let steps = usize::try_from(steps).unwrap_or(usize::MAX);
    let mut play = Play {
        world,
        stage: Stage::new(rest, start_of(&world.snapshot), script.first_secs),
        failures: Failures::default(),
        is_at_rest: false,
    };
    let mut notes = Vec::new();
    play.begin(&mut notes);
    let mut timeline = Timeline::new(step_secs, steps);
    let (mut arrivals, mut departures) = (&script.arrivals[..], &script.departures[..]);
    for nth in 0..steps {
        if !goes_on(nth, steps) {
            break;
        }
        let from = script.first_secs + step_secs * i64::try_from(nth).unwrap_or(i64::MAX);
        let to = from + step_secs;
        play.events(to, &mut arrivals, &mut departures);
        play.consolidate(to);
        timeline.push(play.row(to - script.first_secs));
    }
    timeline.close(&play.stage);
    notes.extend(play.failures.0);
    Ok((timeline, notes))
}

/// At least a minute: nothing that a row could show happens faster.
fn whole_minutes(secs: i64) -> i64 {
    (secs / 60).max(1) * 60
}

/// A moment at which nothing that the manifests tell of lies in the future. The trace's zero is here.
fn start_of(snapshot: &Snapshot) -> Timestamp {
    let times = snapshot
        .nodes
        .iter()
        .flat_map(|node| [node.created_at, node.last_pod_event, node.initialized_at]);
    times.flatten().max().unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Script {
    /// Takes the trace's pods out of the snapshot; the rest waits from the beginning.
    fn of(snapshot: &Snapshot, visits: &BTreeMap<String, Visit>) -> (Self, Snapshot) {
        let mut rest = snapshot.clone();
        let mut script = Self {
            arrivals: Vec::new(),
            departures: Vec::new(),
            first_secs: i64::MAX,
            last_secs: i64::MIN,
        };
        rest.pending_pods.retain(|pod| {
            let Some(visit) = visits.get(&*pod.uid.text()) else {
                return !pod.is_virtual();
            };
            script.arrivals.push((visit.from_secs, Arc::clone(pod)));
            if let Some(until) = visit.until_secs {
                script.departures.push((until, Arc::clone(pod)));
            }
            false
        });
        for events in [&mut script.arrivals, &mut script.departures] {
            events.sort_by(|(a_at, a), (b_at, b)| (a_at, &a.uid).cmp(&(b_at, &b.uid)));
            for (at, _) in events.iter() {
                script.first_secs = script.first_secs.min(*at);
                script.last_secs = script.last_secs.max(*at);
            }
        }
        if script.arrivals.is_empty() {
            (script.first_secs, script.last_secs) = (0, 0);
        }
        (script, rest)
    }
}

struct Play<'a> {
    world: &'a Prepared,
    stage: Stage,
    failures: Failures,
    /// Whether the last decision found nothing to do, and nothing has changed since.
    is_at_rest: bool,
}

impl Play<'_> {
    /// Static nodes, and the pods of the manifests.
    fn begin(&mut self, notes: &mut Vec<Complaint>) {
        let now = self.stage.now();
        let snapshot = self.stage.snapshot(Vec::new());
        let homes = Homes::new();
        let failures = &mut self.failures;
        let mut told = |class: &str, run: &PolicyRun| failures.hear(class, run);
        let question = self.world.question(&snapshot, &homes, now);
        let pools = StaticPools::decide(&question, &mut told, notes);
        for claim in pools.made.values() {
            self.stage.launch(claim);
        }
        self.plan(true);
    }

    /// Everything that happens before a moment, batch by batch.
    fn events(
        &mut self,
        before: i64,
        arrivals: &mut &[(i64, Arc<Pod>)],
        departures: &mut &[(i64, Arc<Pod>)],
    ) {
        loop {
            let next = [arrivals.first(), departures.first()];
            let next = next.into_iter().flatten().map(|(at, _)| *at).min();
            let Some(at) = next.filter(|at| *at < before) else {
                break;
            };
            let until = (at + BATCH_SECS).min(before);
            // Whoever comes and goes within one batch was there: it comes first.
            let came = take_before(arrivals, until);
            self.stage.go_to(at);
            let has_arrivals = !came.is_empty();
            for (_, pod) in came {
                self.stage.arrive(Arc::clone(pod));
            }
            let due: Vec<&(i64, Arc<Pod>)> = take_before(departures, until).iter().collect();
            // Those that were there before make room first.
            let (later, now): (Vec<_>, Vec<_>) =
                due.into_iter().partition(|(_, pod)| self.stage.waits(pod));
            let has_room = !now.is_empty();
            for (_, pod) in now {
                self.stage.leave(pod);
            }
            if has_arrivals || (has_room && self.stage.has_waiting()) {
                self.plan(has_room);
            }
            for (_, pod) in later {
                self.stage.leave(pod);
            }
            self.is_at_rest = false;
        }
    }

    /// Plans for the pods that wait; those that had no place before only when `is_whole`, since nothing has changed for
    /// them otherwise.
    fn plan(&mut self, is_whole: bool) {
        let waiting = self.stage.waiting(is_whole);
        if waiting.is_empty() {
            return;
        }
        let snapshot = self.stage.snapshot(waiting);
        let homes = Homes::new();
        let failures = &mut self.failures;
        let mut told = |class: &str, run: &PolicyRun| failures.hear(class, run);
        let question = self.world.question(&snapshot, &homes, self.stage.now());
        let plan = plan_with(&question, &mut told);
        self.stage.carry_out(&plan);
    }

    /// What the controller does about nodes that exist until it comes to rest, at the end of a step.
    fn consolidate(&mut self, at: i64) {
        self.stage.go_to(at);
        self.plan(true);
        if self.is_at_rest {
            return;
        }
        let settings = DisruptionSettings::default();
        for _ in 0..PASSES_MAX {
            let snapshot = self.stage.snapshot(Vec::new());
            let homes = Homes::new();
            let failures = &mut self.failures;
            let mut told = |class: &str, run: &PolicyRun| failures.hear(class, run);
            let question = self.world.question(&snapshot, &homes, self.stage.now());
            let decision = decide_with(&question, &settings, &mut told);
            self.is_at_rest = decision.commands.is_empty() && decision.next_check.is_none();
            if decision.commands.is_empty() {
                break;
            }
            self.stage.disrupt(&decision.commands);
        }
    }

    fn row(&mut self, at_seconds: i64) -> Step {
        let figures = self.stage.take_figures();
        Step {
            at_seconds,
            arrived: figures.arrived,
            left: figures.left,
            running: self.stage.running(),
            pending: self.stage.pending(),
            nodes: self.stage.nodes(),
            launched: figures.launched,
            removed: figures.removed,
            moved: figures.moved,
            price_per_hour: per_hour(self.stage.price()),
        }
    }
}

/// Takes the events before a moment off the front.
fn take_before<'a>(events: &mut &'a [(i64, Arc<Pod>)], before: i64) -> &'a [(i64, Arc<Pod>)] {
    let count = events.partition_point(|(at, _)| *at < before);
    let (taken, rest) = events.split_at(count);
    *events = rest;
    taken
}
