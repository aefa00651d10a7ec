//! The cluster of a run: two controllers behind relays, pools to work on, and every act of the script.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base64::Engine as _;
use control_plane::Component;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::guards::{Guards, Heard};
use super::invariants::Sight;
use super::objects;
use super::script::{Act, Policy};
use crate::crash::tally::alive;
use crate::demo::api_server::ApiServer;
use crate::demo::child::Child;
use crate::demo::manifests;
use crate::oracle::dice::Dice;
use crate::relay::{Relay, Way};
use crate::rig::{NAMESPACE, Rig, World};
use crate::workspace;

/// The pool that we leave alone but for its template: its budget is one node, and the guards run there.
pub(super) const STEADY: &str = "steady";
/// The pool that everything happens to.
pub(super) const WILD: &str = "wild";
/// The pool that is deleted and made again.
pub(super) const FLEETING: &str = "fleeting";
/// CPUs that the wild pool may have.
pub(super) const LIMIT_CPU: u64 = 48;
/// Deployments with a budget of one pod, and pods of each.
pub(super) const GUARDS: usize = 3;
pub(super) const GUARD_PODS: usize = 4;

/// As the controller signs its events; kube-scheduler has the same reason.
const COMPONENT: &str = "kerf";
const LEASE: &str = "karpenter-leader-election";
/// Longer than a lease, so that the other one acts when the frozen one goes on.
const FREEZE: Duration = Duration::from_secs(19);
/// How long a kill waits for a launch that it can fall into.
const ARMED: Duration = Duration::from_secs(10);
/// A spot machine ends so long after its notice.
const NOTICE_MS: u64 = 15_000;
/// A controller that ended is started again after this, as a kubelet would.
const RESTART_AFTER: Duration = Duration::from_secs(1);
const SLOW_MS: u64 = 4_000;
/// Long enough that a machine does not start before the act is undone.
const NEVER_MS: u64 = 600_000;

/// Everything of a run.
pub(super) struct Stage {
    pub(super) rig: Rig,
    guards: Guards,
    replicas: Vec<Replica>,
    started: usize,
    args: Vec<String>,
    dice: Dice,
    undone: Vec<(Instant, Undo)>,
    /// A kill that waits for a launch: until when, and how many each controller had asked for.
    armed: Option<(Instant, BTreeMap<String, usize>)>,
    taken: BTreeSet<String>,
    rolls: usize,
    launches: BTreeMap<String, Vec<Timestamp>>,
}

struct Replica {
    name: String,
    child: Child,
    cloud: Relay,
    api: Relay,
    frozen: bool,
    ended_at: Option<Instant>,
}

/// What ends an act.
#[derive(Debug)]
enum Undo {
    OpenCloud,
    OpenApiServer,
    Thaw,
    Boot,
    Mend(String),
}

impl Stage {
    /// Two controllers with these arguments besides their own, and all pools and guards.
    pub(super) fn set(rig: Rig, seed: u64, args: Vec<String>) -> Result<Self> {
        let guards = Guards::new(ApiServer::new(&rig.control_plane)?);
        let mut stage = Self {
            rig,
            guards,
            replicas: Vec::new(),
            started: 0,
            args,
            dice: Dice::new(seed ^ 0x5eed),
            undone: Vec::new(),
            armed: None,
            taken: BTreeSet::new(),
            rolls: 0,
            launches: BTreeMap::new(),
        };
        let class = stage.rig.api.get(objects::CLASS)?["spec"].clone();
        for object in objects::all(&class) {
            manifests::apply(&stage.rig.api, &object)?;
        }
        stage.change_policy(Policy::One)?;
        stage.supervise()?;
        Ok(stage)
    }

    /// Starts controllers so that there are two, ends acts whose time is over, and kills where a kill waits.
    pub(super) fn tend(&mut self) -> Result<()> {
        self.supervise()?;
        self.kill_at_launch()?;
        let now = Instant::now();
        let (due, rest) = std::mem::take(&mut self.undone)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.undone = rest;
        let due: Vec<(Instant, Undo)> = due;
        due.into_iter().try_for_each(|(_, undo)| self.undo(&undo))
    }

    /// Ends all trouble at once.
    pub(super) fn calm(&mut self) -> Result<()> {
        self.armed = None;
        for (_, undo) in std::mem::take(&mut self.undone) {
            self.undo(&undo)?;
        }
        self.rig.tell_sim("DELETE", "/_sim/faults", &Value::Null)?;
        self.change_policy(Policy::One)?;
        manifests::apply(&self.rig.api, &objects::fleeting_pool())
    }

