//! `cargo xtask chart-e2e`: the chart on a real API server with real helm, and what it installs with exactly the rights,
//! the token, the environment and the arguments that the chart gives it.
//!
//! kwok runs no containers, so that [`Kubelet`] starts a process for each pod of the Deployment. [`audit`] then reads
//! the API server's log: a request that was refused is a right that is missing, and a right that no request used is too much.

mod audit;
mod decisions;
pub(crate) mod helm;
mod kubelet;
mod objects;
pub(crate) mod packaged;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use control_plane::Options;
use serde_json::{Value, json};

use crate::rig::{Build, Rig};
use crate::{process, workspace};
use audit::Grants;
use helm::Helm;
use kubelet::Kubelet;
use objects::{FIRST, NAMESPACE, RELEASE, SECOND};

const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Of each step, on two cores on which others compile.
const STEP_MAX: Duration = Duration::from_secs(300);
/// The lease is given back, and others look for it every two seconds.
const TOLD_MAX: Duration = Duration::from_secs(3);
/// The lease runs out after 15 s.
const KILLED_MAX: Duration = Duration::from_secs(20);
/// Pods of each of the two workloads.
const PODS: usize = 100;
const PODS_QUICK: usize = 10;
/// A drain that is held up says so every second, and an equal event is counted at once and written a minute later.
const GRACE: &str = "75s";
const GRACE_QUICK: &str = "10s";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Ten pods instead of a hundred, as `make test` does it.
    #[arg(long)]
    quick: bool,
    /// What users run, not a development build.
    #[arg(long)]
    release: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
    /// Only install what `cargo xtask dist` made in this folder, by helm and by kubectl.
    #[arg(long)]
    dist: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Requests that were refused, each once.
    denials: Vec<String>,
    /// Rights that no request used.
    unused: Vec<String>,
    bound: usize,
    leftovers: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "chart-e2e: denials={} unused={} bound={} leftovers={}",
            self.denials.len(),
            self.unused.len(),
            self.bound,
            self.leftovers.len()
        )
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let build = if args.release {
        Build::Release
    } else {
        Build::Dev
    };
    if !args.no_build {
        build.make()?;
        let script = workspace::root().join("tests/tools/build.sh");
        process::run(Command::new(script).arg("--all"))?;
    }
    if let Some(dist) = &args.dist {
        return packaged::run(dist);
    }
    let pods = if args.quick { PODS_QUICK } else { PODS };
    let tally = drive(pods, build)?;
    for (what, found) in [
        ("denied", &tally.denials),
        ("granted and never used", &tally.unused),
        ("left over", &tally.leftovers),
    ] {
        for one in found {
            println!("{what}: {one}");
        }
    }
    println!("{tally}");
    println!("build: {}", build.as_str());
    let is_clean =
        tally.denials.is_empty() && tally.unused.is_empty() && tally.leftovers.is_empty();
    if !is_clean || tally.bound != 2 * pods {
        bail!("the chart is not what the controller needs, no less and no more");
    }
    Ok(())
}

/// A holder is a pod and what tells its processes apart.
fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}

struct Stage {
    /// How long a drain may be held up.
    grace: &'static str,
    kubelet: Kubelet,
    helm: Helm,
    rig: Rig,
}

fn drive(pods: usize, build: Build) -> Result<Tally> {
    let options = Options {
        audit_log: true,
        audited_users: vec![format!("system:serviceaccount:{NAMESPACE}:{RELEASE}")],
        ..Options::default()
    };
    let rig = Rig::bare("chart-e2e", build, options, WORLD)?;
    let mut stage = Stage {
        grace: if pods < PODS { GRACE_QUICK } else { GRACE },
        kubelet: Kubelet::new(&rig)?,
        helm: Helm::new(&rig)?,
        rig,
    };
    stage.install()?;
    let grants = Grants::read(&stage.rig.api)?;
    stage.workload(FIRST, pods)?;
    stage.until("the first pods bound", |it| Ok(it.bound()? == pods))?;
    // An upgrade makes it anew, too, and pods may be bound before the controller had anything to remember.
    stage.until("the memory made anew", |it| {
        let found = it.rig.api.list(&objects::memories_path())?;
        Ok(!found.is_empty())
    })?;
    stage.upgrade(pods)?;
    stage.fail_over(pods == PODS)?;
    let bound = stage.bound()?;
    stage.drive_the_rest(pods)?;
    stage.remove()?;
    // Before the uninstall: it takes the rights first, and a controller that stops then still asks for its lease.
    let log = stage.rig.read_audit_log()?;
    stage.uninstall()?;
    let leftovers = stage.leftovers()?;
    Ok(Tally {
        denials: audit::denials(&log),
        unused: unused(grants.unused(&log), pods < PODS),
        bound,
        leftovers,
    })
}

