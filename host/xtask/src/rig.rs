//! A control plane, a simulated cloud and kerf as processes of their own, for commands that measure or break them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::demo::api_server::{ApiServer, answer};
use crate::demo::child::Child;
use crate::demo::manifests;
use crate::{process, workspace};

pub(crate) const REGION: &str = "cn-hangzhou";
/// Of ecs-sim's default world.
pub(crate) const CLUSTER_ID: &str = "c0000000000000000000000000000sim1";
pub(crate) const NAMESPACE: &str = "kerf-system";
/// Good for this one simulator.
pub(crate) const ACCESS_KEY: [&str; 2] = ["rig", "made-up-for-this-run"];
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A look at thousands of objects takes seconds on busy cores; then it is taken this rarely.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(3);
/// Unless the caller says otherwise: a second more for each batch would be most of a trial.
const BATCH_IDLE: [&str; 2] = ["--batch-idle-duration", "300ms"];
/// The API server serves a new kind some 100 ms after its definition was accepted.
const DEFINITIONS_MAX: Duration = Duration::from_secs(30);

/// Fields are dropped from top to bottom: first kerf, so that nobody reacts to what follows.
#[derive(Debug)]
pub(crate) struct Rig {
    build: Build,
    kerf: Option<Child>,
    _sim: Child,
    sim_url: String,
    pub(crate) api: ApiServer,
    pub(crate) control_plane: ControlPlane,
    folder: PathBuf,
}

/// How kerf and the simulator were built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// With failpoints, beside this very program.
    Dev,
    /// As users run it: what a figure is measured on.
    Release,
}

impl Build {
    /// Builds what a rig starts.
    pub(crate) fn make(self) -> Result<()> {
        match self {
            Self::Dev => process::build_all().map(drop),
            Self::Release => process::build_release(),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }
}

/// What there is at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) instances: Vec<Value>,
    pub(crate) claims: Vec<Value>,
    pub(crate) nodes: Vec<Value>,
    pub(crate) pods: Vec<Value>,
}

impl Rig {
    /// Everything but kerf, with the definitions and the quick start's class. `name` is the folder of the logs.
    pub(crate) fn start(
        name: &str,
        build: Build,
        options: control_plane::Options,
        world: &str,
    ) -> Result<Self> {
        let rig = Self::assemble(name, build, options, world)?;
        manifests::apply_set_up(&rig.api, NAMESPACE)?;
        rig.await_definitions()?;
        Ok(rig)
    }

    /// A control plane and a cloud without anything of ours in them.
    pub(crate) fn bare(
        name: &str,
        build: Build,
        options: control_plane::Options,
        world: &str,
    ) -> Result<Self> {
        Self::assemble(name, build, options, world)
    }

