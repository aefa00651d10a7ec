//! `kerf diff`: two simulations side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::exit;
use crate::simulate::Order;
use crate::simulate::args::{Diff, DiffOutput, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::report::{NewNode, Report};
use crate::simulate::terminal::Terminal;
use crate::work::Work;

/// What nodes are counted by.
type Count = BTreeMap<String, usize>;

/// Runs both and compares.
pub(crate) fn run(args: &Diff) -> ExitCode {
    if args.b.is_none() && args.what_if.is_empty() {
        let complaint = Complaint::of("kerf diff", "there is nothing to compare with");
        let hint = "give a second path, or a what-if such as --spot-out";
        return super::refuse(&[complaint.hint(hint)]);
    }
    let work = Work::begin();
    let simulate = |path: &PathBuf, what_if| {
        let order = Order {
            files: std::slice::from_ref(path),
            ask: args.ask,
            source: &args.source,
            what_if,
        };
        super::simulate(&order, &work, &|_| ())
    };
    let b = args.b.as_ref().unwrap_or(&args.a);
    let reports = simulate(&args.a, &WhatIf::default())
        .and_then(|first| Ok((first, simulate(b, &args.what_if)?)));
    work.end();
    let (a, b) = match reports {
        Ok(reports) => reports,
        Err(complaints) => return super::refuse(&complaints),
    };
    let code = if b.summary.unschedulable > 0 {
        exit::FOUND
    } else {
        exit::OK
    };
    let text = match args.output {
        DiffOutput::Table => table(&a, &b, &Terminal::of(&args.source.look)),
        DiffOutput::Json => as_json(&a, &b),
    };
    super::end(Ok(text), code)
}

fn counts(report: &Report) -> [(&'static str, Count); 4] {
    let by = |key: &dyn Fn(&NewNode) -> String| {
        let mut count = Count::new();
        for node in &report.new_nodes {
            *count.entry(key(node)).or_default() += 1;
        }
        count
    };
    let family = |node: &NewNode| {
        let name = node.instance_type.rsplit_once('.');
        name.map_or_else(
            || node.instance_type.clone(),
            |(family, _)| family.to_owned(),
        )
    };
    [
        ("pools", by(&|node| node.pool.clone())),
        ("zones", by(&|node| node.zone.clone())),
        ("families", by(&family)),
        ("capacityTypes", by(&|node| node.capacity_type.clone())),
    ]
}

fn as_json(a: &Report, b: &Report) -> String {
    let side = |report: &Report| {
        let mut side = json!({"summary": report.summary});
        if let Some(disruption) = &report.disruption {
            side["disruption"] = json!(disruption);
        }
        for (name, count) in counts(report) {
            side[name] = json!(count);
        }
        side
    };
    let change = b.summary.price_per_hour - a.summary.price_per_hour;
    format!(
        "{}\n",
        json!({"a": side(a), "b": side(b), "pricePerHourChange": change})
    )
}

fn table(a: &Report, b: &Report, terminal: &Terminal) -> String {
    let mut out = format!(
        "{}\n",
        terminal.paint(
            &format!("{:<34}{:>12}{:>12}{:>12}", "", "A", "B", "CHANGE"),
            "1"
        )
    );
    let (from, to) = (a.summary.price_per_hour, b.summary.price_per_hour);
    let label = format!("price per hour ({})", a.currency);
    let percent = if from > 0.0 {
        format!("  {:+.1}%", (to / from - 1.0) * 100.0)
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{label:<34}{from:>12.3}{to:>12.3}{:>+12.3}{percent}",
        to - from
    );
    let disruption = a.disruption.as_ref().zip(b.disruption.as_ref());
    if let Some((first, second)) = disruption {
        let (from, to) = (first.saving_per_hour, second.saving_per_hour);
        let label = format!("disruption saves ({})", a.currency);
        let _ = writeln!(out, "{label:<34}{from:>12.3}{to:>12.3}{:>+12.3}", to - from);
    }
    let mut line = |label: &str, from: usize, to: usize| {
        let change =
            i128::try_from(to).unwrap_or(i128::MAX) - i128::try_from(from).unwrap_or(i128::MAX);
        let change = if change == 0 {
            "=".to_owned()
        } else {
            format!("{change:+}")
        };
        let _ = writeln!(out, "{label:<34}{from:>12}{to:>12}{change:>12}");
    };
    let (first, second) = (&a.summary, &b.summary);
    line("nodes", first.new_nodes, second.new_nodes);
    line("pods on new nodes", first.on_new_nodes, second.on_new_nodes);
    line(
        "pods on nodes that exist",
        first.on_existing_nodes,
        second.on_existing_nodes,
    );
    line(
        "pods without a place",
        first.unschedulable,
        second.unschedulable,
    );
    if let Some((first, second)) = disruption {
        line("nodes that would go now", first.going(), second.going());
    }
    for ((title, from), (_, to)) in counts(a).into_iter().zip(counts(b)) {
        let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        for name in names {
            let count = |of: &Count| of.get(name).copied().unwrap_or_default();
            line(&format!("{title}: {name}"), count(&from), count(&to));
        }
    }
    out
}
