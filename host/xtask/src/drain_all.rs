//! `cargo xtask bench drain-all`: all NodeClaims are deleted at once, and no disruption budget may break.
//!
//! Whether one broke is read from the API server's audit log: a pod that was deleted and that no eviction had asked to
//! go first, went past its budget. The evictions themselves are judged by the API server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use control_plane::Options;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bench;
use crate::demo::manifests;
use crate::rig::{self, Build, Rig, World};

const RUN: &str = "drain-all";
/// Ten pods fill a node of four vCPUs: what is left after the reserves does not hold an eleventh.
const INSTANCE_TYPE: &str = "ecs.g7.xlarge";
const POD_CPU: &str = "370m";
/// What the issue asks for.
const DRAIN_MAX: Duration = Duration::from_secs(600);
const SET_UP_MAX: Duration = Duration::from_secs(900);
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";

/// Options of `drain-all`.
#[derive(Debug, Parser)]
#[command(name = "drain-all", no_binary_name = true)]
struct Args {
    /// Deployments, each with a budget of maxUnavailable 1.
    #[arg(long, default_value_t = 50)]
    deployments: usize,
    /// Pods of each.
    #[arg(long, default_value_t = 20)]
    replicas: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

/// What the audit log says about pods.
#[derive(Debug, Default, PartialEq, Eq)]
struct Audit {
    evicted: u64,
    /// Evictions that a budget refused; asking again later is what it wants.
    refused: u64,
    /// Evictions that the API server did not answer in time.
    unanswered: u64,
    /// Pods that went without an eviction.
    breaches: u64,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    if !args.no_build {
        Build::Release.make()?;
    }
    let options = Options {
        audit_log: true,
        ..Options::default()
    };
    let mut rig = Rig::start("drain-all", Build::Release, options, WORLD)?;
    let pods = args.deployments * args.replicas;
    set_up(&mut rig, &args, pods)?;
    let before = rig.look()?;
    let old: BTreeSet<String> = names(&before.claims).collect();

    let started = Instant::now();
    rig.api.delete("/apis/karpenter.sh/v1/nodeclaims")?;
    let is_over = |rig: &Rig| {
        let world = rig.look()?;
        Ok(names(&world.claims).all(|name| !old.contains(&name)) && running(&world) == pods)
    };
    let ended = rig.until(
        "every old claim gone and every pod running",
        DRAIN_MAX,
        is_over,
    );
    let seconds = started.elapsed().as_secs_f64();
    let (cpu, rss) = rig.kerf_usage();
    rig.kill_kerf();
    let audit = audit(&rig.read_audit_log()?);
    let left = names(&rig.look()?.claims)
        .filter(|name| old.contains(name))
        .count();
    bench::report(
        args.json,
        &json!({
            "deployments": args.deployments, "pods": pods, "nodes": before.nodes.len(),
            "seconds": seconds, "claimsLeft": left, "evictions": audit.evicted,
            "evictionsRefused": audit.refused, "evictionsUnanswered": audit.unanswered,
            "pdbBreaches": audit.breaches,
            "kerfCpuSeconds": cpu, "kerfPeakRssMib": rss, "profile": Build::Release.as_str(),
        }),
    );
    ended?;
    if audit.breaches > 0 {
        bail!("{} pods went past their budget", audit.breaches);
    }
    Ok(())
}

fn set_up(rig: &mut Rig, args: &Args, pods: usize) -> Result<()> {
    manifests::apply(&rig.api, &rig::pool(RUN, INSTANCE_TYPE))?;
    for idx in 0..args.deployments {
        let name = format!("app-{idx}");
        manifests::apply(&rig.api, &budget(&name))?;
        manifests::apply(
            &rig.api,
            &rig::deployment(&name, RUN, args.replicas, POD_CPU),
        )?;
    }
    // kerf starts when all pods are there, so that one plan fills the nodes.
    rig.until("the pods", SET_UP_MAX, |rig| {
        Ok(rig.look()?.pods.len() == pods)
    })?;
    rig.start_kerf(&[])?;
    rig.until("every pod running", SET_UP_MAX, |rig| {
        Ok(running(&rig.look()?) == pods)
    })
}

fn budget(name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    })
}

