//! What would be done about nodes that exist: `--disrupt`. The decision is the controller's own, with its default settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kerf_core::disruption::command::{CommandCandidate, Promise, PromisedPlace};
use kerf_core::disruption::{Command, Decision};
use kerf_core::plan::PlacementTarget;
use kerf_core::price::Price;
use kerf_core::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;
use crate::simulate::report::{NewNode, new_node, per_hour, planned};
use crate::simulate::table::{BOLD, GREEN, plural, wrap};
use crate::simulate::terminal::Terminal;
use crate::simulate::world::Owners;

/// Names of nodes that the table shows in one line.
const NAMES_MAX: usize = 8;
/// Columns that the table's lines are indented by.
const INDENT: usize = 4;

/// What would be done about nodes that exist.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Disruption {
    /// What would be started now, in this order; all of it keeps the budgets of the NodePools.
    pub(crate) commands: Vec<GoingTogether>,
    /// Why every other NodeClaim stays.
    pub(crate) kept: Vec<Kept>,
    /// What all commands save per hour; negative when they cost, as drift may.
    pub(crate) saving_per_hour: f64,
    /// When waiting alone could change the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_check: Option<String>,
    /// Whether the search ended before everything was looked at.
    pub(crate) is_partial: bool,
}

/// Nodes that go together, and what is made before they do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GoingTogether {
    /// Empty, Drifted or Underutilized: what budgets know it by.
    pub(crate) reason: String,
    /// delete or replace.
    pub(crate) decision: String,
    /// What goes.
    pub(crate) nodes: Vec<Going>,
    /// What is launched first.
    pub(crate) replacements: Vec<NewNode>,
    /// Where each pod that must run again will have room.
    pub(crate) moves: Vec<Move>,
    /// What it saves per hour; negative when it costs.
    pub(crate) saving_per_hour: f64,
}

/// A node that goes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Going {
    /// Its NodeClaim.
    pub(crate) node_claim: String,
    /// Its Node, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Its NodePool.
    pub(crate) pool: String,
    /// What it costs; absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price_per_hour: Option<f64>,
    /// Why it goes.
    pub(crate) why: String,
}

/// A pod that moves.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Move {
    /// Namespace and name.
    pub(crate) pod: String,
    /// Kind, namespace and name of what it was made from.
    pub(crate) workload: String,
    /// The Node or NodeClaim that has room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Or the place in `replacements`, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replacement: Option<usize>,
}

/// A NodeClaim that stays.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    /// The NodeClaim.
    pub(crate) node_claim: String,
    /// Its Node, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Why: the text of its event.
    pub(crate) reason: String,
    /// When waiting alone ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
}

impl Disruption {
    /// The decision in the answer's words.
    pub(crate) fn of(decision: &Decision, snapshot: &Snapshot, owners: &Owners) -> Self {
        let names: BTreeMap<&str, &str> = snapshot
            .nodes
            .iter()
            .filter_map(|node| Some((node.node_claim.as_deref()?, node.name.as_deref()?)))
            .collect();
        let kept = decision.kept.iter().map(|it| Kept {
            node_claim: it.node_claim.to_string(),
            node: names.get(&*it.node_claim).map(ToString::to_string),
            reason: it.reason.to_string(),
            until: it.reason.ends_at().map(|at| at.to_string()),
        });
        let saving = decision.commands.iter().map(Command::saving_micros).sum();
        Self {
            commands: decision
                .commands
                .iter()
                .map(|it| going_together(it, owners))
                .collect(),
            kept: kept.collect(),
            saving_per_hour: signed_per_hour(saving),
            next_check: decision.next_check.map(|at| at.to_string()),
            is_partial: decision.is_partial,
        }
    }

    /// How many nodes go.
    pub(crate) fn going(&self) -> usize {
        self.commands.iter().map(|it| it.nodes.len()).sum()
    }

