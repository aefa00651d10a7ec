//! The part of the CS (ACK) API that a node needs in order to join: ROA style, snake_case, JSON inside of text.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Call;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::{JoinToken, State, opaque_id};
use crate::world::Cluster;

const CONTAINERD_VERSION: &str = "2.1.3";
/// A token's life when the caller names none.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(24);

fn cluster<'a>(state: &'a State, call: &Call) -> Result<&'a Cluster, ApiError> {
    let found = state
        .world
        .clusters
        .iter()
        .find(|cluster| cluster.id == call.cluster_id);
    found.ok_or_else(|| {
        ApiError::new(
            404,
            "ErrorClusterNotFound",
            format!("cluster {} not found", call.cluster_id),
        )
    })
}

pub(super) fn describe_cluster_detail(state: &State, call: &Call) -> Result<Value, ApiError> {
    let cluster = cluster(state, call)?;
    let world = &state.world;
    let endpoints = json!({"api_server_endpoint": "", "intranet_api_server_endpoint": format!("https://{}", cluster.endpoint)});
    let meta_data = json!({"Capabilities": {"Network": cluster.network}});
    let vswitch_ids: Vec<_> = world.vswitches.iter().map(|vswitch| &vswitch.id).collect();
    Ok(json!({
        "cluster_id": cluster.id,
        "name": cluster.name,
        "state": "running",
        "cluster_type": "ManagedKubernetes",
        "profile": "Default",
        "cluster_spec": "ack.pro.small",
        "current_version": cluster.version,
        "init_version": cluster.version,
        "region_id": world.region,
        "vpc_id": world.vpc_id,
        "vswitch_ids": vswitch_ids,
        "security_group_id": world.security_groups.first().map(|group| &group.id),
        "worker_ram_role_name": world.ram_roles.first(),
        "container_cidr": if cluster.network == "flannel" { "172.20.0.0/16" } else { "" },
        "subnet_cidr": if cluster.network == "flannel" { "172.20.0.0/16" } else { "" },
        "service_cidr": "192.168.0.0/16",
        "node_cidr_mask": "26",
        "proxy_mode": "ipvs",
        "ip_stack": "ipv4",
        "network_mode": "vpc",
        "cluster_domain": "cluster.local",
        "timezone": "Asia/Shanghai",
        "master_url": endpoints.to_string(),
        "meta_data": meta_data.to_string(),
        "tags": [],
        "rrsa_config": {"enabled": false},
    }))
}

/// The reply is the script itself, as text with a line end as Windows writes it.
pub(super) fn describe_cluster_attach_scripts(
    state: &mut State,
    call: &Call,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let cluster = cluster(state, call)?.clone();
    let expires_at = match call.body["expired"].as_i64() {
        None => now + TOKEN_LIFE,
        Some(seconds) => {
            Timestamp::from_second(seconds).map_err(|_| ApiError::invalid_parameter("expired"))?
        }
    };
    let architecture = call.body["arch"].as_str().unwrap_or("amd64");
    if !["amd64", "arm", "arm64"].contains(&architecture) {
        return Err(ApiError::new(
            400,
            "InvalidParameter",
            format!("arch {architecture} is not supported"),
        ));
    }
    let sequence = state.next_sequence();
    let random = opaque_id("join", sequence);
    let token = format!(
        "{}.{}",
        &random[..6],
        opaque_id("join-secret", sequence)
            .get(..16)
            .unwrap_or_default()
    );
    state.join_tokens.insert(
        token.clone(),
        JoinToken {
            cluster_id: cluster.id.clone(),
            expires_at,
        },
    );
    let script = attach_script(&call.server_url, &cluster, architecture, &token);
    let quoted = state.world.attach_script_as_json;
    Ok(Value::String(if quoted {
        Value::String(script).to_string()
    } else {
        script
    }))
}

fn attach_script(server_url: &str, cluster: &Cluster, architecture: &str, token: &str) -> String {
    let folder = if architecture == "amd64" {
        String::new()
    } else {
        format!("{architecture}/")
    };
    let url = format!(
        "{server_url}/public/pkg/run/attach/{}/{folder}attach_node.sh",
        cluster.version
    );
    let flags = [
        format!("--token {token}"),
        format!("--endpoint {}", cluster.endpoint),
        "--cluster-dns 192.168.0.10".to_owned(),
        "--node-name-mode nodeip".to_owned(),
        format!(
            "--labels ack.aliyun.com={},alibabacloud.com/nodepool-id={}",
            cluster.id, cluster.node_pool_id
        ),
        "--cpu-policy none".to_owned(),
        "--node-port-range 30000-32767".to_owned(),
        "--runtime containerd".to_owned(),
        format!("--runtime-version {CONTAINERD_VERSION}"),
        "--timezone Asia/Shanghai".to_owned(),
    ];
    format!("curl -fsS {url} | bash -s -- {}\r\n", flags.join(" "))
}

pub(super) fn describe_version_metadata(state: &State, params: &Params) -> Value {
    let mut versions: Vec<_> = state
        .world
        .clusters
        .iter()
        .map(|cluster| cluster.version.as_str())
        .collect();
    versions.sort_unstable();
    versions.dedup();
    let images: Vec<_> = state
        .world
        .images
        .iter()
        .filter(|image| image.name.contains("container_optimized"))
        .collect();
    let images: Vec<_> = images
        .into_iter()
        .map(|image| {
            json!({
                "image_id": image.id, "image_name": image.name, "platform": "AliyunLinux", "os_type": "Linux",
                "os_version": "3", "image_category": "system", "architecture": image.architecture,
                "image_type": if image.architecture == "arm64" { "AliyunLinux3Arm64" } else { "AliyunLinux3" },
            })
        })
        .collect();
    let wanted = versions.into_iter().filter(|version| {
        params
            .text("KubernetesVersion")
            .is_none_or(|asked| asked == *version)
    });
    let rows = wanted.map(|version| {
        json!({
            "version": version, "creatable": true, "images": images, "capabilities": {}, "meta_data": {},
            "runtimes": [{"name": "containerd", "version": CONTAINERD_VERSION}],
        })
    });
    Value::Array(rows.collect())
}

pub(super) fn get_cluster_addon_instance(state: &State, call: &Call) -> Result<Value, ApiError> {
    let cluster = cluster(state, call)?;
    if call.addon != cluster.network {
        return Err(ApiError::new(
            404,
            "AddonNotFound",
            format!("addon {} is not installed", call.addon),
        ));
    }
    let config = json!({"IPStack": "ipv4", "ENITrunking": "false", "NetworkPolicy": "false"});
    Ok(
        json!({"name": call.addon, "version": "v1.15.0", "state": "active", "config": config.to_string()}),
    )
}

pub(super) fn describe_cluster_node_pools(state: &State, call: &Call) -> Result<Value, ApiError> {
    let cluster = cluster(state, call)?;
    Ok(json!({"nodepools": [{
        "nodepool_info": {"nodepool_id": cluster.node_pool_id, "name": "default-nodepool", "type": "ess", "is_default": true},
        "kubernetes_config": {
            "runtime": "containerd", "runtime_version": CONTAINERD_VERSION, "cpu_policy": "none", "labels": [], "taints": [],
            "node_name_mode": "nodeip", "unschedulable": false, "cms_enabled": false, "user_data": "",
        },
        "node_config": {"kubelet_configuration": {}},
        "status": {"state": "active", "healthy_nodes": 0, "total_nodes": 0},
    }]}))
}
