//! What machines ask of the simulator: the attach script, joining, and their metadata.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::app::App;
use crate::clock;
use crate::instance::{Instance, Status};
use crate::join::{Join, JoinError};
use crate::kubelet::KubeletError;
use crate::node;
use crate::params::Params;
use crate::reply::Reply;
use crate::wire::decode_pairs;
use crate::world::Cluster;

const ATTACH_NODE: &str = include_str!("../data/attach_node.sh");
const FORM_BYTES_MAX: usize = 256 * 1024;
const METADATA_TOKEN: &str = "simulated-metadata-token";

/// The script for amd64; other architectures are in a folder of their own.
pub(crate) async fn attach_node(State(app): State<Arc<App>>) -> Response {
    attach_script(&app, "amd64")
}

pub(crate) async fn attach_node_of_arch(
    State(app): State<Arc<App>>,
    Path((_version, arch)): Path<(String, String)>,
) -> Response {
    attach_script(&app, &arch)
}

fn attach_script(app: &App, arch: &str) -> Response {
    let script = ATTACH_NODE
        .replace("@SERVER_URL@", &app.url)
        .replace("@ARCH@", arch);
    Reply::text(200, script).into_response()
}

/// A refusal is final (4xx), so the script gives up; trouble with the API server is not (503), so it tries again.
pub(crate) async fn join(State(app): State<Arc<App>>, request: Request) -> Response {
    let Ok(body) = axum::body::to_bytes(request.into_body(), FORM_BYTES_MAX).await else {
        return Reply::text(413, "the registration is too large\n").into_response();
    };
    let form: Params = decode_pairs(&String::from_utf8_lossy(&body))
        .into_iter()
        .collect();
    let (id, node) = match app.admit(&form) {
        Ok(admitted) => admitted,
        Err(error) => return Reply::text(400, format!("join refused: {error}\n")).into_response(),
    };
    let name = node["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    match app.register(&id, &name, node).await {
        Ok(()) => Reply::text(200, format!("node {name} registered\n")).into_response(),
        Err(error) => {
            tracing::warn!(%id, %error, "register a node");
            Reply::text(503, format!("{error}\n")).into_response()
        }
    }
}

impl App {
    /// Decides whether a machine may join, and as what.
    fn admit(&self, form: &Params) -> Result<(String, serde_json::Value), JoinError> {
        let join = Join::read(form)?;
        let state = self.state();
        let now = clock::now();
        let (instance, _) = state
            .living(&join.instance_id, now)
            .filter(|(_, status)| *status == Status::Running)
            .ok_or_else(|| JoinError::UnknownInstance(join.instance_id.clone()))?;
        let token = state
            .join_tokens
            .get(&join.token)
            .filter(|token| token.expires_at > now)
            .ok_or(JoinError::RefuseToken)?;
        let cluster = state
            .world
            .clusters
            .iter()
            .find(|cluster| cluster.id == token.cluster_id)
            .ok_or(JoinError::RefuseToken)?;
        check_machine(&join, cluster, instance)?;
        if self.machine_room.kubelet.is_none() {
            return Err(JoinError::NoCluster);
        }
        Ok((
            instance.id.clone(),
            node::node(&state.world, cluster, &join, instance)?,
        ))
    }

    /// Registers in a task of its own: a machine that is switched off meanwhile ends the request, but must not leave half
    /// of a registration behind.
    async fn register(
        self: &Arc<Self>,
        id: &str,
        name: &str,
        node: serde_json::Value,
    ) -> Result<(), KubeletError> {
        let (done, outcome) = tokio::sync::oneshot::channel();
        let (app, id, name) = (Arc::clone(self), id.to_owned(), name.to_owned());
        self.tasks.spawn(async move {
            let outcome = app.register_now(&id, &name, &node).await;
            // The machine may have stopped listening.
            let _ = done.send(outcome);
        });
        // The task ends without an answer only together with the simulator.
        outcome.await.unwrap_or(Ok(()))
    }