/// What no quick run is long enough for.
const NEEDS_A_MINUTE: &str = "patch events.events.k8s.io";

fn unused(mut rights: Vec<String>, is_quick: bool) -> Vec<String> {
    rights.retain(|right| !(is_quick && right == NEEDS_A_MINUTE));
    rights
}

impl Stage {
    /// A cluster with two nodes of its own, the cloud's key, and the release.
    fn install(&mut self) -> Result<()> {
        let api = &self.rig.api;
        api.post(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": NAMESPACE}}),
        )?;
        for idx in 1..=2 {
            api.post("/api/v1/nodes", &objects::system_node(idx))?;
        }
        api.post(
            &format!("/api/v1/namespaces/{NAMESPACE}/secrets"),
            &objects::secret(),
        )?;
        self.helm
            .install("kerf", &objects::values(&self.rig, false, self.grace))?;
        self.until("an acting replica", |it| {
            Ok(it.kubelet.running() == 2 && !it.lease()?.0.is_empty())
        })?;
        // Somebody deletes what the controller writes: it makes both anew. Nothing has been remembered yet, so that the
        // first thing that is makes the ConfigMap.
        for path in [objects::lease_path(), objects::memory_path()] {
            self.rig.api.delete(&path)?;
        }
        self.until("the lease made anew", |it| Ok(!it.lease()?.0.is_empty()))
    }

    fn workload(&self, name: &str, pods: usize) -> Result<()> {
        self.workload_on(objects::RUN, name, pods)
    }

    fn workload_on(&self, run: &str, name: &str, pods: usize) -> Result<()> {
        let deployment = crate::rig::deployment(name, run, pods, objects::POD_CPU);
        self.rig
            .api
            .post("/apis/apps/v1/namespaces/default/deployments", &deployment)
            .map(drop)
    }

    /// The second workload comes while the pods of the Deployment are replaced, with other credentials and by another
    /// leader; then the definitions get their own release.
    fn upgrade(&mut self, pods: usize) -> Result<()> {
        let (before, _) = self.lease()?;
        self.workload(SECOND, pods)?;
        self.helm
            .upgrade("kerf", &objects::values(&self.rig, true, self.grace))?;
        self.until("a new leader and every pod bound", |it| {
            let (now, transitions) = it.lease()?;
            let is_new = !now.is_empty() && now != before && transitions > 0;
            Ok(is_new && it.kubelet.running() == 2 && it.bound()? == 2 * pods)
        })?;
        self.helm.install_definitions()
    }

    /// The acting replica is told to go, and then the next one is killed: how long until another one acts.
    fn fail_over(&mut self, is_judged: bool) -> Result<()> {
        let (leader, _) = self.lease()?;
        let pod = pod_of(&leader);
        self.rig
            .api
            .delete(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}"))?;
        let told = self.await_other(&leader)?;
        let (leader, _) = self.lease()?;
        self.kubelet.kill(pod_of(&leader))?;
        let killed = self.await_other(&leader)?;
        println!(
            "failover: told={:.1}s killed={:.1}s",
            told.as_secs_f64(),
            killed.as_secs_f64()
        );
        if is_judged && (told > TOLD_MAX || killed > KILLED_MAX) {
            bail!("another replica must act within {TOLD_MAX:?} and {KILLED_MAX:?}");
        }
        Ok(())
    }

    fn await_other(&mut self, leader: &str) -> Result<Duration> {
        let started = Instant::now();
        self.until("another replica acting", |it| {
            let (now, _) = it.lease()?;
            Ok(!now.is_empty() && now != leader)
        })?;
        Ok(started.elapsed())
    }

    /// Everything else that a controller does with the rights that it has.
    fn drive_the_rest(&mut self, pods: usize) -> Result<()> {
        self.drive_removals(2 * pods)?;
        self.drive_drift(2 * pods)?;
        self.drive_policies()?;
        self.drive_interruption()
    }

