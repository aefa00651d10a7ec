//! What upstream Karpenter answered, held against our own answers.
//!
//! The files come from the measuring program that runs upstream's Go code; their format is explained there. A difference
//! that we want is named in [`EXCEPTIONS`] with its reason; any other is a mismatch.

mod nodepool_hash;
mod requirements;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// More are counted, but the first few say what is wrong.
const SHOWN_MAX: usize = 10;

/// Differences from upstream that are decisions of ours: the part of a case, and why. None so far: the algebra is the
/// same on every value.
const EXCEPTIONS: &[Exception] = &[];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Check the algebra of requirements against this file.
    #[arg(long, value_name = "FILE", required_unless_present = "nodepool_hash")]
    requirements: Option<PathBuf>,
    /// Check the hash of NodePool templates against this file.
    #[arg(long, value_name = "FILE")]
    nodepool_hash: Option<PathBuf>,
}

/// Our answers to one file that differ, each with the number of its case.
type Differences = fn(&Value) -> Result<Vec<(usize, Mismatch)>>;

/// A difference from upstream that stays.
#[derive(Debug)]
struct Exception {
    /// What the decision is about; docs/decisions has the whole story.
    name: &'static str,
    /// The part of the answer that differs.
    part: &'static str,
    /// Whether a case is of the kind that the decision speaks of.
    covers: fn(&Value) -> bool,
}

/// One answer of ours that differs.
#[derive(Debug)]
struct Mismatch {
    part: &'static str,
    ours: String,
    upstream: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let files: [(&Option<PathBuf>, Differences); 2] = [
        (&args.requirements, requirements::differences),
        (&args.nodepool_hash, nodepool_hash::differences),
    ];
    let mut mismatches = 0;
    for (path, differences) in files {
        if let Some(path) = path {
            mismatches += check(path, differences)?;
        }
    }
    println!("mismatches={mismatches}");
    if mismatches > 0 {
        bail!("{mismatches} answers differ from upstream's");
    }
    Ok(())
}

fn check(path: &Path, differences: Differences) -> Result<usize> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let vectors: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let differences = differences(&vectors)
        .with_context(|| format!("{} is no file of such vectors", path.display()))?;
    Ok(report(&vectors, &differences))
}

/// The cases of a file: a list, or under `cases`.
fn cases(vectors: &Value) -> &[Value] {
    let list = vectors.as_array().or_else(|| vectors["cases"].as_array());
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Prints what differs and the counts; returns the mismatches.
fn report(vectors: &Value, differences: &[(usize, Mismatch)]) -> usize {
    let mut exceptions = 0;
    let mut mismatches = 0;
    for (idx, mismatch) in differences {
        let Some(case) = cases(vectors).get(*idx) else {
            continue;
        };
        let excepted = EXCEPTIONS
            .iter()
            .find(|exception| exception.part == mismatch.part && (exception.covers)(case));
        match excepted {
            Some(exception) => {
                exceptions += 1;
                println!("case {idx}: exception {}", exception.name);
            }
            None => {
                mismatches += 1;
                if mismatches <= SHOWN_MAX {
                    let Mismatch {
                        part,
                        ours,
                        upstream,
                    } = mismatch;
                    println!("case {idx}: {part}: ours {ours}, upstream {upstream}; {case}");
                }
            }
        }
    }
    println!("cases={}", cases(vectors).len());
    println!("exceptions={exceptions}");
    mismatches
}