    /// For people at a terminal. Writing to a `String` cannot fail, so those results are dropped.
    pub(crate) fn table(&self, currency: &str, terminal: &Terminal) -> String {
        let (going, all) = (self.going(), self.going() + self.kept.len());
        let title = format!("{going} of {all} {} would go now", plural(all, "node"));
        let mut out = format!("\n{}", terminal.paint(&title, BOLD));
        if going > 0 {
            let effect = effect(self.saving_per_hour, currency);
            let _ = write!(out, ", which {}", terminal.paint(&effect, GREEN));
        }
        out.push('\n');
        for command in &self.commands {
            let names: Vec<&str> = command.nodes.iter().map(Going::name).collect();
            let mut line = format!("{} {}", command.decision, listed(&names));
            if !command.replacements.is_empty() {
                let replacements: Vec<&str> = command
                    .replacements
                    .iter()
                    .map(|it| it.instance_type.as_str())
                    .collect();
                let _ = write!(line, " by {}", listed(&replacements));
            }
            let moves = match command.moves.len() {
                0 => String::new(),
                1 => "1 pod moves; ".to_owned(),
                count => format!("{count} pods move; "),
            };
            let _ = write!(
                line,
                ": {}; {moves}{}",
                command.reason.to_lowercase(),
                effect(command.saving_per_hour, currency)
            );
            let _ = writeln!(out, "{}", wrap(&line, INDENT, terminal.width));
        }
        let mut stays: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for kept in &self.kept {
            let name = kept.node.as_deref().unwrap_or(&kept.node_claim);
            stays.entry(&kept.reason).or_default().push(name);
        }
        for (reason, names) in stays {
            let verb = if names.len() == 1 { "stays" } else { "stay" };
            let line = format!("{} {verb}: {reason}", listed(&names));
            let _ = writeln!(out, "{}", wrap(&line, INDENT, terminal.width));
        }
        out
    }
}

impl Going {
    fn name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.node_claim)
    }
}

/// `saves CNY 0.300 per hour`
fn effect(saving_per_hour: f64, currency: &str) -> String {
    let verb = if saving_per_hour < 0.0 {
        "costs"
    } else {
        "saves"
    };
    format!("{verb} {currency} {:.3} per hour", saving_per_hour.abs())
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(NAMES_MAX)
        .map(ToString::to_string)
        .collect();
    if names.len() > NAMES_MAX {
        shown.push(format!("{} more", names.len() - NAMES_MAX));
    }
    shown.join(", ")
}

fn going_together(command: &Command, owners: &Owners) -> GoingTogether {
    let nodes = command.candidates.iter().map(|it| {
        let CommandCandidate {
            node_claim,
            node,
            pool,
            price,
            note,
        } = it;
        Going {
            node_claim: node_claim.to_string(),
            node: node.as_ref().map(ToString::to_string),
            pool: pool.to_string(),
            price_per_hour: price.per_hour(),
            why: note.clone(),
        }
    });
    let replacements = command.replacements.iter();
    GoingTogether {
        reason: command.kind.reason().as_str().to_owned(),
        decision: command.decision().to_owned(),
        nodes: nodes.collect(),
        replacements: replacements.map(|it| new_node(it, owners)).collect(),
        moves: command
            .promises
            .iter()
            .map(|it| moved(it, owners))
            .collect(),
        saving_per_hour: signed_per_hour(command.saving_micros()),
    }
}

fn moved(promise: &Promise, owners: &Owners) -> Move {
    let pod = planned(&promise.pod, owners);
    let (node, replacement) = match &promise.place {
        PromisedPlace::Node(PlacementTarget::Node(name)) => (Some(name.to_string()), None),
        PromisedPlace::Node(PlacementTarget::InFlight(name)) => (Some(name.to_string()), None),
        PromisedPlace::Replacement(index) => (None, Some(*index)),
    };
    Move {
        pod: pod.name,
        workload: pod.workload,
        node,
        replacement,
    }
}

fn signed_per_hour(micros: i64) -> f64 {
    let amount = per_hour(Price::from_micros(micros.unsigned_abs()));
    if micros < 0 { -amount } else { amount }
}

/// What the question lacks or assumes, for the notes.
pub(crate) fn remarks(objects: &Objects) -> Vec<Complaint> {
    let mut remarks = Vec::new();
    if objects.node_claims.is_empty() {
        let note = Complaint::note("--disrupt: there is no NodeClaim among the manifests");
        remarks.push(note.hint("give a dump of a cluster: kerf snapshot -o cluster.json"));
    }
    let fresh = objects.budgets.iter().filter(|(_, it)| it.status.is_none());
    remarks.extend(fresh.map(|(_, budget)| {
        let name = budget.metadata.name.as_deref().unwrap_or_default();
        Complaint::note(&format!(
            "PodDisruptionBudget {name} has no status yet, and allows no eviction before it has one"
        ))
    }));
    remarks
}