    /// A claim is deleted whose pods include one that may not be disrupted and one that stays with its volume; then a
    /// Node is deleted.
    fn drive_removals(&mut self, pods: usize) -> Result<()> {
        let claims = self.claims()?;
        let [first, second, ..] = &claims[..] else {
            bail!("{} claims are too few to remove two", claims.len());
        };
        let node = first["status"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        for (path, object) in objects::guests(&node) {
            self.rig.api.post(path, &object)?;
        }
        let name = first["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.rig
            .api
            .delete(&format!("/apis/karpenter.sh/v1/nodeclaims/{name}"))?;
        let is_gone = |it: &Self, name: &str| -> Result<bool> {
            Ok(it
                .claims()?
                .iter()
                .all(|claim| claim["metadata"]["name"] != name))
        };
        self.until("the deleted claim gone and its pods bound", |it| {
            Ok(is_gone(it, &name)? && it.bound()? == pods)
        })?;
        self.rig
            .api
            .delete("/apis/storage.k8s.io/v1/volumeattachments/guest")?;
        let node = second["status"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let name = second["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.rig.api.delete(&format!("/api/v1/nodes/{node}"))?;
        self.until("the deleted node's claim gone and its pods bound", |it| {
            Ok(is_gone(it, &name)? && it.bound()? == pods)
        })
    }

    /// In the order that the chart's notes give.
    fn remove(&mut self) -> Result<()> {
        for path in [
            "/apis/apps/v1/namespaces/default/deployments",
            "/api/v1/namespaces/default/pods",
            "/apis/karpenter.sh/v1/nodepools",
        ] {
            self.rig.api.delete(path)?;
        }
        self.until("every claim and instance gone", |it| {
            Ok(it.claims()?.is_empty() && it.living()?.is_empty())
        })?;
        self.rig.api.delete(objects::CLASS_PATH)?;
        self.until("the class gone", |it| {
            Ok(it.rig.api.list(objects::CLASSES_PATH)?.is_empty())
        })
    }

    fn uninstall(&mut self) -> Result<()> {
        self.helm.uninstall("kerf")?;
        self.until("the controller gone", |it| Ok(it.kubelet.running() == 0))?;
        self.helm.uninstall("kerf-crd")
    }

    /// The garbage collector and finalizers of definitions take some seconds.
    fn leftovers(&mut self) -> Result<Vec<String>> {
        let mut last = Vec::new();
        let ended = self.until("nothing left", |it| {
            last = objects::leftovers(&it.rig)?;
            Ok(last.is_empty())
        });
        match ended {
            Err(error) if last.is_empty() => Err(error),
            _ => Ok(last),
        }
    }

    fn bound(&self) -> Result<usize> {
        self.bound_of(&[FIRST, SECOND])
    }

    fn bound_of(&self, workloads: &[&str]) -> Result<usize> {
        let pods = self.rig.api.list("/api/v1/namespaces/default/pods")?;
        let is_bound = |pod: &&Value| {
            let app = &pod["metadata"]["labels"]["app"];
            pod["status"]["phase"] == "Running"
                && pod["metadata"]["deletionTimestamp"].is_null()
                && workloads.iter().any(|workload| app == workload)
        };
        Ok(pods.iter().filter(is_bound).count())
    }

    fn claims(&self) -> Result<Vec<Value>> {
        self.rig.api.list("/apis/karpenter.sh/v1/nodeclaims")
    }

    fn living(&self) -> Result<Vec<Value>> {
        let mut instances = self.rig.instances()?;
        instances.retain(|it| it["status"] != "Gone");
        Ok(instances)
    }

    /// Who holds the lease, and how often that changed; nobody while there is no lease.
    fn lease(&self) -> Result<(String, i64)> {
        let found = self.rig.api.list(&objects::leases_path())?;
        let spec = found.first().map(|it| &it["spec"]);
        let holder = spec.and_then(|it| it["holderIdentity"].as_str());
        let transitions = spec.and_then(|it| it["leaseTransitions"].as_i64());
        Ok((
            holder.unwrap_or_default().to_owned(),
            transitions.unwrap_or_default(),
        ))
    }

    fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + STEP_MAX;
        let started = Instant::now();
        loop {
            self.kubelet.sync(&self.rig)?;
            if is_so(self)? {
                println!("{what}: {:.1} s", started.elapsed().as_secs_f64());
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "never saw: {what}; the logs end with:\n{}",
                    self.kubelet.log_tails()
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
