//! `cargo xtask bench simulate`: how long and how large the whole `kerf simulate -o json` process is.
//!
//! 10,000 pods from 200 Deployments and six pools, drawn from a seed, are written as manifests; the release binary reads
//! them as a user's. The peak of its memory is what the kernel says until the process ends.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

use crate::oracle::dice::Dice;
use crate::rig::{Build, binary_of};
use crate::{bench, process};

/// What the issue asks for.
const SECONDS_MAX: f64 = 1.0;
const RSS_MAX_MIB: f64 = 150.0;
/// Short against the run, so that little memory grows unseen before the end.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const KIB_PER_MIB: f64 = 1024.0;
/// The six pools: name, requirement, and whether a taint keeps out the pods of others.
const POOLS: [(&str, &str, bool); 6] = [
    (
        "general",
        "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}",
        false,
    ),
    (
        "spot",
        "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}",
        true,
    ),
    (
        "compute",
        "{key: karpenter.alibabacloud.com/instance-category, operator: In, values: [c]}",
        true,
    ),
    (
        "memory",
        "{key: karpenter.alibabacloud.com/instance-category, operator: In, values: [r]}",
        true,
    ),
    (
        "zonal",
        "{key: topology.kubernetes.io/zone, operator: In, values: [cn-hangzhou-i]}",
        true,
    ),
    (
        "large",
        "{key: karpenter.alibabacloud.com/instance-cpu, operator: Gt, values: [\"15\"]}",
        true,
    ),
];

/// Options of `simulate`.
#[derive(Debug, Parser)]
#[command(name = "simulate", no_binary_name = true)]
struct Args {
    /// Deployments.
    #[arg(long, default_value_t = 200)]
    deployments: usize,
    /// Pods of each.
    #[arg(long, default_value_t = 50)]
    replicas: usize,
    /// Seed of the draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Run this often and report the fastest: for a machine that others use too.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Measure this binary in place of a fresh release build.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// One run.
struct Run {
    seconds: f64,
    peak_rss_mib: f64,
    report: Value,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => {
            process::build_release()?;
            binary_of(Build::Release, "kerf")
        }
    };
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let text = manifests(args.deployments, args.replicas, args.seed);
    std::fs::write(folder.path().join("all.yaml"), text)?;
    let mut fastest: Option<Run> = None;
    let mut peak_rss_mib: f64 = 0.0;
    for _ in 0..args.repeat.max(1) {
        let run = measure(&binary, folder.path())?;
        peak_rss_mib = peak_rss_mib.max(run.peak_rss_mib);
        if fastest.as_ref().is_none_or(|it| run.seconds < it.seconds) {
            fastest = Some(run);
        }
    }
    let Some(run) = fastest else {
        bail!("nothing was run")
    };
    let summary = &run.report["summary"];
    let result = json!({
        "deployments": args.deployments, "pools": POOLS.len(), "pods": summary["pods"],
        "nodes": summary["newNodes"], "unschedulable": summary["unschedulable"],
        "pricePerHour": summary["pricePerHour"], "seconds": run.seconds, "secondsMax": SECONDS_MAX,
        "peakRssMib": peak_rss_mib, "peakRssMax": RSS_MAX_MIB,
    });
    bench::report(args.json, &result);
    if run.seconds > SECONDS_MAX || peak_rss_mib > RSS_MAX_MIB {
        bail!("a figure is beyond its limit");
    }
    Ok(())
}

fn measure(binary: &Path, folder: &Path) -> Result<Run> {
    let started = Instant::now();
    let mut child = Command::new(binary)
        .args(["simulate", "-o", "json", "-f"])
        .arg(folder)
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    let mut stdout = child.stdout.take().context("no standard output")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).map(|_| text)
    });
    let peak_kib = watch(&mut child)?;
    let seconds = started.elapsed().as_secs_f64();
    let text = reader
        .join()
        .map_err(|_| anyhow::anyhow!("the reader died"))??;
    Ok(Run {
        seconds,
        peak_rss_mib: peak_kib / KIB_PER_MIB,
        report: serde_json::from_slice(&text).context("the answer is no JSON")?,
    })
}

/// Waits for the end; the largest resident set that was seen, in KiB.
fn watch(child: &mut Child) -> Result<f64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak: f64 = 0.0;
    while child.try_wait()?.is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        peak = peak.max(kib.unwrap_or_default());
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(peak)
}

/// Six pools and so many Deployments, drawn from the seed.
pub(crate) fn manifests(deployments: usize, replicas: usize, seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut text = String::from(
        "apiVersion: karpenter.alibabacloud.com/v1alpha1\nkind: ECSNodeClass\nmetadata: {name: default}\nspec:\n  clusterID: \"\"\n  vSwitchSelectorTerms: [{id: vsw-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n  imageSelectorTerms: [{imageFamily: acs:alibaba_cloud_linux_3_2104_lts_x64}]\n",
    );
    for (name, requirement, is_tainted) in POOLS {
        let taints = match is_tainted {
            true => format!("[{{key: pool, value: {name}, effect: NoSchedule}}]"),
            false => "[]".to_owned(),
        };
        let _ = write!(
            text,
            "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    metadata: {{labels: {{pool: {name}}}}}\n    spec:\n      taints: {taints}\n      requirements:\n        - {requirement}\n      nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}\n"
        );
    }
    for index in 0..deployments {
        text += &deployment(index, replicas, &mut dice);
    }
    text
}

fn deployment(index: usize, replicas: usize, dice: &mut Dice) -> String {
    let (pool, _, is_tainted) = dice.pick(&POOLS);
    let cpu = dice.pick(&[100, 250, 500, 1000, 1500, 2000, 4000]);
    let memory = cpu * dice.pick(&[1, 2, 4, 8]);
    let place = match is_tainted {
        true => format!(
            "nodeSelector: {{pool: {pool}}}\n      tolerations: [{{key: pool, value: {pool}}}]"
        ),
        false => String::new(),
    };
    let spread = if dice.percent(20) {
        format!(
            "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{matchLabels: {{app: app-{index}}}}}}}]"
        )
    } else {
        String::new()
    };
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app-{index}, namespace: default}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: app-{index}}}}}\n  template:\n    metadata: {{labels: {{app: app-{index}}}}}\n    spec:\n      {place}\n      {spread}\n      containers: [{{name: main, image: nginx, resources: {{requests: {{cpu: {cpu}m, memory: {memory}Mi}}}}}}]\n"
    )
}