    async fn register_now(
        &self,
        id: &str,
        name: &str,
        node: &serde_json::Value,
    ) -> Result<(), KubeletError> {
        let Some(kubelet) = &self.machine_room.kubelet else {
            return Ok(());
        };
        // Before the node exists, so that a deletion meanwhile knows what to remove.
        if let Some(instance) = self.state().instances.get_mut(id) {
            instance.node_name = Some(name.to_owned());
        }
        let outcome = kubelet.register(node).await;
        let deleted = self
            .state()
            .instances
            .get(id)
            .is_none_or(|instance| instance.deleted_at.is_some());
        if deleted {
            let provider_id = node["spec"]["providerID"].as_str().unwrap_or_default();
            kubelet.remove_node(name, provider_id).await;
        }
        outcome
    }
}

fn check_machine(join: &Join, cluster: &Cluster, instance: &Instance) -> Result<(), JoinError> {
    if join.endpoint != cluster.endpoint {
        return Err(JoinError::WrongEndpoint {
            given: join.endpoint.clone(),
            expected: cluster.endpoint.clone(),
        });
    }
    let machine = node::arch(&instance.spec.instance_type);
    if join.arch != machine {
        return Err(JoinError::WrongArchitecture {
            script: join.arch.clone(),
            machine,
        });
    }
    if join.runtime != "containerd" {
        return Err(JoinError::WrongRuntime(join.runtime.clone()));
    }
    Ok(())
}

/// The metadata service. Machines share the host's network, so they reach it through a proxy (us), which tells by the
/// proxy's user name which machine asks.
pub(crate) async fn metadata(State(app): State<Arc<App>>, request: Request) -> Response {
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let Some(id) = header("proxy-authorization").and_then(proxy_user) else {
        return Reply::text(404, "metadata is for machines\n").into_response();
    };
    if request.method() == Method::PUT && request.uri().path() == "/latest/api/token" {
        let reply = match header("x-aliyun-ecs-metadata-token-ttl-seconds") {
            Some(_) => Reply::text(200, METADATA_TOKEN),
            None => Reply::text(400, "X-aliyun-ecs-metadata-token-ttl-seconds is missing\n"),
        };
        return reply.into_response();
    }
    let has_token = header("x-aliyun-ecs-metadata-token") == Some(METADATA_TOKEN);
    app.metadata_reply(&id, request.uri().path(), has_token)
        .into_response()
}

fn proxy_user(authorization: &str) -> Option<String> {
    let decoded = STANDARD
        .decode(authorization.strip_prefix("Basic ")?)
        .ok()?;
    let pair = String::from_utf8(decoded).ok()?;
    pair.split_once(':').map(|(user, _)| user.to_owned())
}

impl App {
    fn metadata_reply(&self, id: &str, path: &str, has_token: bool) -> Reply {
        let state = self.state();
        let Some(instance) = state.instances.get(id) else {
            return Reply::text(404, "no such machine\n");
        };
        if instance.spec.http_tokens == "required" && !has_token {
            return Reply::text(403, "a metadata token is required\n");
        }
        let world = &state.world;
        let role = &instance.spec.ram_role;
        let value = match path.trim_start_matches("/latest/").trim_end_matches('/') {
            "user-data" => String::from_utf8_lossy(&instance.spec.user_data).into_owned(),
            "meta-data/instance-id" => instance.id.clone(),
            "meta-data/region-id" => world.region.clone(),
            "meta-data/zone-id" => instance.spec.zone.clone(),
            "meta-data/vpc-id" => world.vpc_id.clone(),
            "meta-data/vswitch-id" => instance.spec.vswitch_id.clone(),
            "meta-data/private-ipv4" => instance.ip.to_string(),
            "meta-data/hostname" => instance.host_name(),
            "meta-data/image-id" => instance.spec.image_id.clone(),
            "meta-data/owner-account-id" => world.account_id.clone(),
            "meta-data/instance/instance-type" => instance.spec.instance_type.id.clone(),
            "meta-data/instance/spot/termination-time" if instance.recycling => clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "meta-data/ram/security-credentials" if !role.is_empty() => role.clone(),
            path if !role.is_empty() && path == format!("meta-data/ram/security-credentials/{role}") => {
                json!({"Code": "Success", "AccessKeyId": "", "AccessKeySecret": "", "SecurityToken": ""}).to_string()
            }
            _ => return Reply::text(404, "not found\n"),
        };
        Reply::text(200, value)
    }
}