fn names(objects: &[Value]) -> impl Iterator<Item = String> {
    objects
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned))
}

fn running(world: &World) -> usize {
    let is_running = |pod: &&Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    };
    world.pods.iter().filter(is_running).count()
}

/// How many pods went without an eviction. Pure.
pub(crate) fn breaches(log: &str) -> u64 {
    audit(log).breaches
}

/// Pod deletions against evictions. Pure.
///
/// The log is in the order of the answers, and the kubelet's deletion of an evicted pod may be answered before its
/// eviction is: what counts is when each was asked.
fn audit(log: &str) -> Audit {
    let mut found = Audit::default();
    let mut asked = BTreeSet::new();
    let mut gone = BTreeSet::new();
    let entries = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut entries: Vec<Value> = entries.collect();
    entries.sort_by_key(received);
    for entry in entries {
        let object = &entry["objectRef"];
        if object["resource"] != "pods" || object["namespace"] != "default" {
            continue;
        }
        let name = object["name"].as_str().unwrap_or_default().to_owned();
        let code = entry["responseStatus"]["code"].as_u64().unwrap_or_default();
        match (entry["verb"].as_str(), object["subresource"].as_str(), code) {
            (Some("create"), Some("eviction"), 200 | 201) => {
                found.evicted += 1;
                asked.insert(name);
            }
            (Some("create"), Some("eviction"), 429) => found.refused += 1,
            // The caller gave up waiting, and the server may have done it all the same.
            (Some("create"), Some("eviction"), 504) => {
                found.unanswered += 1;
                asked.insert(name);
            }
            (Some("delete"), None, 200) if !asked.contains(&name) && gone.insert(name.clone()) => {
                found.breaches += 1;
            }
            _ => {}
        }
    }
    found
}

/// When the API server received a request, for ordering.
fn received(entry: &Value) -> Option<Timestamp> {
    entry["requestReceivedTimestamp"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &str, name: &str, subresource: Option<&str>, code: u16) -> String {
        let mut entry = json!({
            "verb": verb, "objectRef": {"resource": "pods", "namespace": "default", "name": name},
            "responseStatus": {"code": code},
        });
        if let Some(subresource) = subresource {
            entry["objectRef"]["subresource"] = subresource.into();
        }
        entry.to_string()
    }

    #[test]
    fn a_deletion_that_no_eviction_asked_for_is_a_breach() {
        let log = [
            entry("create", "a", Some("eviction"), 201),
            entry("delete", "a", None, 200),
            entry("create", "b", Some("eviction"), 429),
            entry("delete", "b", None, 200),
            entry("delete", "c", None, 404),
            entry("create", "d", Some("eviction"), 504),
            entry("delete", "d", None, 200),
        ]
        .join("\n");

        let expected = Audit {
            evicted: 1,
            refused: 1,
            unanswered: 1,
            breaches: 1,
        };
        assert_eq!(audit(&log), expected);
    }

    #[test]
    fn a_deletion_that_was_answered_before_its_eviction_is_no_breach() {
        let at = |entry: String, second: u8| {
            let mut entry: Value = serde_json::from_str(&entry).unwrap();
            entry["requestReceivedTimestamp"] = format!("2026-01-01T00:00:0{second}.5Z").into();
            entry.to_string()
        };
        let log = [
            at(entry("delete", "a", None, 200), 2),
            at(entry("create", "a", Some("eviction"), 201), 1),
            at(entry("create", "b", Some("eviction"), 201), 4),
            at(entry("delete", "b", None, 200), 3),
        ]
        .join("\n");

        let found = audit(&log);

        assert_eq!((found.evicted, found.breaches), (2, 1));
    }
}
