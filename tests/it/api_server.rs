//! Level: the real API server alone. One server with our definitions for all tests that run at the same time.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use control_plane::{ControlPlane, Options};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::definitions;

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// An API server with our definitions; it ends with the last test that holds it.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    _keeper: Keeper,
}

/// The kernel ends the servers with the thread that started them, so one thread does nothing else.
struct Keeper {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The server that other tests use now, or a new one: starting costs seconds.
pub(crate) fn shared() -> Arc<Server> {
    let mut shared = SHARED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

impl Server {
    fn start() -> Self {
        let (end, until) = channel::<()>();
        let (started, kubeconfig) = channel();
        let thread = std::thread::spawn(move || {
            let control_plane =
                ControlPlane::start(Options::api_server_only()).expect("start the API server");
            let _ = started.send(control_plane.kubeconfig_path().to_owned());
            let _ = until.recv();
        });
        let keeper = Keeper {
            end: Some(end),
            thread: Some(thread),
        };
        let kubeconfig = kubeconfig.recv().expect("the API server starts");
        // Tests of several threads use the client, so its connections are driven by a thread of their own.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = runtime.block_on(async {
            let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
                .await
                .unwrap();
            Client::try_from(config).unwrap()
        });
        runtime.block_on(definitions::install(&client));
        Self {
            client,
            runtime,
            _keeper: keeper,
        }
    }

    /// What the API server makes of a manifest, or its refusal. Unknown fields are refused, as `kubectl apply` does.
    pub(crate) fn apply(&self, manifest: &Value) -> Result<Value, String> {
        let params = PatchParams::apply("test").force().validation_strict();
        self.runtime
            .block_on(apply(&self.client, manifest, &params))
    }

    /// As [`Server::apply`], but nothing is kept. Forced, because other tests apply objects of the same names.
    pub(crate) fn try_apply(&self, manifest: &Value) -> Result<Value, String> {
        let params = PatchParams::apply("kubectl")
            .force()
            .validation_strict()
            .dry_run();
        self.runtime
            .block_on(apply(&self.client, manifest, &params))
    }
}

async fn apply(client: &Client, manifest: &Value, params: &PatchParams) -> Result<Value, String> {
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let kind = GroupVersionKind::try_from(&types).unwrap();
    let (resource, capabilities) = discovery::pinned_kind(client, &kind).await.unwrap();
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), "default", &resource),
    };
    let applied = api
        .patch(&object.name_any(), params, &Patch::Apply(manifest))
        .await;
    applied
        .map(|object| serde_json::to_value(object).unwrap())
        .map_err(|error| error.to_string())
}
