//! Starting and stopping a simulator, and steering it from the same process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::admin;
use crate::announced::{Announced, Notice};
use crate::app::App;
use crate::calls::Count;
use crate::catalog::{Catalog, CatalogError};
use crate::connection::{CuttableListener, Peer};
use crate::faults::Fault;
use crate::gateway::gateway;
use crate::keyring::{AccessKey, Session};
use crate::kubelet::{Kubelet, KubeletError};
use crate::machine_room::MachineRoom;
use crate::planted::Planted;
use crate::state::State;
use crate::view::InstanceView;
use crate::world::World;

/// How to start a simulator. `Options::default()` listens on a free loopback port and registers no nodes.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub access_key_id: String,
    pub access_key_secret: String,
    /// Makes the access key one of a session with this token.
    pub security_token: Option<String>,
    pub world: World,
    /// The cluster in which booted instances become nodes. None: they boot, but there is nothing to join.
    pub kubeconfig: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            access_key_id: "LTAIsim".to_owned(),
            access_key_secret: "simulated".to_owned(),
            security_token: None,
            world: World::default(),
            kubeconfig: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("load the instance type catalog")]
    Catalog(#[from] CatalogError),
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("make a folder for the machines")]
    MachineRoom(#[source] std::io::Error),
    #[error("reach the cluster that nodes are to join")]
    Cluster(#[from] KubeletError),
}

/// A running simulator; it ends, with all its machines, when this is dropped.
#[derive(Debug)]
pub struct EcsSim {
    app: Arc<App>,
    /// The machines' file systems; removed last.
    _folder: TempDir,
}

impl EcsSim {
    /// Listens and serves in the background of the current tokio runtime.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let Options {
            listen,
            access_key_id,
            access_key_secret,
            security_token,
            world,
            kubeconfig,
        } = options;
        let listen_error = |source| StartError::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let kubelet = match &kubeconfig {
            None => None,
            Some(path) => Some(Kubelet::connect(path).await?),
        };
        let folder = tempfile::Builder::new()
            .prefix("ecs-sim-")
            .tempdir()
            .map_err(StartError::MachineRoom)?;
        let machine_room = MachineRoom::new(folder.path(), world.boots_at_once, kubelet);
        let catalog = match world.instance_types.as_slice() {
            [] => Catalog::embedded()?,
            sold => Catalog::of(sold),
        };
        let mut state = State::new(world, catalog);
        let session = security_token.map(|token| Session {
            token,
            expires_at: Timestamp::MAX,
            role_arn: String::new(),
        });
        state.keyring.insert(
            &access_key_id,
            AccessKey {
                secret: access_key_secret,
                session,
            },
        );
        let app = Arc::new(App::new(format!("http://{address}"), state, machine_room));
        app.tasks.spawn(serve(Arc::clone(&app), listener));
        Ok(Self {
            app,
            _folder: folder,
        })
    }

    /// Ends everything and waits for it, so that no process and no file is left. Dropping ends everything too, but what
    /// runs at that moment may leave a file.
    pub async fn stop(self) {
        self.app.tasks.shut_down().await;
    }

    /// Puts a machine there that another program launched; its node is to be called `<region>.<ip>`.
    ///
    /// # Errors
    /// Which part of it the world does not have.
    pub fn plant(&self, planted: Planted) -> Result<InstanceView, String> {
        self.app.plant(planted)
    }

    /// Where to send requests, `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.app.url
    }

    /// Adds to the fault script.
    pub fn add_fault(&self, fault: Fault) {
        self.app.faults().add(fault);
    }

    pub fn clear_faults(&self) {
        self.app.faults().clear();
    }

    /// Calls that a [`crate::Effect::Hold`] fault is holding at the moment, by action.
    pub fn held(&self) -> Vec<String> {
        self.app
            .faults()
            .held()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Lets held calls of an action (or of all) go on; says how many.
    pub fn release_held(&self, action: Option<&str>) -> usize {
        self.app.faults().release(action)
    }

    /// Calls so far, by action.
    pub fn calls(&self) -> BTreeMap<String, Count> {
        self.app.calls().counts().clone()
    }

    /// Changes the world while it turns: stock, prices of memory, timing, networks.
    pub fn change_world(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.app.state().world);
    }

    /// All instances that ever were, oldest first; those that are over have the status `Gone`.
    pub fn instances(&self) -> Vec<InstanceView> {
        self.app.views()
    }

    /// What an instance's user data printed so far.
    pub fn boot_log(&self, instance_id: &str) -> Option<String> {
        self.app.boot_log(instance_id)
    }

    /// A file on an instance, as its user data left it.
    pub fn read_file(&self, instance_id: &str, path: &str) -> Option<Vec<u8>> {
        self.app.read_file(instance_id, path)
    }

    /// Announces that a spot machine is taken back (`OperationLocks: Recycling`), and takes it back after a while.
    pub fn interrupt(&self, instance_id: &str, after: Duration) -> bool {
        self.interrupt_by(instance_id, after, Notice::Lock)
    }

    /// As [`Self::interrupt`], announced in this way and in no other.
    pub fn interrupt_by(&self, instance_id: &str, after: Duration, notice: Notice) -> bool {
        self.app.interrupt(instance_id, after, notice)
    }

    /// Announces an event, or another state of one that was announced. Nothing else happens to the machine.
    pub fn announce(&self, event: Announced) {
        self.app.announce(event);
    }

    /// Stops a machine without deleting it, as its owner or the platform may do (`Status: Stopped`).
    pub fn halt(&self, instance_id: &str) -> bool {
        self.app.halt(instance_id)
    }

    /// What the account pays per hour for the instances that are not deleted.
    pub fn price_per_hour(&self) -> f64 {
        self.app.state().price_per_hour()
    }
}

impl Drop for EcsSim {
    fn drop(&mut self) {
        self.app.tasks.abort();
    }
}

async fn serve(app: Arc<App>, listener: TcpListener) {
    let router = admin::router().fallback(gateway).with_state(app);
    let service = router.into_make_service_with_connect_info::<Peer>();
    if let Err(error) = axum::serve(CuttableListener(listener), service).await {
        tracing::error!(%error, "serve");
    }
}
