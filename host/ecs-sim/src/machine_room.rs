//! The machines: each instance runs its user data, joins the cluster if that says so, and goes away.

mod disks;
mod private_root;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::instance::{Boot, Instance};
use crate::kubelet::Kubelet;
use crate::user_data::BootPlan;

use disks::Disks;
pub(crate) use private_root::{Identity, PrivateRoot};

/// What is done on the host for all machines.
#[derive(Debug)]
pub(crate) struct MachineRoom {
    folder: PathBuf,
    places: Semaphore,
    pub(crate) kubelet: Option<Kubelet>,
}

impl MachineRoom {
    /// The folder of the machines is the caller's to remove, after the tasks that use it.
    pub(crate) fn new(folder: &Path, boots_at_once: usize, kubelet: Option<Kubelet>) -> Self {
        Self {
            folder: folder.to_owned(),
            places: Semaphore::new(boots_at_once.max(1)),
            kubelet,
        }
    }

    pub(crate) fn machine(&self, instance_id: &str) -> PrivateRoot {
        PrivateRoot::new(self.folder_of(instance_id))
    }

    fn folder_of(&self, instance_id: &str) -> PathBuf {
        self.folder.join(instance_id)
    }
}

/// How the user data ended.
enum Outcome {
    Ended { success: bool },
    TimedOut,
    Deleted,
}

impl App {
    /// Boots an instance when it is running. Nothing is left to do afterwards: the node is kept alive by kwok.
    pub(crate) async fn live(self: &Arc<Self>, id: &str) {
        let wait_ms = self.state().world.timing.running_after_ms;
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        // The semaphore is never closed.
        let Ok(_place) = self.machine_room.places.acquire().await else {
            return;
        };
        let Some(instance) = self
            .state()
            .instances
            .get(id)
            .filter(|instance| instance.deleted_at.is_none())
            .cloned()
        else {
            return;
        };
        self.set_boot(id, Boot::Running);
        let boot = match self.boot(&instance).await {
            Ok(boot) => boot,
            Err(error) => {
                tracing::warn!(%id, %error, "boot a machine");
                let _ = self
                    .machine_room
                    .machine(id)
                    .append_log(&format!("ecs-sim: the machine could not boot: {error}"));
                Boot::Failed
            }
        };
        self.set_boot(id, boot);
    }

    fn set_boot(&self, id: &str, boot: Boot) {
        if let Some(instance) = self.state().instances.get_mut(id) {
            instance.boot = boot;
        }
    }

    pub(crate) fn boot_log(&self, id: &str) -> Option<String> {
        let known = self.state().instances.contains_key(id);
        let log = known
            .then(|| std::fs::read(self.machine_room.machine(id).log_path()).unwrap_or_default());
        log.map(|log| String::from_utf8_lossy(&log).into_owned())
    }

    pub(crate) fn read_file(&self, id: &str, path: &str) -> Option<Vec<u8>> {
        let known = self.state().instances.contains_key(id);
        known
            .then(|| self.machine_room.machine(id).read_file(path).ok())
            .flatten()
    }

    async fn boot(&self, instance: &Instance) -> io::Result<Boot> {
        let machine = self.machine_room.machine(&instance.id);
        let plan = BootPlan::read(&instance.spec.user_data);
        let metadata_proxy =
            self.url
                .replacen("http://", &format!("http://{}:metadata@", instance.id), 1);
        let host_name = instance.host_name();
        let identity = Identity {
            instance_id: &instance.id,
            host_name: &host_name,
            metadata_proxy: &metadata_proxy,
        };
        machine.prepare(&identity, &plan, &instance.spec.user_data)?;
        machine.attach(&Disks::of(&instance.spec))?;
        for warning in &plan.warnings {
            machine.append_log(&format!("cloud-init: WARNING: {warning}"))?;
        }
        let child = machine.command(&identity)?.spawn()?;
        let (boot, line) = match self.wait(child, &instance.id).await? {
            Outcome::Ended { success: true } => (Boot::Finished, "ecs-sim: user data ended"),
            Outcome::Ended { success: false } => (Boot::Failed, "ecs-sim: user data failed"),
            Outcome::TimedOut => (
                Boot::Failed,
                "ecs-sim: user data took too long and was killed",
            ),
            Outcome::Deleted => (
                Boot::Failed,
                "ecs-sim: the instance was deleted while it booted",
            ),
        };
        machine.append_log(line)?;
        Ok(boot)
    }

    async fn wait(&self, mut child: Child, id: &str) -> io::Result<Outcome> {
        let limit = Duration::from_millis(self.state().world.timing.boot_limit_ms);
        let outcome = tokio::select! {
            status = child.wait() => return Ok(Outcome::Ended { success: status?.success() }),
            () = tokio::time::sleep(limit) => Outcome::TimedOut,
            () = self.deleted(id) => Outcome::Deleted,
        };
        child.kill().await?;
        Ok(outcome)
    }

    /// Waits until the instance is deleted.
    async fn deleted(&self, id: &str) {
        /// A deleted machine may run on for this long, which no one can tell from a slow network.
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        while self
            .state()
            .instances
            .get(id)
            .is_some_and(|instance| instance.deleted_at.is_none())
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Takes a deleted instance's machine down, and its node out of the cluster as the cloud controller manager does.
    pub(crate) async fn release(&self, id: &str) {
        let timing = self.state().world.timing.clone();
        tokio::time::sleep(Duration::from_millis(timing.released_after_ms)).await;
        // What is gone needs no user data; thousands of them would be a lot of memory.
        if let Some(instance) = self.state().instances.get_mut(id) {
            instance.spec.user_data = Vec::new();
        }
        // There is nothing to remove if it never booted.
        let _ = self.machine_room.machine(id).remove();
        let node_name = self
            .state()
            .instances
            .get(id)
            .and_then(|instance| instance.node_name.clone());
        let (Some(kubelet), Some(after_ms), Some(node_name)) = (
            &self.machine_room.kubelet,
            timing.node_removed_after_ms,
            node_name,
        ) else {
            return;
        };
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let provider_id = format!("{}.{id}", self.state().world.region);
        kubelet.remove_node(&node_name, &provider_id).await;
    }
}
