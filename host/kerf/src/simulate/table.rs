//! The answer for people at a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kerf_core::quantity::Quantity;

use crate::simulate::report::{NewNode, PlannedPod, Report};
use crate::simulate::terminal::Terminal;

pub(crate) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";
pub(super) const RED: &str = "31";
pub(super) const GREEN: &str = "32";
pub(super) const YELLOW: &str = "33";
/// Between columns.
const GAP: usize = 2;
const TITLES: [&str; 9] = [
    "POOL",
    "INSTANCE TYPE",
    "ZONE",
    "CAPACITY",
    "NODES",
    "PODS",
    "CPU",
    "MEMORY",
    "PRICE/H",
];
/// Columns that go when the terminal is narrow, first to last.
const DISPENSABLE: [usize; 4] = [7, 6, 3, 2];
/// Columns after this one are numbers, which stand to the right.
const LAST_TEXT: usize = 3;
/// Names of workloads that are shown per reason.
const WORKLOADS_MAX: usize = 8;

/// The whole answer. Writing to a `String` cannot fail, so those results are dropped.
pub(crate) fn render(report: &Report, terminal: &Terminal) -> String {
    let mut out = String::new();
    if let Some(interrupted) = &report.interrupted {
        let text = format!("PARTIAL: interrupted {interrupted}");
        let _ = writeln!(out, "{}", terminal.paint(&text, YELLOW));
    }
    out += &headline(report, terminal);
    if !report.new_nodes.is_empty() {
        out.push('\n');
        let rows = rows(report);
        out.push_str(&grid(&TITLES, &DISPENSABLE, LAST_TEXT, &rows, terminal));
    }
    for node in &report.existing_nodes {
        let _ = write!(
            out,
            "\n{} takes {}",
            terminal.paint(&node.name, BOLD),
            workloads(&node.pods)
        );
    }
    if !report.existing_nodes.is_empty() {
        out.push('\n');
    }
    for claim in &report.surplus {
        let text = format!("NodeClaim {} goes: {}", claim.node_claim, claim.why);
        let _ = write!(out, "\n{}", wrap(&text, 0, terminal.width));
    }
    if !report.surplus.is_empty() {
        out.push('\n');
    }
    if let Some(disruption) = &report.disruption {
        out += &disruption.table(&report.currency, terminal);
    }
    if !report.unschedulable.is_empty() {
        let _ = writeln!(out, "\n{}", terminal.paint("UNSCHEDULABLE", RED));
    }
    for group in &report.unschedulable {
        let _ = writeln!(out, "  {}", terminal.paint(&workloads(&group.pods), BOLD));
        if group.pools.is_empty() {
            let _ = writeln!(out, "{}", wrap(&group.reason, 4, terminal.width));
        }
        for pool in &group.pools {
            let text = format!("pool {}: {}", pool.pool, pool.reason);
            let _ = writeln!(out, "{}", wrap(&text, 4, terminal.width));
        }
    }
    // What a pod without a place says already is not said twice.
    let is_said = |pool: &str| {
        let mut reasons = report.unschedulable.iter().flat_map(|group| &group.pools);
        reasons.any(|reason| reason.pool == pool)
    };
    let problems = report.pools.iter().filter_map(|pool| {
        let problem = pool.problem.as_ref().filter(|_| !is_said(&pool.name))?;
        Some(format!("NodePool {}: {problem}", pool.name))
    });
    let notes: Vec<String> = problems
        .chain(report.notes.iter().map(ToString::to_string))
        .collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "\n{}", terminal.paint("NOTES", YELLOW));
    }
    for note in notes {
        let _ = writeln!(out, "{}", wrap(&note, 2, terminal.width));
    }
    let _ = writeln!(
        out,
        "\n{}",
        terminal.paint(&format!("{}: {}", report.region, report.catalog), DIM)
    );
    out
}

fn headline(report: &Report, terminal: &Terminal) -> String {
    let summary = &report.summary;
    let mut parts = vec![format!(
        "{} new {}",
        summary.new_nodes,
        plural(summary.new_nodes, "node")
    )];
    if summary.on_existing_nodes > 0 {
        parts.push(format!("{} on nodes that exist", summary.on_existing_nodes));
    }
    let price = format!("{} {:.2} per hour", report.currency, summary.price_per_hour);
    let place = if summary.unschedulable == 0 {
        terminal.paint("every pod has a place", GREEN)
    } else {
        terminal.paint(&format!("{} without a place", summary.unschedulable), RED)
    };
    let pods = format!("{} {}", summary.pods, plural(summary.pods, "pod"));
    format!(
        "{}: {}, {price}; {place}\n",
        terminal.paint(&pods, BOLD),
        parts.join(", ")
    )
}

