//! Everything that runs during the demo, started in order and taken down in the opposite one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use control_plane::ControlPlane;
use serde_json::Value;

use super::api_server::ApiServer;
use super::child::Child;
use super::manifests;
use crate::{process, workspace};

const REGION: &str = "cn-hangzhou";
/// Of ecs-sim's default world.
const CLUSTER_ID: &str = "c0000000000000000000000000000sim1";
const CLUSTER_NAME: &str = "my-cluster";
const NAMESPACE: &str = "kerf-system";
/// Good for this one simulator, which exists as long as the demo.
const ACCESS_KEY: [&str; 2] = ["quick-start", "made-up-for-this-run"];
/// A boot that a person can follow; the simulator's own default is for tests.
const WORLD: &str = "timing: {visibleAfterMs: 500, startingAfterMs: 1500, runningAfterMs: 4000}\n";

/// Fields are dropped from top to bottom: first kerf, so that nobody reacts to what follows.
#[derive(Debug)]
pub(super) struct Stack {
    kerf: Child,
    sim: Child,
    pub(super) sim_url: String,
    pub(super) api: ApiServer,
    control_plane: ControlPlane,
}

/// Builds what runs, with the builders' own progress on the terminal.
pub(super) fn build() -> Result<()> {
    println!("building the Kubernetes servers (once; some 15 minutes on two cores)");
    process::run(&mut Command::new(
        workspace::root().join("tests/tools/build.sh"),
    ))?;
    println!("building kerf and ecs-sim");
    process::build_all().map(drop)
}

impl Stack {
    /// On failure, or when `is_interrupted` says so, nothing keeps running.
    pub(super) fn start(is_interrupted: impl Fn() -> bool) -> Result<Self> {
        let go_on = || {
            if is_interrupted() {
                bail!("interrupted")
            } else {
                Ok(())
            }
        };
        println!("starting etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok");
        let control_plane = ControlPlane::start(control_plane::Options::default())
            .context("cannot start the local control plane")?;
        let api = ApiServer::new(&control_plane)?;
        go_on()?;

        println!("starting ecs-sim");
        let mut sim = start_sim(&control_plane)?;
        let sim_url = ready_url(&mut sim).context("ecs-sim did not start")?;
        go_on()?;

        println!("applying the CRDs and examples/quickstart");
        manifests::apply_set_up(&api, NAMESPACE)?;
        go_on()?;

        println!("starting kerf");
        let kerf = start_kerf(&control_plane, &sim_url)?;
        manifests::apply_workload(&api)?;
        Ok(Self {
            kerf,
            sim,
            sim_url,
            api,
            control_plane,
        })
    }

    /// An error with the end of its log when one of our programs has ended.
    pub(super) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.kerf.ended() {
            bail!("kerf ended by itself: {status}");
        }
        if let Some(status) = self.sim.ended() {
            bail!(
                "ecs-sim ended by itself: {status}; its log ends with:\n{}",
                self.sim.log_tail()
            );
        }
        Ok(())
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.control_plane.kubeconfig_path().display().to_string()
    }

    pub(super) fn kerf_log_tail(&self) -> String {
        self.kerf.log_tail()
    }

    /// Takes everything down; dropping does the same.
    pub(super) fn stop(self) {
        drop(self);
    }
}

fn start_sim(control_plane: &ControlPlane) -> Result<Child> {
    let world = logs()?.join("world.yaml");
    std::fs::write(&world, WORLD).with_context(|| format!("cannot write {}", world.display()))?;
    let [key_id, secret] = ACCESS_KEY;
    Child::start(
        &binary("ecs-sim"),
        &logs()?.join("ecs-sim.log"),
        true,
        |command| {
            command.args([
                "--print-ready",
                "--region",
                REGION,
                "--access-key-id",
                key_id,
                "--access-key-secret",
                secret,
            ]);
            command
                .arg("--world")
                .arg(&world)
                .arg("--kubeconfig")
                .arg(control_plane.kubeconfig_path());
        },
    )
}

/// ecs-sim prints `{"url": …}` when it takes requests.
fn ready_url(sim: &mut Child) -> Result<String> {
    let line = sim.first_line()?;
    let ready: Value = serde_json::from_str(&line)
        .with_context(|| format!("its first line is no JSON: {line}"))?;
    Ok(ready["url"]
        .as_str()
        .context("its first line has no url")?
        .to_owned())
}

fn start_kerf(control_plane: &ControlPlane, sim_url: &str) -> Result<Child> {
    let [key_id, secret] = ACCESS_KEY;
    Child::start(
        &binary("kerf"),
        &logs()?.join("kerf.log"),
        false,
        |command| {
            command.args(["controller", "--region", REGION, "--namespace", NAMESPACE]);
            command.args(["--cluster-id", CLUSTER_ID, "--cluster-name", CLUSTER_NAME]);
            command.args(["--metrics-address", "127.0.0.1:0"]);
            for product in ["ecs", "vpc", "cs", "ram", "sts"] {
                command.arg(format!("--{product}-endpoint")).arg(sim_url);
            }
            command
                .arg("--kubeconfig")
                .arg(control_plane.kubeconfig_path());
            command
                .env("ALIBABA_CLOUD_ACCESS_KEY_ID", key_id)
                .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret);
        },
    )
}

/// Beside this very program, wherever cargo's target folder is.
fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name(name)
}

fn logs() -> Result<PathBuf> {
    let folder = workspace::root().join("target/make-run");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
