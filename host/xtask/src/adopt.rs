//! `cargo xtask adopt-fixture`: kerf takes over a cluster that both other providers for Alibaba Cloud have left behind.
//!
//! Nodes, claims and pools are made as those providers make them, the machines with their tags. `kerf adopt` is run as
//! a user would, then the controller for some minutes. Nothing may drift, go or be launched, and every object must be
//! looked after.

mod fixture;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use control_plane::Options;
use serde_json::{Value, json};

use crate::process;
use crate::rig::{Build, Rig, World};
use fixture::Provider;

/// A claim that is this old may drift because its type is no longer sold: early enough to matter here.
const TYPE_DRIFT_DELAY: [&str; 2] = ["--instance-type-drift-delay", "1m"];
/// Several comparisons of instances with claims within the run.
const COLLECTION_POLL: [&str; 2] = ["--garbage-collection-poll-duration", "30s"];
/// An orphan would go within the run.
const ORPHAN_GRACE: [&str; 2] = ["--orphan-grace-duration", "1m"];
const LOOK_EVERY: Duration = Duration::from_secs(2);
const SECS_PER_MINUTE: u64 = 60;
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Nodes of each provider.
    #[arg(long, default_value_t = 50)]
    nodes: usize,
    /// How long kerf runs.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Print only the JSON object.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

/// What must stay zero; names, so that a thing that comes and goes counts once.
#[derive(Debug, Default)]
struct Changes {
    drifted: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.no_build {
        process::build_all()?;
    }
    let mut rig = Rig::start("adopt", Build::Dev, Options::default(), WORLD)?;
    rig.api.delete("/apis/karpenter.sh/v1/nodepools/default")?;
    for provider in Provider::ALL {
        fixture::plant(&rig, provider, args.nodes)
            .with_context(|| format!("the fixture {}", provider.name()))?;
    }
    let planned = rig.run_kerf(&["adopt", "--dry-run"])?;
    if !args.json {
        print!("{planned}");
    }

    let before = rig.look()?;
    let flags = [TYPE_DRIFT_DELAY, COLLECTION_POLL, ORPHAN_GRACE].concat();
    rig.start_kerf(&flags)?;
    let mut changes = Changes::default();
    let ends = Instant::now() + Duration::from_secs(args.minutes * SECS_PER_MINUTE);
    while Instant::now() < ends {
        // A server that is too busy for one look is asked in the next.
        if let Ok(world) = rig.look() {
            changes.note(&before, &world);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let world = rig.look()?;
    changes.note(&before, &world);
    let calls = rig.ask_sim("/_sim/state")?;
    let total = |action: &str| calls["calls"][action]["total"].as_u64().unwrap_or_default();
    let launched = total("RunInstances") + total("CreateAutoProvisioningGroup");
    let reconciled = world.claims.iter().filter(|it| is_reconciled(it)).count();
    let pools = rig.api.list("/apis/karpenter.sh/v1/nodepools")?;
    let ready_pools = pools.iter().filter(|it| is_true(it, "Ready")).count();
    rig.kill_kerf();

    let (drifted, deleted) = (changes.drifted.len(), changes.deleted.len());
    println!(
        "{}",
        json!({
            "nodes": before.nodes.len(), "minutes": args.minutes, "drifted": drifted, "deleted": deleted,
            "deleteCalls": total("DeleteInstances"), "launched": launched, "reconciled": reconciled,
            "pools": pools.len(), "poolsReady": ready_pools,
        })
    );
    let is_kept = drifted == 0 && deleted == 0 && launched == 0 && total("DeleteInstances") == 0;
    if !is_kept || reconciled != before.claims.len() || ready_pools != pools.len() {
        bail!("the cluster was not taken over as it is: {changes:?}");
    }
    Ok(())
}

impl Changes {
    fn note(&mut self, before: &World, now: &World) {
        let drifted = now.claims.iter().filter(|it| is_true(it, "Drifted"));
        self.drifted.extend(drifted.map(name));
        for (old, new) in [(&before.claims, &now.claims), (&before.nodes, &now.nodes)] {
            let stays = |it: &&Value| it["metadata"]["deletionTimestamp"].is_null();
            let staying: BTreeSet<String> = new.iter().filter(stays).map(name).collect();
            let gone = old.iter().map(name).filter(|it| !staying.contains(it));
            self.deleted.extend(gone);
        }
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn is_true(object: &Value, type_: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == type_ && it["status"] == "True")
}

/// Ready, and compared with its Node, which only kerf says in this cluster.
fn is_reconciled(claim: &Value) -> bool {
    is_true(claim, "Ready") && is_true(claim, "ConsistentStateFound")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(claims: &[Value]) -> World {
        World {
            claims: claims.to_vec(),
            ..World::default()
        }
    }

    #[test]
    fn a_claim_that_is_going_counts_as_deleted_and_drift_is_remembered() {
        let claim = |extra: Value| {
            let mut claim = json!({"metadata": {"name": "c-1"}});
            claim["status"] = extra;
            claim
        };
        let drifted = json!({"conditions": [{"type": "Drifted", "status": "True"}]});
        let before = world(&[claim(json!({}))]);
        let mut changes = Changes::default();

        changes.note(&before, &world(&[claim(drifted)]));
        assert_eq!((changes.drifted.len(), changes.deleted.len()), (1, 0));
        let mut going = claim(json!({}));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        changes.note(&before, &world(&[going]));
        assert_eq!((changes.drifted.len(), changes.deleted.len()), (1, 1));
    }
}
