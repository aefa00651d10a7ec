//! A control plane, a simulated cloud and kerf as processes of their own, for commands that measure or break them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::demo::api_server::{ApiServer, answer};
use crate::demo::child::Child;
use crate::demo::manifests;
use crate::workspace;

pub(crate) const REGION: &str = "cn-hangzhou";
/// Of ecs-sim's default world.
pub(crate) const CLUSTER_ID: &str = "c0000000000000000000000000000sim1";
const NAMESPACE: &str = "kerf-system";
/// Good for this one simulator.
pub(crate) const ACCESS_KEY: [&str; 2] = ["rig", "made-up-for-this-run"];
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The API server serves a new kind some 100 ms after its definition was accepted.
const DEFINITIONS_MAX: Duration = Duration::from_secs(30);

/// Fields are dropped from top to bottom: first kerf, so that nobody reacts to what follows.
#[derive(Debug)]
pub(crate) struct Rig {
    kerf: Option<Child>,
    _sim: Child,
    sim_url: String,
    pub(crate) api: ApiServer,
    pub(crate) control_plane: ControlPlane,
    folder: PathBuf,
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
    pub(crate) fn start(name: &str, options: control_plane::Options, world: &str) -> Result<Self> {
        let rig = Self::bare(name, options, world)?;
        manifests::apply_set_up(&rig.api, NAMESPACE)?;
        rig.await_definitions()?;
        Ok(rig)
    }

    /// A control plane and a cloud without anything of ours in them.
    pub(crate) fn bare(name: &str, options: control_plane::Options, world: &str) -> Result<Self> {
        let folder = workspace::root().join("target").join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let control_plane = ControlPlane::start(options)
            .context("cannot start the control plane; `make control-plane` builds its servers")?;
        let api = ApiServer::new(&control_plane)?;
        let file = folder.join("world.yaml");
        std::fs::write(&file, world).with_context(|| format!("cannot write {}", file.display()))?;
        let [key_id, secret] = ACCESS_KEY;
        let mut sim = Child::start(
            &binary("ecs-sim"),
            &folder.join("ecs-sim.log"),
            true,
            |command| {
                command.args(["--print-ready", "--region", REGION]);
                command.args(["--access-key-id", key_id, "--access-key-secret", secret]);
                command.arg("--world").arg(&file);
                command
                    .arg("--kubeconfig")
                    .arg(control_plane.kubeconfig_path());
            },
        )?;
        let line = sim.first_line().context("ecs-sim did not start")?;
        let ready: Value = serde_json::from_str(&line).context("ecs-sim's first line")?;
        let sim_url = ready["url"].as_str().context("no url")?.to_owned();
        Ok(Self {
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

    /// Instances of the cloud; those that are gone are among them, with the status `Gone`.
    pub(crate) fn instances(&self) -> Result<Vec<Value>> {
        let path = "/_sim/instances";
        let instances = answer(ureq::get(format!("{}{path}", self.sim_url)).call(), path)?;
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
        let [key_id, secret] = ACCESS_KEY;
        let (url, kubeconfig) = (&self.sim_url, self.control_plane.kubeconfig_path());
        let log = self.folder.join("kerf.log");
        let kerf = Child::start(&binary("kerf"), &log, false, |command| {
            command.args(["controller", "--region", REGION, "--namespace", NAMESPACE]);
            command.args(["--cluster-id", CLUSTER_ID, "--disable-leader-election"]);
            command.args(["--metrics-address", "127.0.0.1:0"]);
            command.args(["--batch-idle-duration", "300ms"]).args(args);
            for product in ["ecs", "vpc", "cs", "ram", "sts"] {
                command.arg(format!("--{product}-endpoint")).arg(url);
            }
            command.arg("--kubeconfig").arg(kubeconfig);
            command
                .env("ALIBABA_CLOUD_ACCESS_KEY_ID", key_id)
                .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret);
        })?;
        self.kerf = Some(kerf);
        Ok(())
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

    /// Kerf's process id.
    pub(crate) fn kerf_id(&self) -> Option<u32> {
        self.kerf.as_ref().map(Child::id)
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
        while !is_so(self)? {
            if let Some(status) = self.kerf.as_mut().and_then(Child::ended) {
                bail!("kerf ended by itself: {status}; waiting for {what}");
            }
            if Instant::now() > deadline {
                let log = self.kerf.as_ref().map(Child::log_tail).unwrap_or_default();
                bail!(
                    "waited {} s and never saw: {what}; kerf's log ends with:\n{log}",
                    patience.as_secs()
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
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
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(&own);
    // A test of xtask itself runs one folder deeper.
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    folder.join(name)
}