pub(super) fn plural(count: usize, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

/// One row per pool, type, zone and capacity type.
fn rows(report: &Report) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<[&str; 4], Vec<&NewNode>> = BTreeMap::new();
    for node in &report.new_nodes {
        let key = [
            &node.pool,
            &node.instance_type,
            &node.zone,
            &node.capacity_type,
        ]
        .map(String::as_str);
        groups.entry(key).or_default().push(node);
    }
    let rows = groups.into_iter().map(|(key, nodes)| {
        let pods: usize = nodes.iter().map(|node| node.pods.len()).sum();
        let price: Option<f64> = nodes.iter().map(|node| node.price_per_hour).sum();
        let mut row: Vec<String> = key.map(str::to_owned).to_vec();
        row.extend([
            nodes.len().to_string(),
            pods.to_string(),
            used(&nodes, "cpu"),
            used(&nodes, "memory"),
            price.map_or_else(|| "unknown".to_owned(), |price| format!("{price:.3}")),
        ]);
        row
    });
    rows.collect()
}

/// How much of the nodes is asked for.
fn used(nodes: &[&NewNode], resource: &str) -> String {
    let total = |of: &dyn Fn(&NewNode) -> Option<&String>| -> i128 {
        let amounts = nodes
            .iter()
            .filter_map(|node| Quantity::parse(of(node)?).ok());
        amounts.map(|it| i128::from(it.millis())).sum()
    };
    let (part, whole) = (
        total(&|node| node.requested.get(resource)),
        total(&|node| node.allocatable.get(resource)),
    );
    (part * 100)
        .checked_div(whole)
        .map_or_else(String::new, |percent| format!("{percent}%"))
}

/// Rows under titles. Columns after `last_text` are numbers, which stand to the right; the dispensable ones go, first to
/// last, until the rest fits.
pub(super) fn grid(
    titles: &[&str],
    dispensable: &[usize],
    last_text: usize,
    rows: &[Vec<String>],
    terminal: &Terminal,
) -> String {
    let mut columns: Vec<usize> = (0..titles.len()).collect();
    let width_of = |column: &usize| {
        let cells = rows.iter().map(|row| row[*column].chars().count());
        cells
            .chain([titles[*column].len()])
            .max()
            .unwrap_or_default()
    };
    for dispensable in dispensable {
        let total: usize = columns.iter().map(|column| width_of(column) + GAP).sum();
        if total > terminal.width + GAP {
            columns.retain(|column| column != dispensable);
        }
    }
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let (text, width) = (cell(*column), width_of(column));
                if *column <= last_text {
                    format!("{text:<width$}")
                } else {
                    format!("{text:>width$}")
                }
            })
            .collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut out = terminal.paint(&line(&|column| titles[column].to_owned()), BOLD) + "\n";
    for row in rows {
        out += &line(&|column| row[column].clone());
        out.push('\n');
    }
    out
}

/// `12 of Deployment shop/web, 1 of Job shop/migrate`
pub(crate) fn workloads(pods: &[PlannedPod]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        *counts.entry(&pod.workload).or_default() += 1;
    }
    let more = counts.len().saturating_sub(WORKLOADS_MAX);
    let shown = counts
        .iter()
        .take(WORKLOADS_MAX)
        .map(|(workload, count)| match *count {
            1 => (*workload).to_owned(),
            count => format!("{count} of {workload}"),
        });
    let mut shown: Vec<String> = shown.collect();
    if more > 0 {
        shown.push(format!("{more} more workloads"));
    }
    shown.join(", ")
}

/// Broken between words, with an indent; what has lines already keeps them.
pub(crate) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut lines = Vec::new();
    for (index, paragraph) in text.lines().enumerate() {
        let indent = if index == 0 { indent } else { indent + 2 };
        let mut line = " ".repeat(indent);
        for word in paragraph.split_whitespace() {
            let is_first = line.trim().is_empty();
            if !is_first && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
                line += word;
            } else {
                line += if is_first { "" } else { " " };
                line += word;
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}
