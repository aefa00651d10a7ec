//! `kerf explain`: why a pod waits or is where it is, why a node stays, what keeps a pool from growing.
//!
//! Of a cluster it reads what the controller itself wrote down, conditions and events, and decides nothing ([`live`]).
//! With manifests it decides as `kerf simulate` does ([`planned`]). Both tell a [`story`].

pub(crate) mod args;
mod live;
mod planned;
mod story;

use std::process::ExitCode;

use crate::exit;
use crate::explain::args::{Explain, Output};
use crate::explain::story::Story;
use crate::simulate::complaint::Complaint;
use crate::simulate::terminal::Terminal;
use crate::simulate::{end, refuse};

/// Runs and says how the process ends.
pub(crate) fn run(args: &Explain) -> ExitCode {
    let story = if args.files.is_empty() {
        match live::tell(args) {
            Ok(story) => story,
            Err(error) => return exit::code(Err(error), &[]),
        }
    } else {
        match planned::tell(args) {
            Ok(story) => story,
            Err(complaints) => return refuse(&complaints),
        }
    };
    let text = match args.output {
        Output::Text => Ok(story.text(&Terminal::of(&args.source.look))),
        Output::Json => json(&story),
    };
    end(text, exit::OK)
}

fn json(story: &Story) -> Result<String, Vec<Complaint>> {
    serde_json::to_string(story)
        .map(|json| json + "\n")
        .map_err(|error| vec![Complaint::of("the answer", &error.to_string())])
}