    pub(super) fn carry_out(&mut self, act: &Act) -> Result<()> {
        match act {
            Act::KillLeader => self.kill_leader(),
            Act::KillAtLaunch => self.arm(),
            Act::FreezeLeader => self.freeze(),
            Act::RestartApiServer => self.restart(Component::ApiServer),
            Act::RestartEtcd => self.restart(Component::Etcd),
            Act::CutCloud(ms) => self.cloud(Way::Cut, *ms),
            Act::HoldUpCloud(ms) => self.cloud(Way::HeldUp, *ms),
            Act::CutApiServer(ms) => self.api_server(*ms),
            Act::DropWatches => {
                self.replicas
                    .iter()
                    .for_each(|it| it.api.drop_connections());
                Ok(())
            }
            Act::Throttle(times) => self.fault(*times, "*", false, &objects::throttle()),
            Act::CutAnswers(times) => self.fault(*times, "*", true, &json!({"kind": "cut"})),
            Act::SlowAnswers(times) => {
                let effect = json!({"kind": "slowBody", "ms": SLOW_MS});
                self.fault(*times, "*", false, &effect)
            }
            Act::NoStock(times) => self.fault(*times, "RunInstances", false, &objects::no_stock()),
            Act::SpotStorm => self.spot_storm(),
            Act::NoBoot(ms) => {
                self.timing(NEVER_MS)?;
                self.later(*ms, Undo::Boot);
                Ok(())
            }
            Act::NotReady(ms) => self.break_node(*ms),
            Act::DeleteClaim => self.delete_one("/apis/karpenter.sh/v1/nodeclaims"),
            Act::DeleteNode => self.delete_one("/api/v1/nodes"),
            Act::Policy(policy) => self.change_policy(*policy),
            Act::Roll => {
                self.rolls += 1;
                manifests::apply(&self.rig.api, &objects::steady_pool(self.rolls))
            }
            Act::DeletePool => self.delete_quietly(&objects::pool_path(FLEETING)),
            Act::CreatePool => manifests::apply(&self.rig.api, &objects::fleeting_pool()),
            Act::Scale(deployment, pods) => {
                manifests::apply(&self.rig.api, &objects::wild_deployment(*deployment, *pods))
            }
        }
    }

    /// What there is now. Fails while the API server does not answer.
    pub(super) fn sight(&mut self) -> Result<Sight> {
        let world = self.rig.look()?;
        let holder = self.holder()?;
        for replica in &self.replicas {
            self.launches
                .insert(replica.name.clone(), replica.cloud.launches());
        }
        Ok(Sight {
            world,
            holder: Some(holder),
            launches: self.launches.clone(),
            taken: self.taken.clone(),
        })
    }

    /// What was heard of the guards since the last call.
    pub(super) fn heard(&mut self) -> Vec<Heard> {
        self.guards.heard()
    }

    /// Uids of pods that an event of the controller explains.
    pub(super) fn explained(&self) -> Result<BTreeSet<String>> {
        let events = self.rig.api.list("/api/v1/namespaces/default/events")?;
        let ours = events.iter().filter(|event| {
            event["reason"] == "FailedScheduling" && event["reportingComponent"] == COMPONENT
        });
        let uids = ours.filter_map(|event| event["involvedObject"]["uid"].as_str());
        Ok(uids.map(str::to_owned).collect())
    }

    /// What every controller of the run asked the cloud for.
    pub(super) fn launch_count(&self) -> usize {
        self.launches.values().map(Vec::len).sum()
    }

    fn supervise(&mut self) -> Result<()> {
        for replica in &mut self.replicas {
            if replica.ended_at.is_none() && replica.child.ended().is_some() {
                replica.ended_at = Some(Instant::now());
            }
        }
        let stays = |it: &Replica| it.ended_at.is_none_or(|at| at.elapsed() < RESTART_AFTER);
        self.replicas.retain(stays);
        while self.replicas.len() < 2 {
            let replica = self.start_replica()?;
            self.replicas.push(replica);
        }
        Ok(())
    }