    /// A program of ours, built as this rig's are.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        binary_of(self.build, name)
    }

    fn assemble(
        name: &str,
        build: Build,
        options: control_plane::Options,
        world: &str,
    ) -> Result<Self> {
        let folder = workspace::root().join("target").join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let control_plane = ControlPlane::start(options)
            .context("cannot start the control plane; `make control-plane` builds its servers")?;
        let api = ApiServer::new(&control_plane)?;
        let file = folder.join("world.yaml");
        std::fs::write(&file, world).with_context(|| format!("cannot write {}", file.display()))?;
        let log = folder.join("ecs-sim.log");
        let (sim, sim_url) = start_sim(build, &log, ACCESS_KEY, |command| {
            command.args(["--region", REGION]).arg("--world").arg(&file);
            command
                .arg("--kubeconfig")
                .arg(control_plane.kubeconfig_path());
        })?;
        Ok(Self {
            build,
            kerf: None,
            _sim: sim,
            sim_url,
            api,
            control_plane,
            folder,
        })
    }

    /// Where the cloud answers.
    pub(crate) fn sim_url(&self) -> &str {
        &self.sim_url
    }

    /// Where logs are kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The API server's audit log, where the options ask for one.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.control_plane.logs_dir().join("audit.log")
    }

    pub(crate) fn read_audit_log(&self) -> Result<String> {
        let path = self.audit_log();
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Instances of the cloud; those that are gone are among them, with the status `Gone`.
    pub(crate) fn instances(&self) -> Result<Vec<Value>> {
        let instances = self.ask_sim("/_sim/instances")?;
        Ok(instances.as_array().cloned().unwrap_or_default())
    }

    /// A new kind can be written before it can be listed.
    fn await_definitions(&self) -> Result<()> {
        let deadline = Instant::now() + DEFINITIONS_MAX;
        loop {
            match self.look() {
                Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
                result => return result.map(drop),
            }
        }
    }

    /// Starts kerf, which acts at once.
    pub(crate) fn start_kerf(&mut self, args: &[&str]) -> Result<()> {
        let alone = [&["--disable-leader-election"], args].concat();
        self.kerf = Some(self.spawn_kerf("kerf", &self.sim_url, &alone)?);
        Ok(())
    }

    /// Starts kerf, which acts once it holds the lease.
    pub(crate) fn start_leader(&mut self, args: &[&str]) -> Result<()> {
        self.kerf = Some(self.spawn_kerf("kerf", &self.sim_url, args)?);
        Ok(())
    }

    /// A process of kerf with a log of this name, which reaches the cloud at `url`. The caller stops it.
    pub(crate) fn spawn_kerf(&self, name: &str, url: &str, args: &[&str]) -> Result<Child> {
        let [key_id, secret] = ACCESS_KEY;
        let kubeconfig = self.control_plane.kubeconfig_path();
        let log = self.folder.join(format!("{name}.log"));
        let own = |name: &str| !args.contains(&name);
        let batch_idle = Some(BATCH_IDLE).filter(|[name, _]| own(name));
        Child::start(&binary_of(self.build, "kerf"), &log, false, |command| {
            command.args(["controller", "--region", REGION, "--namespace", NAMESPACE]);
            command.args(["--cluster-id", CLUSTER_ID]);
            command.args(["--metrics-address", "127.0.0.1:0"]);
            command.args(batch_idle.into_iter().flatten()).args(args);
            for product in ["ecs", "vpc", "cs", "ram", "sts"] {
                command.arg(format!("--{product}-endpoint")).arg(url);
            }
            if own("--kubeconfig") {
                command.arg("--kubeconfig").arg(kubeconfig);
            }
            command
                .env("ALIBABA_CLOUD_ACCESS_KEY_ID", key_id)
                .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret);
        })
    }

    /// kill -9 of kerf.
    pub(crate) fn kill_kerf(&mut self) {
        if let Some(kerf) = self.kerf.take() {
            kerf.kill();
        }
    }

    /// What kerf logged since its start.
    pub(crate) fn kerf_log(&self) -> String {
        self.kerf.as_ref().map(Child::log).unwrap_or_default()
    }

    /// CPU seconds and peak memory in MiB of kerf since its start; zero where that cannot be read.
    pub(crate) fn kerf_usage(&self) -> (f64, u64) {
        self.kerf
            .as_ref()
            .map(|kerf| usage(kerf.id()))
            .unwrap_or_default()
    }

    /// A machine that another program launched, as the simulator shows it.
    pub(crate) fn plant(&self, machine: &Value) -> Result<Value> {
        self.tell_sim("POST", "/_sim/instances", machine)
    }

    /// The cloud takes a spot machine back.
    pub(crate) fn interrupt(&self, instance: &str) -> Result<()> {
        let path = format!("/_sim/instances/{instance}/interrupt");
        self.tell_sim("POST", &path, &Value::Null).map(drop)
    }

    /// Runs another command of kerf to its end; what it printed.
    pub(crate) fn run_kerf(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(binary_of(self.build, "kerf"));
        command.args(args);
        command
            .arg("--kubeconfig")
            .arg(self.control_plane.kubeconfig_path());
        process::output(&mut command)
    }

    /// Memory that kerf has now, in MiB; zero where that cannot be read.
    pub(crate) fn kerf_rss_mib(&self) -> f64 {
        let id = self.kerf.as_ref().map(Child::id);
        id.and_then(|id| status_kib(id, "VmRSS:"))
            .unwrap_or_default()
            / 1024.0
    }

    /// What the simulator says at this path of its admin API.
    pub(crate) fn ask_sim(&self, path: &str) -> Result<Value> {
        answer(ureq::get(format!("{}{path}", self.sim_url)).call(), path)
    }

    /// Tells the simulator something at this path of its admin API.
    pub(crate) fn tell_sim(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.sim_url))
            .header("Content-Type", "application/json")
            .body(body.to_string())
            .context("no request")?;
        answer(ureq::run(request), path)
    }

    /// Everything that there is now; instances that are gone are among them, with the status `Gone`.
    pub(crate) fn look(&self) -> Result<World> {
        Ok(World {
            instances: self.instances()?,
            claims: self.api.list("/apis/karpenter.sh/v1/nodeclaims")?,
            nodes: self.api.list("/api/v1/nodes")?,
            pods: self.api.list("/api/v1/namespaces/default/pods")?,
        })
    }

    /// Waits until `is_so` says so.
    pub(crate) fn until(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let asked = Instant::now();
            // A server that is too busy to answer is what is waited for, too.
            let seen = is_so(self);
            if let Ok(true) = seen {
                return Ok(());
            }
            if let Some(status) = self.kerf.as_mut().and_then(Child::ended) {
                bail!("kerf ended by itself: {status}; waiting for {what}");
            }
            if Instant::now() > deadline {
                let failure = seen.err().map(|error| format!(" ({error:#})"));
                let log = self.kerf.as_ref().map(Child::log_tail).unwrap_or_default();
                bail!(
                    "waited {} s and never saw: {what}{}; kerf's log ends with:\n{log}",
                    patience.as_secs(),
                    failure.unwrap_or_default()
                );
            }
            let pause = (asked.elapsed() * 2).clamp(LOOK_EVERY, LOOK_PAUSE_MAX);
            std::thread::sleep(pause);
        }
    }
}

