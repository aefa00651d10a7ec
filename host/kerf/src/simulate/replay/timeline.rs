//! The answer of a replay, as `-o json` prints it, and as a table. Its schema is docs/reference/replay.schema.json.

use std::fmt::Write as _;

use kerf_core::price::Price;
use schemars::JsonSchema;
use serde::Serialize;

use crate::simulate::complaint::Complaint;
use crate::simulate::replay::stage::{Stage, Totals};
use crate::simulate::report::per_hour;
use crate::simulate::table::{BOLD, DIM, GREEN, RED, YELLOW, grid, plural, wrap};
use crate::simulate::terminal::Terminal;
use crate::simulate::world::Prepared;

/// Raised when a field changes its meaning or goes; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;
const SECS_PER_HOUR: f64 = 3600.0;
const TITLES: [&str; 9] = [
    "AFTER", "ARRIVED", "LEFT", "RUNNING", "PENDING", "NODES", "LAUNCHED", "REMOVED", "PRICE/H",
];
/// Columns that go when the terminal is narrow, first to last.
const DISPENSABLE: [usize; 4] = [7, 6, 2, 1];

/// The answer of `kerf simulate --replay`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replay {
    /// Version of this form.
    pub(crate) schema_version: u32,
    /// The region of zones and prices.
    pub(crate) region: String,
    /// The unit of all prices.
    pub(crate) currency: String,
    /// Where types and prices come from.
    pub(crate) catalog: String,
    /// What came of the trace.
    #[serde(flatten)]
    pub(crate) timeline: Timeline,
    /// What was assumed, ignored or looks wrong.
    pub(crate) notes: Vec<Complaint>,
}

/// What came of a trace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timeline {
    /// The figures of the whole.
    pub(crate) summary: Summary,
    /// How far it came, where it was ended before its end; then all figures are of that part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted: Option<String>,
    /// The state after each step.
    pub(crate) steps: Vec<Step>,
    /// Pods that never had a place, by reason.
    pub(crate) without_place: Vec<Homeless>,
    #[serde(skip)]
    steps_planned: usize,
}

/// The figures of a replay.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// How long it took, in the trace's time.
    pub(crate) seconds: i64,
    /// How often nodes that exist were looked at, in the trace's time.
    pub(crate) step_seconds: i64,
    /// Pods that came.
    pub(crate) arrived: usize,
    /// Pods that went.
    pub(crate) left: usize,
    /// Pods that never had a place.
    pub(crate) without_place: usize,
    /// The most pods that waited after a plan.
    pub(crate) pending_peak: usize,
    /// The most nodes.
    pub(crate) nodes_peak: usize,
    /// Nodes launched.
    pub(crate) launched: usize,
    /// Nodes removed.
    pub(crate) removed: usize,
    /// Pods that moved because their node was removed.
    pub(crate) moved: usize,
    /// What all nodes cost per hour on the average over the time.
    pub(crate) average_price_per_hour: f64,
    /// What all nodes cost per hour at the most.
    pub(crate) price_per_hour_peak: f64,
    /// What all of it costs.
    pub(crate) cost: f64,
}

/// The state after a step, and what happened in it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// Seconds after the first event of the trace.
    pub(crate) at_seconds: i64,
    /// Pods that came.
    pub(crate) arrived: usize,
    /// Pods that went.
    pub(crate) left: usize,
    /// Pods that run now.
    pub(crate) running: usize,
    /// Pods that wait now.
    pub(crate) pending: usize,
    /// Nodes now.
    pub(crate) nodes: usize,
    /// Nodes launched.
    pub(crate) launched: usize,
    /// Nodes removed.
    pub(crate) removed: usize,
    /// Pods that moved because their node was removed.
    pub(crate) moved: usize,
    /// What all nodes cost per hour now.
    pub(crate) price_per_hour: f64,
}

/// Pods that share the reason why they never had a place.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Homeless {
    /// How many.
    pub(crate) pods: usize,
    /// One of them.
    pub(crate) example: String,
    /// The last reason.
    pub(crate) reason: String,
}

impl Timeline {
    pub(super) fn new(step_secs: i64, steps: usize) -> Self {
        Self {
            summary: Summary {
                step_seconds: step_secs,
                ..Summary::default()
            },
            interrupted: None,
            steps: Vec::new(),
            without_place: Vec::new(),
            steps_planned: steps,
        }
    }

    pub(super) fn push(&mut self, step: Step) {
        let summary = &mut self.summary;
        summary.arrived += step.arrived;
        summary.left += step.left;
        summary.launched += step.launched;
        summary.removed += step.removed;
        summary.moved += step.moved;
        self.steps.push(step);
    }

