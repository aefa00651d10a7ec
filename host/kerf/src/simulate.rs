//! `kerf simulate`: what would be launched for manifests, by the controller's own index and planner, offline.
//!
//! The flow: [`crate::document`] reads manifests, [`what_if`] changes them, [`objects`] gives them types, [`workload`] makes
//! pods, [`world`] fills the index and plans (what [`static_pools`] make first), [`report`] is the answer, with [`disruption`] if
//! that was asked, and [`table`] and [`html`] show it. A manifest
//! that cannot be used is a [`complaint::Complaint`] with file, line, object, field and next step.

pub(crate) mod args;
mod buffers;
mod check;
mod classes;
pub(crate) mod complaint;
pub(crate) mod diff;
mod disruption;
mod html;
mod machine;
mod objects;
mod overlays;
mod policies;
mod replay;
mod report;
mod spread;
mod static_pools;
pub(crate) mod table;
pub(crate) mod terminal;
mod trace;
mod what_if;
mod workload;
pub(crate) mod world;

pub(crate) use objects::Objects;
pub(crate) use policies::source as policy_source;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::document::{self, Document};
use crate::exit;
use crate::simulate::args::{Ask, Output, Simulate, Source, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::replay::timeline::Replay;
use crate::simulate::report::Report;
use crate::simulate::terminal::Terminal;
use crate::simulate::world::{Planned, Prepared};
use crate::work::Work;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) ask: Ask,
    pub(crate) source: &'a Source,
    pub(crate) what_if: &'a WhatIf,
}

/// Runs and says how the process ends.
pub(crate) fn run(args: &Simulate) -> ExitCode {
    if args.print_schema {
        let schema = if args.replay {
            replay::timeline::schema()
        } else {
            report::schema()
        };
        return end(schema, exit::OK);
    }
    if args.replay {
        return play(args);
    }
    let work = Work::begin();
    let known = |planned: &Planned| {
        let interrupted = "before the nodes that exist were looked at".to_owned();
        let report = Report {
            interrupted: Some(interrupted),
            ..planned.report()
        };
        if let Ok(text) = form(args, &report) {
            work.knows(text);
        }
    };
    let report = simulate(&args.order(), &work, &known);
    work.end();
    let report = match report {
        Ok(report) => report,
        Err(complaints) => return refuse(&complaints),
    };
    let code = if report.summary.unschedulable > 0 {
        exit::FOUND
    } else {
        exit::OK
    };
    end(form(args, &report), code)
}

impl Simulate {
    /// What it asks for.
    pub(crate) fn order(&self) -> Order<'_> {
        Order {
            files: &self.files,
            ask: self.ask,
            source: &self.source,
            what_if: &self.what_if,
        }
    }
}

fn form(args: &Simulate, report: &Report) -> Result<String, Vec<Complaint>> {
    match args.output {
        Output::Table => Ok(table::render(report, &Terminal::of(&args.source.look))),
        Output::Json => json(report),
        Output::Html => json(report).map(|json| html::page(report, &json)),
    }
}

/// Plays a trace and says how the process ends.
fn play(args: &Simulate) -> ExitCode {
    if args.output == Output::Html {
        let complaint = Complaint::of("-o html", "a replay is no page");
        return refuse(&[complaint.hint("use -o table or -o json")]);
    }
    let work = Work::begin();
    let played = replayed(args, &work);
    work.end();
    let answer = match played {
        Ok(answer) => answer,
        Err(complaints) => return refuse(&complaints),
    };
    let code = if answer.timeline.interrupted.is_some() {
        exit::INTERRUPTED
    } else if answer.timeline.summary.without_place > 0 {
        exit::FOUND
    } else {
        exit::OK
    };
    let text = match args.output {
        Output::Json => json(&answer),
        Output::Table | Output::Html => Ok(answer.table(&Terminal::of(&args.source.look))),
    };
    end(text, code)
}