    fn start_replica(&mut self) -> Result<Replica> {
        self.started += 1;
        let name = format!("chaos-{}", self.started);
        let cloud = Relay::open(self.rig.sim_url())?;
        let api = Relay::open(&self.rig.control_plane.server_url())?;
        let kubeconfig = self.kubeconfig(&name, &api)?.display().to_string();
        let args = self.args.iter().map(String::as_str);
        let own = ["--pod-name", &name, "--kubeconfig", &kubeconfig];
        let args: Vec<&str> = own.into_iter().chain(args).collect();
        let child = self.rig.spawn_kerf(&name, &cloud.url(), &args)?;
        Ok(Replica {
            name,
            child,
            cloud,
            api,
            frozen: false,
            ended_at: None,
        })
    }

    /// The admin's, with the relay in place of the server; beside it, because it names the authority's file.
    fn kubeconfig(&self, name: &str, relay: &Relay) -> Result<PathBuf> {
        let path = self.rig.control_plane.kubeconfig_path();
        let text = std::fs::read_to_string(path).context("cannot read the kubeconfig")?;
        let url = format!("https://{}", relay.address());
        let text = text.replace(&self.rig.control_plane.server_url(), &url);
        let own = path.with_file_name(format!("{name}.kubeconfig"));
        std::fs::write(&own, text).context("cannot write a kubeconfig")?;
        Ok(own)
    }

    /// The pod's name in the lease.
    fn holder(&self) -> Result<String> {
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
        let found = self.rig.api.list(&leases)?;
        let lease = found.iter().find(|it| it["metadata"]["name"] == LEASE);
        let holder = lease.and_then(|it| it["spec"]["holderIdentity"].as_str());
        let pod = holder.unwrap_or_default().rsplit_once('_');
        Ok(pod.map_or("", |(pod, _)| pod).to_owned())
    }

    fn leader(&mut self) -> Result<Option<usize>> {
        let holder = self.holder()?;
        Ok(self.replicas.iter().position(|it| it.name == holder))
    }

    fn kill_leader(&mut self) -> Result<()> {
        if let Some(leader) = self.leader()? {
            self.kill(leader);
        }
        Ok(())
    }

    fn kill(&mut self, index: usize) {
        let replica = self.replicas.remove(index);
        self.launches
            .insert(replica.name.clone(), replica.cloud.launches());
        replica.child.kill();
    }

    fn arm(&mut self) -> Result<()> {
        let counts = self.replicas.iter();
        let counts = counts.map(|it| (it.name.clone(), it.cloud.launches().len()));
        self.armed = Some((Instant::now() + ARMED, counts.collect()));
        // Something to launch for.
        let more = self.dice.index(2) * 7 + 3;
        manifests::apply(&self.rig.api, &objects::wild_deployment(0, more))
    }

