//! Proof that the oracle would find an error: rule errors are planted one by one, and each must be found.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use kerf_core::Plan;
use kerf_core::planted::{self, Bug};

use super::api::Api;
use super::case::Case;
use super::shrink::shrink;
use super::trial;

pub(super) fn run(cases: u64, seed: u64, shrunk: Option<&Path>) -> Result<()> {
    let control_plane = super::start()?;
    let api = Api::new(&control_plane)?;
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let started = Instant::now();
        let found = find(&api, bug, [cases, seed], shrunk)?;
        let seconds = started.elapsed().as_secs();
        match found {
            Ok(found) => println!(
                "{bug:?}: found at case {} of {cases} (seed {}), {} tried on the cluster, {seconds} s: {}",
                found.cases, found.seed, found.tried, found.mismatch
            ),
            Err(tried) => {
                println!(
                    "{bug:?}: NOT FOUND in {cases} cases, {tried} tried on the cluster, {seconds} s"
                );
                missed.push(bug);
            }
        }
    }
    println!(
        "planted={} found={}",
        Bug::ALL.len(),
        Bug::ALL.len() - missed.len()
    );
    if !missed.is_empty() {
        bail!("not found: {missed:?}");
    }
    Ok(())
}

#[derive(Debug)]
struct Found {
    seed: u64,
    cases: u64,
    tried: u64,
    mismatch: String,
}

/// The first case that shows the error, or how many were tried on the cluster in vain. Where the error changes nothing about the plan, the cluster need not be asked.
fn find(
    api: &Api,
    bug: Bug,
    [cases, seed]: [u64; 2],
    shrunk: Option<&Path>,
) -> Result<Result<Found, u64>> {
    let mut tried = 0;
    for idx in 0..cases {
        let case = Case::draw(seed + idx);
        let plan = |case: &Case| planted::with(bug, || trial::plan(case));
        let planned = plan(&case)?;
        if is_same(&planned.plan, &trial::plan(&case)?.plan) {
            continue;
        }
        tried += 1;
        let verdict = trial::run(api, &case, &planned);
        let verdict = verdict.with_context(|| format!("case {} with {bug:?}", seed + idx))?;
        if let Some(mismatch) = verdict.mismatches.first().cloned() {
            if let Some(folder) = shrunk {
                let (small, verdict) = shrink(api, &case, verdict, plan)?;
                let path = folder.join(format!("{bug:?}.yaml"));
                small.save(&path, &verdict.mismatches.join("\n"))?;
                println!(
                    "{bug:?}: {} of {} objects left in {}",
                    small.objects.len(),
                    case.objects.len(),
                    path.display()
                );
            }
            return Ok(Ok(Found {
                seed: seed + idx,
                cases: idx + 1,
                tried,
                mismatch: mismatch.lines().next().unwrap_or_default().to_owned(),
            }));
        }
    }
    Ok(Err(tried))
}

/// Whether both send the same pods to the same places, however much work it took.
fn is_same(left: &Plan, right: &Plan) -> bool {
    left.new_claims == right.new_claims
        && left.placements == right.placements
        && left.order == right.order
        && left.unschedulable == right.unschedulable
}
