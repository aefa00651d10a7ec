//! What upstream Karpenter answered, held against our own answers.
//!
//! The files come from the measuring program that runs upstream's Go code; their format is explained there. A difference
//! that we want is named in [`EXCEPTIONS`] with its reason; any other is a mismatch.

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
    #[arg(long, value_name = "FILE", required = true)]
    requirements: Option<PathBuf>,
}

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
    match &args.requirements {
        Some(path) => check(path),
        None => bail!("no file to check; give --requirements FILE"),
    }
}

fn check(path: &Path) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let vectors: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let differences = requirements::differences(&vectors)
        .with_context(|| format!("{} is no file of requirement vectors", path.display()))?;
    report(&vectors, &differences)
}

/// Prints what differs, the counts last.
fn report(vectors: &Value, differences: &[(usize, Mismatch)]) -> Result<()> {
    let mut exceptions = 0;
    let mut mismatches = 0;
    for (idx, mismatch) in differences {
        let case = &vectors["cases"][*idx];
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
    println!("cases={}", vectors["cases"].as_array().map_or(0, Vec::len));
    println!("exceptions={exceptions}");
    println!("mismatches={mismatches}");
    if mismatches > 0 {
        bail!("{mismatches} answers differ from upstream's");
    }
    Ok(())
}