    fn kill_at_launch(&mut self) -> Result<()> {
        let Some((until, counts)) = &self.armed else {
            return Ok(());
        };
        let launched = self.replicas.iter().position(|it| {
            counts
                .get(&it.name)
                .is_some_and(|before| it.cloud.launches().len() > *before)
        });
        if let Some(index) = launched {
            self.armed = None;
            self.kill(index);
        } else if Instant::now() > *until {
            self.armed = None;
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<()> {
        let Some(leader) = self.leader()? else {
            return Ok(());
        };
        let replica = &mut self.replicas[leader];
        if !replica.frozen {
            replica.frozen = true;
            replica.child.signal("STOP")?;
            self.undone.push((Instant::now() + FREEZE, Undo::Thaw));
        }
        Ok(())
    }

    fn restart(&mut self, component: Component) -> Result<()> {
        let restarted = self.rig.control_plane.restart(component);
        restarted.with_context(|| format!("cannot restart {component}"))
    }

    fn cloud(&mut self, way: Way, ms: u64) -> Result<()> {
        self.replicas.iter().for_each(|it| it.cloud.set(way));
        self.later(ms, Undo::OpenCloud);
        Ok(())
    }

    fn api_server(&mut self, ms: u64) -> Result<()> {
        self.replicas.iter().for_each(|it| it.api.set(Way::Cut));
        self.later(ms, Undo::OpenApiServer);
        Ok(())
    }

    fn later(&mut self, ms: u64, undo: Undo) {
        let at = Instant::now() + Duration::from_millis(ms);
        self.undone.push((at, undo));
    }

    fn undo(&mut self, undo: &Undo) -> Result<()> {
        match undo {
            Undo::OpenCloud => self.replicas.iter().for_each(|it| it.cloud.set(Way::Open)),
            Undo::OpenApiServer => self.replicas.iter().for_each(|it| it.api.set(Way::Open)),
            Undo::Thaw => {
                for replica in self.replicas.iter_mut().filter(|it| it.frozen) {
                    replica.frozen = false;
                    replica.child.signal("CONT")?;
                }
            }
            Undo::Boot => self.timing(objects::BOOT_MS)?,
            Undo::Mend(node) => self.annotate_node(node, &Value::Null)?,
        }
        Ok(())
    }

    fn fault(&self, times: u32, action: &str, after: bool, effect: &Value) -> Result<()> {
        let fault = json!({"action": action, "times": times, "after": after, "effect": effect});
        self.rig.tell_sim("POST", "/_sim/faults", &fault).map(drop)
    }

    fn timing(&self, running_after_ms: u64) -> Result<()> {
        let timing = objects::timing(running_after_ms);
        self.rig.tell_sim("PUT", "/_sim/timing", &timing).map(drop)
    }

    fn spot_storm(&mut self) -> Result<()> {
        let machines = self.rig.instances()?;
        let spot = alive(&machines).filter(|it| it["capacityType"] == "spot");
        let ids: Vec<String> = spot
            .filter_map(|it| it["id"].as_str().map(str::to_owned))
            .collect();
        for id in ids.into_iter().step_by(2) {
            let by = self.dice.pick(&["lock", "event"]);
            let path = format!("/_sim/instances/{id}/interrupt?after-ms={NOTICE_MS}&by={by}");
            // It may have ended by itself.
            if self.rig.tell_sim("POST", &path, &Value::Null).is_ok() {
                self.taken.insert(id);
            }
        }
        Ok(())
    }

    fn break_node(&mut self, ms: u64) -> Result<()> {
        let Some(name) = self.some_of_wild("/api/v1/nodes")? else {
            return Ok(());
        };
        self.annotate_node(&name, &json!("Broken"))?;
        self.later(ms, Undo::Mend(name));
        Ok(())
    }

    /// A Node that is gone needs no annotation.
    fn annotate_node(&self, name: &str, value: &Value) -> Result<()> {
        let path = format!("/api/v1/nodes/{name}");
        let annotations = json!({"node-break.stage.kwok.x-k8s.io/reason": value});
        let patch = json!({"metadata": {"annotations": annotations}});
        match self.rig.api.merge(&path, &patch) {
            Err(error) if error.to_string().contains("404") => Ok(()),
            other => other,
        }
    }

    fn delete_one(&mut self, path: &str) -> Result<()> {
        match self.some_of_wild(path)? {
            Some(name) => self.delete_quietly(&format!("{path}/{name}")),
            None => Ok(()),
        }
    }

    fn some_of_wild(&mut self, path: &str) -> Result<Option<String>> {
        let found = self.rig.api.list(path)?;
        let names: Vec<&str> = found
            .iter()
            .filter(|it| it["metadata"]["labels"]["karpenter.sh/nodepool"] == WILD)
            .filter_map(|it| it["metadata"]["name"].as_str())
            .collect();
        Ok((!names.is_empty()).then(|| self.dice.pick(&names).to_owned()))
    }

    /// What is gone already is fine.
    fn delete_quietly(&self, path: &str) -> Result<()> {
        match self.rig.api.delete(path) {
            Err(error) if error.to_string().contains("404") => Ok(()),
            other => other,
        }
    }

    fn change_policy(&mut self, policy: Policy) -> Result<()> {
        let bytes = match policy {
            Policy::Gone => return self.delete_quietly(&objects::policy_path()),
            Policy::Broken => b"not a component".to_vec(),
            Policy::One => component("prefer-family")?,
            Policy::Another => component("prefer-spot")?,
            Policy::Trap => component("crash")?,
        };
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        manifests::apply(&self.rig.api, &objects::policy_map(&text))
    }

    /// The world when nobody acts any more.
    pub(super) fn world(&self) -> Result<World> {
        self.rig.look()
    }
}

/// Built by `cargo xtask plugins build`.
fn component(name: &str) -> Result<Vec<u8>> {
    let path = workspace::root().join(format!("plugins/target/components/rust/{name}.wasm"));
    std::fs::read(&path).with_context(|| {
        format!(
            "cannot read {}; `cargo xtask plugins build` makes it",
            path.display()
        )
    })
}
