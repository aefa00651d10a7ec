//! `kerf simulate`: what would be launched for manifests, by the controller's own index and planner, offline.
//!
//! The flow: [`crate::document`] reads manifests, [`what_if`] changes them, [`objects`] gives them types, [`workload`] makes
//! pods, [`world`] fills the index and plans, [`report`] is the answer, with [`disruption`] if
//! that was asked, and [`table`] and [`html`] show it. A manifest
//! that cannot be used is a [`complaint::Complaint`] with file, line, object, field and next step.

pub(crate) mod args;
mod check;
mod classes;
pub(crate) mod complaint;
pub(crate) mod diff;
mod disruption;
mod html;
mod objects;
mod overlays;
mod policies;
mod report;
pub(crate) mod table;
pub(crate) mod terminal;
mod what_if;
mod workload;
pub(crate) mod world;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::document::{self, Document};
use crate::exit;
use crate::simulate::args::{Ask, Output, Simulate, Source, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::report::Report;
use crate::simulate::terminal::Terminal;
use crate::simulate::world::Planned;

/// Runs and says how the process ends.
pub(crate) fn run(args: &Simulate) -> ExitCode {
    if args.print_schema {
        return end(report::schema(), exit::OK);
    }
    let report = match simulate(&args.files, args.ask, &args.source, &args.what_if) {
        Ok(report) => report,
        Err(complaints) => return refuse(&complaints),
    };
    let code = if report.summary.unschedulable > 0 {
        exit::FOUND
    } else {
        exit::OK
    };
    let text = match args.output {
        Output::Table => Ok(table::render(&report, &Terminal::of(&args.source.look))),
        Output::Json => json(&report),
        Output::Html => json(&report).map(|json| html::page(&report, &json)),
    };
    end(text, code)
}

/// The whole way from manifests to the answer.
fn simulate(
    files: &[PathBuf],
    ask: Ask,
    source: &Source,
    what_if: &WhatIf,
) -> Result<Report, Vec<Complaint>> {
    decided(files, ask, source, what_if).map(Planned::report)
}

/// As far as the decisions.
pub(crate) fn decided(
    files: &[PathBuf],
    ask: Ask,
    source: &Source,
    what_if: &WhatIf,
) -> Result<Planned, Vec<Complaint>> {
    let mut items = read(files)?;
    what_if::change(&mut items, what_if)?;
    let refused = check::refused(&items)?;
    if !refused.is_empty() {
        return Err(refused);
    }
    let objects = objects::Objects::parse(&items)?;
    world::plan(&items, objects, ask, source, what_if)
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

fn json(report: &Report) -> Result<String, Vec<Complaint>> {
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