    /// The figures of the whole, from what is on stage at the end.
    pub(super) fn close(&mut self, stage: &Stage) {
        let Totals {
            bill,
            secs,
            nodes_peak,
            pending_peak,
            price_peak_micros,
            homeless,
        } = stage.totals();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a figure for people; 15 digits of it are right"
        )]
        let (micro_secs, seconds) = (bill as f64, secs as f64);
        let cost = micro_secs / SECS_PER_HOUR / 1e6;
        let homeless = homeless.into_iter();
        self.without_place = homeless
            .map(|(reason, (pods, example))| Homeless {
                pods,
                example,
                reason,
            })
            .collect();
        self.without_place
            .sort_by(|a, b| (b.pods, &a.reason).cmp(&(a.pods, &b.reason)));
        if self.steps.len() < self.steps_planned {
            let (done, of) = (self.steps.len(), self.steps_planned);
            self.interrupted = Some(format!("after {done} of {of} steps"));
        }
        let summary = &mut self.summary;
        summary.seconds = secs;
        summary.without_place = self.without_place.iter().map(|it| it.pods).sum();
        summary.pending_peak = pending_peak;
        summary.nodes_peak = nodes_peak;
        summary.cost = cost;
        summary.average_price_per_hour = if secs > 0 {
            cost / (seconds / SECS_PER_HOUR)
        } else {
            0.0
        };
        summary.price_per_hour_peak = per_hour(Price::from_micros(price_peak_micros));
    }
}

impl Replay {
    /// The answer of a world that was played.
    pub(crate) fn of(world: Prepared, timeline: Timeline, notes: Vec<Complaint>) -> Self {
        let mut all = world.notes;
        all.extend(notes);
        Self {
            schema_version: SCHEMA_VERSION,
            region: world.types.region,
            currency: world.types.currency,
            catalog: world.types.source,
            timeline,
            notes: all,
        }
    }

    /// For people at a terminal. Writing to a `String` cannot fail, so those results are dropped.
    pub(crate) fn table(&self, terminal: &Terminal) -> String {
        let timeline = &self.timeline;
        let summary = &timeline.summary;
        let mut out = String::new();
        if let Some(interrupted) = &timeline.interrupted {
            let text = format!("PARTIAL: interrupted {interrupted}");
            let _ = writeln!(out, "{}", terminal.paint(&text, YELLOW));
        }
        let pods = format!("{} {}", summary.arrived, plural(summary.arrived, "pod"));
        let place = if summary.without_place == 0 {
            terminal.paint("every pod had a place", GREEN)
        } else {
            let text = format!("{} never had a place", summary.without_place);
            terminal.paint(&text, RED)
        };
        let _ = writeln!(
            out,
            "{} in {}: {} {:.2} per hour on the average, at most {} {} and {} {:.2} per hour; {place}",
            terminal.paint(&pods, BOLD),
            time(summary.seconds),
            self.currency,
            summary.average_price_per_hour,
            summary.nodes_peak,
            plural(summary.nodes_peak, "node"),
            self.currency,
            summary.price_per_hour_peak,
        );
        let _ = writeln!(
            out,
            "{} launched, {} removed, {} {} moved; {} {:.2} in all\n",
            summary.launched,
            summary.removed,
            summary.moved,
            plural(summary.moved, "pod"),
            self.currency,
            summary.cost
        );
        let rows: Vec<Vec<String>> = timeline.steps.iter().map(row).collect();
        out += &grid(&TITLES, &DISPENSABLE, 0, &rows, terminal);
        if !timeline.without_place.is_empty() {
            let _ = writeln!(out, "\n{}", terminal.paint("NEVER HAD A PLACE", RED));
        }
        for group in &timeline.without_place {
            let text = format!(
                "{} {}, such as {}: {}",
                group.pods,
                plural(group.pods, "pod"),
                group.example,
                group.reason
            );
            let _ = writeln!(out, "{}", wrap(&text, 2, terminal.width));
        }
        if !self.notes.is_empty() {
            let _ = writeln!(out, "\n{}", terminal.paint("NOTES", YELLOW));
        }
        for note in &self.notes {
            let _ = writeln!(out, "{}", wrap(&note.to_string(), 2, terminal.width));
        }
        let source = format!("{}: {}", self.region, self.catalog);
        let _ = writeln!(out, "\n{}", terminal.paint(&source, DIM));
        out
    }
}

fn row(step: &Step) -> Vec<String> {
    vec![
        time(step.at_seconds),
        step.arrived.to_string(),
        step.left.to_string(),
        step.running.to_string(),
        step.pending.to_string(),
        step.nodes.to_string(),
        step.launched.to_string(),
        step.removed.to_string(),
        format!("{:.3}", step.price_per_hour),
    ]
}

/// `2d 03:20:00`
fn time(seconds: i64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = match days {
        0 => String::new(),
        days => format!("{days}d "),
    };
    format!(
        "{days}{:02}:{:02}:{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The JSON Schema of [`Replay`].
pub(crate) fn schema() -> Result<String, Vec<Complaint>> {
    serde_json::to_string_pretty(&schemars::schema_for!(Replay))
        .map(|json| json + "\n")
        .map_err(|error| vec![Complaint::of("the schema", &error.to_string())])
}
