//! A whole cluster for one test: the real control plane, ecs-sim, and `kerf` as a process of its own.
//!
//! Tests say what they wait for; nothing here sleeps for a fixed time. What a failing test needs to know (the
//! controller's log, the objects) is printed when a wait runs out.

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use control_plane::{ControlPlane, Options};
use ecs_sim::{EcsSim, World};
use k8s_openapi::api::core::v1::{Node, Pod};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::discovery::{ApiResource, Discovery, Scope};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use crate::definitions;

/// Long enough for 50 nodes to boot on two busy cores; a test that passes never waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(150);
pub(crate) const NAMESPACE: &str = "kerf-system";
pub(crate) const CLUSTER_ID: &str = "c0000000000000000000000000000sim1";

/// The stage; dropping it stops everything.
pub(crate) struct Stage {
    pub(crate) kerf: Option<Child>,
    pub(crate) sim: EcsSim,
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    log: PathBuf,
    _folder: tempfile::TempDir,
    pub(crate) control_plane: ControlPlane,
}

impl Stage {
    /// Control plane, simulator and CRDs; the controller is not started yet.
    pub(crate) fn set() -> Self {
        Self::set_with(|_| {})
    }

    /// As `set`, in another world.
    pub(crate) fn set_with(change: impl FnOnce(&mut World)) -> Self {
        let control_plane =
            ControlPlane::start(Options::default()).expect("start the control plane");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = control_plane.kubeconfig_path().to_owned();
        let client = runtime.block_on(async {
            let file =
                kube::config::Kubeconfig::read_from(&kubeconfig).expect("read the kubeconfig");
            let config = kube::Config::from_custom_kubeconfig(file, &Default::default())
                .await
                .expect("kubeconfig");
            Client::try_from(config).expect("client")
        });
        let mut world = World::default();
        change(&mut world);
        let options = ecs_sim::Options {
            kubeconfig: Some(kubeconfig),
            world,
            ..ecs_sim::Options::default()
        };
        let sim = runtime
            .block_on(EcsSim::start(options))
            .expect("start ecs-sim");
        let folder = tempfile::tempdir().unwrap();
        let stage = Self {
            kerf: None,
            sim,
            client,
            runtime,
            log: folder.path().join("kerf.log"),
            _folder: folder,
            control_plane,
        };
        stage.apply(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}"
        ));
        stage.runtime.block_on(definitions::install(&stage.client));
        stage
    }

    /// Starts the controller with these arguments besides the usual ones.
    pub(crate) fn start_kerf(&mut self, args: &[&str]) {
        self.start_kerf_with(args, &[]);
    }

    /// As `start_kerf`, but it acts only while it holds the lease.
    pub(crate) fn start_leader(&mut self, args: &[&str]) {
        self.spawn_kerf(args, &[]);
    }

    /// As `start_kerf`, with these environment variables in place of the usual ones.
    pub(crate) fn start_kerf_with(&mut self, args: &[&str], env: &[(&str, &str)]) {
        let alone = [&["--disable-leader-election"], args].concat();
        self.spawn_kerf(&alone, env);
    }

    fn spawn_kerf(&mut self, args: &[&str], env: &[(&str, &str)]) {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();
        let url = self.sim.url().to_owned();
        let child = Command::new(binary("kerf"))
            .args(["controller", "--metrics-address", "127.0.0.1:0"])
            .args([
                "--cluster-id",
                CLUSTER_ID,
                "--region",
                "cn-hangzhou",
                "--namespace",
                NAMESPACE,
            ])
            .args([
                "--batch-idle-duration",
                "300ms",
                "--disruption-poll-duration",
                "1s",
            ])
            .args(args)
            .arg("--kubeconfig")
            .arg(self.control_plane.kubeconfig_path())
            .env("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAIsim")
            .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "simulated")
            .env("LOG_LEVEL", "info,kerf_cloud=debug")
            .envs(
                [
                    "ECS_ENDPOINT",
                    "VPC_ENDPOINT",
                    "CS_ENDPOINT",
                    "RAM_ENDPOINT",
                    "STS_ENDPOINT",
                ]
                .map(|name| (name, &url)),
            )
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("start kerf");
        self.kerf = Some(child);
    }

    /// kill -9 of the controller.
    pub(crate) fn kill_kerf(&mut self) {
        let mut child = self.kerf.take().expect("kerf runs");
        child.kill().expect("kill kerf");
        child.wait().expect("wait for kerf");
    }

    /// Whether the controller is still running.
    pub(crate) fn kerf_is_alive(&mut self) -> bool {
        self.kerf
            .as_mut()
            .is_some_and(|child| child.try_wait().expect("look at kerf").is_none())
    }

    /// What the controller logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Applies every document of the YAML, as `kubectl apply --server-side` does.
    pub(crate) fn apply(&self, yaml: &str) {
        if let Err(error) = self.try_apply(yaml) {
            panic!("cannot apply: {error}\n{yaml}");
        }
    }

    /// As `apply`, with the API server's answer.
    pub(crate) fn try_apply(&self, yaml: &str) -> Result<(), kube::Error> {
        for document in yaml.split("\n---\n").filter(|it| !it.trim().is_empty()) {
            let object: DynamicObject =
                serde_saphyr::from_str(document).expect("a Kubernetes object");
            self.runtime.block_on(self.apply_one(object))?;
        }
        Ok(())
    }

    async fn apply_one(&self, object: DynamicObject) -> Result<(), kube::Error> {
        let types = object.types.clone().expect("apiVersion and kind");
        let (group, version) = types
            .api_version
            .split_once('/')
            .unwrap_or(("", &types.api_version));
        let gvk = kube::core::GroupVersionKind::gvk(group, version, &types.kind);
        let discovery = Discovery::new(self.client.clone())
            .filter(&[group])
            .run()
            .await?;
        let (resource, capabilities) = discovery
            .resolve_gvk(&gvk)
            .expect("a kind that the API server serves");
        let api = self.dynamic(&object, &resource, &capabilities.scope);
        let params = PatchParams {
            force: true,
            ..PatchParams::apply("test")
        };
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .map(drop)
    }

    fn dynamic(
        &self,
        object: &DynamicObject,
        resource: &ApiResource,
        scope: &Scope,
    ) -> Api<DynamicObject> {
        match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespaced => {
                let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
                Api::namespaced_with(self.client.clone(), &namespace, resource)
            }
        }
    }

    /// Waits until `look` finds something; panics with everything that helps when it never does.
    pub(crate) fn until<T, F, Fut>(&self, what: &str, look: F) -> T
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Option<T>>,
    {
        self.until_or_none(look).unwrap_or_else(|| {
            panic!(
                "waited {} s and never saw: {what}\n{}",
                PATIENCE.as_secs(),
                self.report()
            )
        })
    }

    /// As `until`, for callers who can say better what they never saw.
    pub(crate) fn until_or_none<T, F, Fut>(&self, look: F) -> Option<T>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Option<T>>,
    {
        let started = Instant::now();
        self.runtime.block_on(async {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            while started.elapsed() < PATIENCE {
                ticks.tick().await;
                if let Some(found) = look().await {
                    return Some(found);
                }
            }
            None
        })
    }

    /// All objects of a cluster-scoped kind.
    pub(crate) fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.runtime.block_on(self.list_async())
    }

    /// As `list`, inside `until`.
    pub(crate) async fn list_async<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        api.list(&ListParams::default())
            .await
            .map(|list| list.items)
            .unwrap_or_default()
    }

    /// Deletes a cluster-scoped object.
    pub(crate) fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        self.runtime
            .block_on(api.delete(name, &DeleteParams::default()))
            .expect("delete");
    }

    /// The pods of the default namespace that the kube-scheduler has bound.
    pub(crate) async fn bound_pods(&self) -> Vec<Pod> {
        let pods: Vec<Pod> = self.list_async().await;
        let is_bound = |pod: &Pod| {
            pod.spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.is_some())
        };
        pods.into_iter()
            .filter(|pod| pod.namespace().as_deref() == Some("default") && is_bound(pod))
            .collect()
    }

    /// Waits until exactly this many pods are bound and the world has come to rest: every claim is Ready.
    pub(crate) fn until_bound(&self, count: usize) {
        self.until(&format!("{count} pods bound on ready nodes"), || async {
            let bound = self.bound_pods().await.len();
            let claims: Vec<NodeClaim> = self.list_async().await;
            let is_settled = claims
                .iter()
                .all(|claim| claim.is_true("Ready") && claim.metadata.deletion_timestamp.is_none());
            (bound == count && is_settled).then_some(())
        });
    }

    /// Waits until there are no nodes, no claims and no instances.
    pub(crate) fn until_empty(&self) {
        self.until("no nodes, no NodeClaims, no instances", || async {
            let nodes: Vec<Node> = self.list_async().await;
            let claims: Vec<NodeClaim> = self.list_async().await;
            (nodes.is_empty() && claims.is_empty() && self.instances().is_empty()).then_some(())
        });
    }

    /// A machine with those tags that kerf has not launched.
    pub(crate) fn plant(&self, tags: &[(&str, &str)]) -> ecs_sim::InstanceView {
        let tags = tags.iter();
        let planted = self.sim.plant(ecs_sim::Planted {
            instance_type: "ecs.g7.xlarge".to_owned(),
            zone: "cn-hangzhou-h".to_owned(),
            image_id: "aliyun_3_x64_20G_alibase_20250629.vhd".to_owned(),
            is_spot: false,
            tags: tags
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        });
        planted.unwrap()
    }

    /// The instances that the account pays for.
    pub(crate) fn instances(&self) -> Vec<ecs_sim::InstanceView> {
        self.sim
            .instances()
            .into_iter()
            .filter(|instance| instance.status != "Gone")
            .collect()
    }

    fn report(&self) -> String {
        let mut lines = Vec::new();
        for pool in self.list::<NodePool>() {
            lines.push(format!("NodePool {}: {:?}", pool.name_any(), pool.status));
        }
        for class in self.list::<EcsNodeClass>() {
            lines.push(format!(
                "ECSNodeClass {}: {:?}",
                class.name_any(),
                class.status
            ));
        }
        for claim in self.list::<NodeClaim>() {
            lines.push(format!(
                "NodeClaim {}: {:?} {:?}",
                claim.name_any(),
                claim.metadata.annotations,
                claim.status
            ));
        }
        for node in self.list::<Node>() {
            let spec = node.spec.clone().unwrap_or_default();
            lines.push(format!(
                "Node {}: {:?} {:?}",
                node.name_any(),
                spec.provider_id,
                spec.taints
            ));
        }
        for pod in self
            .list::<Pod>()
            .iter()
            .filter(|pod| {
                pod.spec
                    .as_ref()
                    .is_some_and(|spec| spec.node_name.is_none())
            })
            .take(3)
        {
            lines.push(format!(
                "Pod {}: {:?}",
                pod.name_any(),
                pod.status.as_ref().map(|status| &status.conditions)
            ));
        }
        lines.push(format!("instances: {:?}", self.instances()));
        lines.push(format!("calls: {:?}", self.sim.calls()));
        let log = self.log();
        let tail: Vec<&str> = log.lines().rev().take(80).collect();
        lines.push("the controller's last lines:".to_owned());
        lines.extend(tail.into_iter().rev().map(str::to_owned));
        lines.join("\n")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(child) = &mut self.kerf {
            // A child that ended already is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A program that tests/tools/build.sh builds.
pub(crate) fn tool(name: &str) -> PathBuf {
    let built = std::env::var_os("KERF_CONTROL_PLANE_DIR");
    built
        .map_or_else(|| root().join(".control-plane/bin"), PathBuf::from)
        .join(name)
}

/// A program of the workspace, built beside this test.
pub(crate) fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target/<profile>");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build --workspace` (make test does)",
        path.display()
    );
    path
}
