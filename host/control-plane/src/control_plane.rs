//! The control plane: starting in order, killing and restarting parts, taking everything down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::SearchPath;
use crate::client::Client;
use crate::command::Setup;
use crate::credentials::Credentials;
use crate::folder::Folder;
use crate::port::Ports;
use crate::process::{Launcher, Process};
use crate::readiness;
use crate::{Component, Error, Options, log};

/// Between two questions whether a server is ready: well under what the fastest of them takes (etcd, 0.2 s).
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// A running control plane. All methods take `&self`, so that a test can kill a part while others use it.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped first: the servers end while the launcher's thread and their folder are still there.
    processes: Mutex<BTreeMap<Component, Process>>,
    launcher: Launcher,
    client: Client,
    credentials: Credentials,
    ports: Ports,
    options: Options,
    search_path: SearchPath,
    folder: Folder,
}

impl ControlPlane {
    /// Starts the servers and waits until pods can be created. On failure nothing keeps running.
    pub fn start(options: Options) -> Result<Self, Error> {
        let search_path = SearchPath::new(&options);
        let order = readiness::start_order(&options);
        // All at once, so that a missing one is reported before any work is done.
        for component in order.iter().flatten() {
            search_path.find(*component)?;
        }
        let folder = Folder::create(&options)?;
        let ports = Ports::choose()?;
        let credentials = Credentials::create(&folder, &server_url(ports), &options.users)?;
        let control_plane = Self {
            processes: Mutex::default(),
            launcher: Launcher::start().map_err(Error::StartThread)?,
            client: Client::new(&credentials)?,
            credentials,
            ports,
            options,
            search_path,
            folder,
        };
        for stage in order {
            for component in &stage {
                control_plane.launch(*component)?;
            }
            for component in stage {
                control_plane.await_ready(component)?;
            }
        }
        Ok(control_plane)
    }

    /// The admin's kubeconfig, with the certificate authority as a file beside it.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.credentials.admin_kubeconfig
    }

    /// The kubeconfig of one of `Options::users`.
    pub fn user_kubeconfig_path(&self, user: &str) -> Option<&Path> {
        self.credentials.kubeconfigs.get(user).map(PathBuf::as_path)
    }

    /// `https://127.0.0.1:port`. It stays the same over restarts.
    pub fn server_url(&self) -> String {
        server_url(self.ports)
    }

    /// The admin's bearer token (group system:masters).
    pub fn token(&self) -> &str {
        &self.credentials.admin_token
    }

    /// The certificate authority that signed the API server's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.credentials.ca_pem
    }

    /// One `<program>.log` for each server, and `audit.log` if it was asked for.
    pub fn logs_dir(&self) -> PathBuf {
        self.folder.logs()
    }

    /// The process id of a server that is running.
    pub fn process_id(&self, component: Component) -> Option<u32> {
        let mut processes = self.processes();
        let process = processes.get_mut(&component)?;
        process.ended().is_none().then(|| process.id())
    }

    /// Kills a server with SIGKILL and waits until it is gone. Killing what does not run is fine.
    pub fn kill(&self, component: Component) -> Result<(), Error> {
        match self.processes().remove(&component) {
            Some(mut process) => process
                .kill()
                .map_err(|source| Error::Kill { component, source }),
            None => Ok(()),
        }
    }

    /// Kills a server if it runs, starts it again on the same port with the same state, and waits until it is ready.
    pub fn restart(&self, component: Component) -> Result<(), Error> {
        if !self.options.runs(component) {
            return Err(Error::NotPartOfIt(component));
        }
        self.kill(component)?;
        if component == Component::Kwok {
            self.release_nodes()?;
        }
        self.launch(component)?;
        self.await_ready(component)
    }

    /// Takes everything down. Dropping does the same, but cannot say what failed.
    pub fn stop(self) -> Result<(), Error> {
        Component::ALL
            .into_iter()
            .rev()
            .try_for_each(|component| self.kill(component))
    }

    /// A kubelet that comes back takes its lease up again at once. A new kwok takes another's only when it has run out,
    /// or is gone.
    fn release_nodes(&self) -> Result<(), Error> {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        self.client
            .delete(&format!("{}{leases}", self.server_url()))
            .map_err(|source| Error::ReleaseNodes(Box::new(source)))
    }

    fn launch(&self, component: Component) -> Result<(), Error> {
        let setup = Setup {
            folder: &self.folder,
            credentials: &self.credentials,
            ports: self.ports,
            options: &self.options,
        };
        let program = self.search_path.find(component)?;
        let args = setup.args(component)?;
        let process = self
            .folder
            .append_log(component)
            .and_then(|log| self.launcher.launch(&program, &args, log))
            .map_err(|source| Error::Start { component, source })?;
        self.processes().insert(component, process);
        Ok(())
    }

    fn await_ready(&self, component: Component) -> Result<(), Error> {
        let deadline = Instant::now() + self.options.ready_timeout;
        let mut probes = readiness::probes(component, self.ports)
            .into_iter()
            .peekable();
        while let Some(probe) = probes.peek() {
            match self.client.check(probe) {
                Ok(()) => drop(probes.next()),
                Err(last_answer) => {
                    self.check_alive(component)?;
                    if Instant::now() >= deadline {
                        return Err(self.not_ready(component, last_answer));
                    }
                    thread::sleep(POLL_INTERVAL);
                }
            }
        }
        // Somebody else's server may have answered on a port that ours could not get.
        self.check_alive(component)
    }

    fn check_alive(&self, component: Component) -> Result<(), Error> {
        match self
            .processes()
            .get_mut(&component)
            .and_then(Process::ended)
        {
            None => Ok(()),
            Some(status) => {
                let log_tail = log::tail(&self.folder.log(component));
                Err(Error::Ended {
                    component,
                    status,
                    log_tail,
                })
            }
        }
    }

    fn not_ready(&self, component: Component, last_answer: String) -> Error {
        Error::AwaitReady {
            component,
            waited_secs: self.options.ready_timeout.as_secs(),
            last_answer,
            log_tail: log::tail(&self.folder.log(component)),
        }
    }

    /// A panic of another holder leaves the map as it was between two calls, which is always sound.
    fn processes(&self) -> MutexGuard<'_, BTreeMap<Component, Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn server_url(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api_server)
}