fn replayed(args: &Simulate, work: &Work) -> Result<Replay, Vec<Complaint>> {
    let step_secs = match args.step.map(|step| step.as_secs()) {
        Some(0) => {
            let complaint = Complaint::of("--step", "is less than a second");
            return Err(vec![complaint.hint("give one such as 10m or 1h")]);
        }
        secs => secs.map(|secs| i64::try_from(secs).unwrap_or(i64::MAX)),
    };
    let Some(trace) = &args.source.trace else {
        let complaint = Complaint::of("--replay", "there is no trace to play");
        return Err(vec![complaint.hint("give one with --trace FILE")]);
    };
    let world = prepared(&args.order(), work)?;
    if !world.has_times {
        let file = trace.display().to_string();
        let message = "there is no such column, so there is nothing to play";
        let complaint = Complaint {
            line: Some(1),
            field: "creation_time".to_owned(),
            ..Complaint::of(&file, message)
        };
        return Err(vec![
            complaint.hint("without --replay all of its pods are planned at once"),
        ]);
    }
    let goes_on = |done, of| work.step("replaying", done, of);
    let played = replay::play(&world, step_secs, &goes_on);
    let (timeline, notes) = played.map_err(|complaint| vec![complaint])?;
    Ok(Replay::of(world, timeline, notes))
}

/// The whole way from manifests to the answer.
fn simulate(
    order: &Order<'_>,
    work: &Work,
    known: &dyn Fn(&Planned),
) -> Result<Report, Vec<Complaint>> {
    decided(order, work, known).map(|it| it.report())
}

/// As far as the decisions. `known` hears of the plan before nodes that exist are looked at.
pub(crate) fn decided(
    order: &Order<'_>,
    work: &Work,
    known: &dyn Fn(&Planned),
) -> Result<Planned, Vec<Complaint>> {
    let mut world = prepared(order, work)?;
    if world.has_times {
        let message =
            "what the trace tells of time is left aside: all of its pods are planned at once";
        world
            .notes
            .push(Complaint::note(message).hint("--replay plays them"));
    }
    let (pods, nodes) = (
        world.snapshot.pending_pods.len(),
        world.snapshot.nodes.len(),
    );
    work.doing(&format!("planning {pods} pods"));
    let known = |planned: &Planned| {
        work.doing(&format!("looking at {nodes} nodes"));
        known(planned);
    };
    Ok(world::decide(world, order.ask, &known))
}

/// As far as everything is read.
pub(crate) fn prepared(order: &Order<'_>, work: &Work) -> Result<Prepared, Vec<Complaint>> {
    work.doing("reading");
    let trace = order.source.trace.as_deref().map(trace::read).transpose();
    let trace = trace.map_err(|complaint| vec![complaint])?;
    let mut items = read(order.files)?;
    work.doing(&format!("checking {} objects", items.len()));
    what_if::change(&mut items, order.what_if)?;
    let refused = check::refused(&items)?;
    if !refused.is_empty() {
        return Err(refused);
    }
    let objects = objects::Objects::parse(&items)?;
    world::prepare(&items, objects, trace, order)
}

/// The objects of the files; each of them must at least say what it is.
fn read(files: &[PathBuf]) -> Result<Vec<Document>, Vec<Complaint>> {
    let documents = document::read_all(files).map_err(|error| vec![Complaint::from(error)])?;
    if documents.is_empty() {
        let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
        let complaint = Complaint::of(&names.join(", "), "there is no object in it");
        return Err(vec![complaint.hint(complaint::WHAT_TO_GIVE)]);
    }
    let nameless = |document: &Document| {
        let is_named = !document.name().is_empty()
            || document.value["metadata"]["generateName"].is_string()
            || document.kind().starts_with("Kustomization");
        match (document.kind(), is_named) {
            ("", _) => Some("kind"),
            (_, false) => Some("metadata.name"),
            (_, true) => None,
        }
    };
    let complaints: Vec<Complaint> = documents
        .iter()
        .filter_map(|document| {
            let complaint = Complaint::at(document, nameless(document)?, "is missing");
            Some(complaint.hint("every document needs apiVersion, kind and metadata.name"))
        })
        .collect();
    if complaints.is_empty() {
        Ok(documents)
    } else {
        Err(complaints)
    }
}

fn json(report: &impl Serialize) -> Result<String, Vec<Complaint>> {
    serde_json::to_string(report)
        .map(|json| json + "\n")
        .map_err(|error| vec![Complaint::of("the report", &error.to_string())])
}

/// Prints an answer. A reader that went away, such as `head`, is no failure of ours.
pub(crate) fn end(text: Result<String, Vec<Complaint>>, code: u8) -> ExitCode {
    match text {
        Ok(text) => {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            ExitCode::from(code)
        }
        Err(complaints) => refuse(&complaints),
    }
}

pub(crate) fn refuse(complaints: &[Complaint]) -> ExitCode {
    let mut err = std::io::stderr().lock();
    for complaint in complaints {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(err, "error: {complaint}");
    }
    ExitCode::from(exit::FAILED)
}
