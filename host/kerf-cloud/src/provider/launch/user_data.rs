//! The user data of a launch: the join script, the user's part, and what policies make of them.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::actions::cluster::AttachScript;
use crate::error::{CloudError, ErrorClass, Missing};
use crate::provider::Inner;
use crate::provider::bootstrap::{
    BootstrapError, JoinScript, JoinSettings, RenderQuestion, USER_DATA_BYTES_MAX, UserData,
    UserDataPart, base_parts, compose, disks_part, join_part,
};
use crate::provider::capacity::{NodeCapacity, kubelet_config};
use crate::provider::class::{Architecture, Image, KubeletSettings, ResolvedNodeClass};
use crate::provider::launch::{LaunchOffering, LaunchOutcome, LaunchRequest, NotReadyReason};

/// How long the join token in a script is good for: the time an instance may take to boot, not more.
const JOIN_TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// What headers and boundaries take of the user data: 32 parts of 120 bytes.
const HEADER_BYTES: usize = 4 * 1024;

/// What is known of one launch when its user data is made.
pub(super) struct Machine<'a> {
    pub(super) request: &'a LaunchRequest,
    pub(super) offering: &'a LaunchOffering,
    pub(super) image: &'a Image,
    pub(super) architecture: Architecture,
    pub(super) node: &'a NodeCapacity,
}

/// The user data, or the outcome of a launch that cannot have any.
pub(super) async fn user_data(
    inner: &Inner,
    machine: &Machine<'_>,
) -> Result<UserData, LaunchOutcome> {
    let class = &machine.request.class;
    let kubelet = kubelet_config(machine.node, &class.spec, &inner.config);
    let join = join_script(inner, machine, &kubelet).await?;
    let disks = disks_part(&class.spec).map_err(|error| bootstrap_failure(&error))?;
    let parts = match &machine.request.renderer {
        Some(renderer) => {
            let question = question(machine, &kubelet, &join, disks)?;
            let rendered = renderer.render(question).await;
            rendered.map_err(|message| LaunchOutcome::NotReady {
                reason: NotReadyReason::Policy,
                message,
            })?
        }
        None => all_parts(disks, &class.spec.user_data, &join),
    };
    compose(&parts, join).map_err(|error| bootstrap_failure(&error))
}

/// The disks are there before anything of the user runs.
fn all_parts(disks: Option<UserDataPart>, user: &str, join: &JoinScript) -> Vec<UserDataPart> {
    disks.into_iter().chain(base_parts(user, join)).collect()
}

async fn join_script(
    inner: &Inner,
    machine: &Machine<'_>,
    kubelet: &KubeletSettings,
) -> Result<JoinScript, LaunchOutcome> {
    let class = &machine.request.class;
    let cluster_id = class.cluster_id.as_str();
    let settings = JoinSettings {
        cluster_id,
        node: &machine.request.node,
        kubelet,
        cluster_name: &class.spec.cluster_name,
        cluster_endpoint: &class.spec.cluster_endpoint,
    };
    let join = if cluster_id.is_empty() {
        JoinScript::from_template(&class.spec.join_template, &settings)
    } else {
        let script = attach_script(inner, class, machine.architecture)
            .await
            .map_err(|error| script_failure(&error))?;
        JoinScript::from_attach_script(&script, &settings)
    };
    join.map_err(|error| bootstrap_failure(&error))
}

fn question(
    machine: &Machine<'_>,
    kubelet: &KubeletSettings,
    join: &JoinScript,
    disks: Option<UserDataPart>,
) -> Result<RenderQuestion, LaunchOutcome> {
    let spec = &machine.request.class.spec;
    let kubelet_json = serde_json::to_string(kubelet).map_err(|error| {
        let detail = error.to_string();
        bootstrap_failure(&BootstrapError::Kubelet { detail })
    })?;
    let family = spec.image_selector_terms.iter().find_map(|term| {
        let names = [&term.image_family, &term.alias];
        names.into_iter().find(|name| !name.is_empty())
    });
    Ok(RenderQuestion {
        instance_type: machine.offering.instance_type.clone(),
        architecture: machine.architecture.as_str(),
        capacity_type: machine.offering.capacity_type.as_str(),
        image_id: machine.image.id.clone(),
        image_family: family.cloned().unwrap_or_default(),
        max_pods: machine.node.max_pods,
        kubelet_json,
        bytes_max: USER_DATA_BYTES_MAX.saturating_sub(HEADER_BYTES + join.secret_growth()),
        host_owned: disks.iter().cloned().chain([join_part(join)]).collect(),
        parts: all_parts(disks, &spec.user_data, join),
    })
}

async fn attach_script(
    inner: &Inner,
    class: &ResolvedNodeClass,
    architecture: Architecture,
) -> Result<Arc<String>, CloudError> {
    let mut wanted = AttachScript {
        arch: architecture.as_str(),
        format_disk: class.spec.format_data_disk,
        keep_instance_name: true,
        ..AttachScript::default()
    };
    let key = (class.cluster_id.clone(), wanted.clone());
    if let Some(script) = inner.scripts.fresh(&key) {
        return Ok(script);
    }
    let ends = inner.client.now() + JOIN_TOKEN_LIFE;
    wanted.expired = Some(ends.as_second());
    let script = inner
        .client
        .cluster_attach_script(&class.cluster_id, &wanted)
        .await?;
    Ok(inner.scripts.put(key, script))
}

fn script_failure(error: &CloudError) -> LaunchOutcome {
    let message = error.to_string();
    match error.class() {
        ErrorClass::NotFound(Missing::Cluster) => LaunchOutcome::NotReady {
            reason: NotReadyReason::NoJoinMethod,
            message,
        },
        ErrorClass::Auth(_) => LaunchOutcome::NotReady {
            reason: NotReadyReason::Unauthorized,
            message,
        },
        _ => LaunchOutcome::Retry {
            after: Duration::from_secs(5),
            message,
        },
    }
}

fn bootstrap_failure(error: &BootstrapError) -> LaunchOutcome {
    let reason = match error {
        BootstrapError::TemplateWithoutTaints => NotReadyReason::NoJoinMethod,
        BootstrapError::JoinChanged { .. } => NotReadyReason::Policy,
        BootstrapError::TooLarge { .. }
        | BootstrapError::Unsafe { .. }
        | BootstrapError::Kubelet { .. } => NotReadyReason::UserData,
    };
    LaunchOutcome::NotReady {
        reason,
        message: error.to_string(),
    }
}