/// A simulator with this access key, and where it answers.
pub(crate) fn start_sim(
    build: Build,
    log: &Path,
    [key_id, secret]: [&str; 2],
    set: impl FnOnce(&mut Command),
) -> Result<(Child, String)> {
    let mut sim = Child::start(&binary_of(build, "ecs-sim"), log, true, |command| {
        command.args(["--print-ready", "--access-key-id", key_id]);
        command.args(["--access-key-secret", secret]);
        set(command);
    })?;
    let line = sim.first_line().context("ecs-sim did not start")?;
    let ready: Value = serde_json::from_str(&line).context("ecs-sim's first line")?;
    let url = ready["url"].as_str().context("no url")?.to_owned();
    Ok((sim, url))
}

/// A pool of one instance type, whose nodes have the label `run`, without consolidation.
pub(crate) fn pool(run: &str, instance_type: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": run},
        "spec": {
            "template": {
                "metadata": {"labels": {"run": run}},
                "spec": {
                    "requirements": [
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    ],
                    "nodeClassRef": {"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default"},
                },
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        },
    })
}

/// Pods that only nodes with the label `run` can take.
pub(crate) fn deployment(name: &str, run: &str, replicas: usize, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "run": run}},
                "spec": {
                    "nodeSelector": {"run": run},
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": "registry.invalid/pause",
                        "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}},
                    }],
                },
            },
        },
    })
}

/// Beside this very program, wherever cargo's target folder is.
pub(crate) fn binary(name: &str) -> PathBuf {
    binary_of(Build::Dev, name)
}

/// In cargo's target folder, wherever that is: this very program is in its `debug`.
pub(crate) fn binary_of(build: Build, name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(&own);
    // A test of xtask itself runs one folder deeper.
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    match build {
        Build::Dev => folder.join(name),
        Build::Release => folder.with_file_name("release").join(name),
    }
}

/// From /proc.
fn usage(id: u32) -> (f64, u64) {
    /// Linux counts in hundredths of a second for programs.
    const TICKS_PER_SECOND: f64 = 100.0;
    let read =
        |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let ticks = |idx: usize| {
        fields
            .get(idx)
            .and_then(|it| it.parse::<f64>().ok())
            .unwrap_or_default()
    };
    let peak_kib = status_kib(id, "VmHWM:").unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size in MiB is small and not negative"
    )]
    let peak_mib = (peak_kib / 1024.0) as u64;
    ((ticks(11) + ticks(12)) / TICKS_PER_SECOND, peak_mib)
}

/// A size in the status of a process.
fn status_kib(id: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
