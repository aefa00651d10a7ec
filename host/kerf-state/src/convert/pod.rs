//! Pods: identity, what scheduling depends on, and whether they wait for a node.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kerf_api::duration::parse_duration;
use kerf_api::names::annotation;
use kerf_core::ids::PodUid;
use kerf_core::pod::{DoNotDisrupt, HostPort, OwnerKind, Pod, PodPhase, PodSpec, Protocol};

use super::affinity::{self, MatchFields};
use super::{pod_resources, taints};
use crate::default_spread::Workload;
use crate::problem::{Kind, Problems};
use crate::shared::Shared;
use crate::waiting::{Waiting, verdict_at};

/// A pod in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodEntry {
    /// The pod without its volumes, which depend on other objects.
    pub(crate) pod: Arc<Pod>,
    /// The node that it is bound to.
    pub(crate) node: Option<Arc<str>>,
    /// Whether a new node may help it.
    pub(crate) waiting: Waiting,
    /// When kube-scheduler last said anything about it.
    pub(crate) verdict_at: Option<Timestamp>,
    /// What it hangs on, where that matters; most pods hang on nothing of it.
    ties: Option<Box<Ties>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Ties {
    daemon_set: Option<Arc<str>>,
    workload: Option<Workload>,
    claims: Vec<String>,
}

impl PodEntry {
    /// The uid of the DaemonSet that controls it.
    pub(crate) fn daemon_set(&self) -> Option<&Arc<str>> {
        self.ties.as_ref()?.daemon_set.as_ref()
    }

    /// The workload that controls it, where default spread constraints look at that.
    pub(crate) fn workload(&self) -> Option<&Workload> {
        self.ties.as_ref()?.workload.as_ref()
    }

    /// The PersistentVolumeClaims that it uses, of its namespace.
    pub(crate) fn claims(&self) -> &[String] {
        self.ties.as_ref().map_or(&[], |it| &it.claims)
    }
}

/// Converts a pod.
pub(crate) fn pod(pod: &k8s::Pod, shared: &mut Shared, problems: &mut Problems) -> PodEntry {
    let metadata = &pod.metadata;
    let empty = k8s::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let owner = owner_kind(metadata);

    let mut hard_problems = Problems::default();
    let core_spec = pod_spec(
        spec,
        metadata,
        pod.status.as_ref(),
        owner,
        &mut hard_problems,
    );
    let do_not_disrupt = do_not_disrupt(metadata, problems);
    let invalid = hard_problems.summary();
    for problem in hard_problems.finish() {
        problems.add(problem.field, problem.message);
    }

    let phase = phase(pod);
    let waiting = Waiting::of(pod, owner, phase);
    let converted = Pod {
        namespace: shared
            .words
            .share(metadata.namespace.as_deref().unwrap_or("default")),
        name: Arc::from(metadata.name.as_deref().unwrap_or_default()),
        uid: PodUid::from(metadata.uid.as_deref().unwrap_or_default()),
        created_at: metadata
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        started_at: pod
            .status
            .as_ref()
            .and_then(|status| Some(status.start_time.as_ref()?.0)),
        phase,
        is_ready: is_ready(pod),
        do_not_disrupt,
        invalid,
        spec: shared.specs.share(core_spec),
    };
    PodEntry {
        pod: Arc::new(converted),
        node: spec
            .node_name
            .as_deref()
            .filter(|name| !name.is_empty())
            .map(|name| shared.words.share(name)),
        waiting,
        verdict_at: verdict_at(pod.status.as_ref()),
        ties: ties(spec, metadata, shared),
    }
}

fn ties(spec: &k8s::PodSpec, metadata: &ObjectMeta, shared: &mut Shared) -> Option<Box<Ties>> {
    let ties = Ties {
        daemon_set: daemon_set_uid(metadata, shared),
        workload: workload(metadata, shared),
        claims: claims(spec, metadata.name.as_deref().unwrap_or_default()),
    };
    (ties != Ties::default()).then(|| Box::new(ties))
}

/// The spec of a pod, or of a template with no status.
pub(crate) fn pod_spec(
    spec: &k8s::PodSpec,
    metadata: &ObjectMeta,
    status: Option<&k8s::PodStatus>,
    owner: OwnerKind,
    problems: &mut Problems,
) -> PodSpec {
    let match_fields = match owner {
        OwnerKind::DaemonSet => MatchFields::Ignored,
        OwnerKind::None
        | OwnerKind::Node
        | OwnerKind::StatefulSet
        | OwnerKind::Other
        | OwnerKind::CapacityBuffer => MatchFields::Refused,
    };
    let deletion_cost = metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(annotation::POD_DELETION_COST)?.parse().ok());
    let gates = spec.scheduling_gates.iter().flatten();
    let mut converted = PodSpec {
        labels: metadata.labels.clone().unwrap_or_default(),
        requests: pod_resources::requests(spec, status, problems),
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        tolerations: taints::tolerations(
            spec.tolerations.as_deref().unwrap_or_default(),
            "spec.tolerations",
            problems,
        ),
        host_ports: host_ports(spec, problems),
        priority: spec.priority.unwrap_or_default(),
        deletion_cost: deletion_cost.unwrap_or_default(),
        owner,
        scheduling_gates: gates.map(|gate| gate.name.clone()).collect(),
        has_resource_claims: spec
            .resource_claims
            .as_ref()
            .is_some_and(|claims| !claims.is_empty()),
        ..PodSpec::default()
    };
    affinity::fill(&mut converted, spec, match_fields, problems);
    converted
}

fn is_ready(pod: &k8s::Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

impl PodEntry {
    /// Whether it differs from the other in nothing but being ready, which matters only to some PodDisruptionBudgets.
    pub(crate) fn is_same_but_ready(&self, other: &Self) -> bool {
        let pod = Pod {
            is_ready: other.pod.is_ready,
            ..(*self.pod).clone()
        };
        let same = Self {
            pod: Arc::new(pod),
            ..self.clone()
        };
        self.pod.is_ready != other.pod.is_ready && same == *other
    }
}

fn phase(pod: &k8s::Pod) -> PodPhase {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        PodPhase::Terminal
    } else if pod.metadata.deletion_timestamp.is_some() {
        PodPhase::Terminating
    } else {
        PodPhase::Active
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

fn owner_kind(metadata: &ObjectMeta) -> OwnerKind {
    let Some(owner) = controller(metadata) else {
        return OwnerKind::None;
    };
    let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
    match (group, owner.kind.as_str()) {
        ("apps", "DaemonSet") => OwnerKind::DaemonSet,
        ("apps", "StatefulSet") => OwnerKind::StatefulSet,
        ("", "Node") => OwnerKind::Node,
        _ => OwnerKind::Other,
    }
}

fn daemon_set_uid(metadata: &ObjectMeta, shared: &mut Shared) -> Option<Arc<str>> {
    let owner = controller(metadata)?;
    (owner_kind(metadata) == OwnerKind::DaemonSet).then(|| shared.words.share(owner.uid.as_str()))
}

fn workload(metadata: &ObjectMeta, shared: &mut Shared) -> Option<Workload> {
    let owner = controller(metadata)?;
    let kind = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ReplicationController") => Kind::ReplicationController,
        ("apps/v1", "ReplicaSet") => Kind::ReplicaSet,
        ("apps/v1", "StatefulSet") => Kind::StatefulSet,
        _ => return None,
    };
    let name = shared.words.share(owner.name.as_str());
    Some(Workload { kind, name })
}

fn do_not_disrupt(metadata: &ObjectMeta, problems: &mut Problems) -> DoNotDisrupt {
    let value = |key: &str| Some(metadata.annotations.as_ref()?.get(key)?.as_str());
    let is_kept_by_older_name = value(annotation::DO_NOT_EVICT) == Some("true")
        || value(annotation::SAFE_TO_EVICT) == Some("false");
    if is_kept_by_older_name {
        return DoNotDisrupt::Forever;
    }
    match value(annotation::DO_NOT_DISRUPT) {
        None | Some("false") => DoNotDisrupt::No,
        Some("true") => DoNotDisrupt::Forever,
        Some(text) => match parse_duration(text) {
            Ok(duration) if duration.is_positive() => DoNotDisrupt::For(duration),
            Ok(_) | Err(_) => {
                problems.add(
                    format!("metadata.annotations[{}]", annotation::DO_NOT_DISRUPT),
                    format_args!(
                        "{text:?} is neither true nor a duration such as 30m; it is ignored"
                    ),
                );
                DoNotDisrupt::No
            }
        },
    }
}

/// Those of containers that run as long as the pod does. Karpenter: differs, because it leaves out sidecars, whose ports
/// kube-scheduler counts.
fn host_ports(spec: &k8s::PodSpec, problems: &mut Problems) -> Vec<HostPort> {
    let mut ports = Vec::new();
    let init = spec.init_containers.iter().flatten();
    let sidecars = init.filter(|it| it.restart_policy.as_deref() == Some("Always"));
    for container in sidecars.chain(&spec.containers) {
        for port in container.ports.iter().flatten() {
            let Some(number) = port.host_port.and_then(|number| u16::try_from(number).ok()) else {
                continue;
            };
            if number == 0 {
                continue;
            }
            let field = format!("spec.containers[{}].ports.hostIP", container.name);
            let ip = match port.host_ip.as_deref().unwrap_or_default() {
                "" => None,
                text => problems.ok(&field, text.parse()),
            };
            let protocol = match port.protocol.as_deref() {
                Some("UDP") => Protocol::Udp,
                Some("SCTP") => Protocol::Sctp,
                Some(_) | None => Protocol::Tcp,
            };
            ports.push(HostPort {
                ip,
                port: number,
                protocol,
            });
        }
    }
    ports
}

fn claims(spec: &k8s::PodSpec, pod_name: &str) -> Vec<String> {
    let mut claims = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(source) = &volume.persistent_volume_claim {
            claims.push(source.claim_name.clone());
        } else if volume.ephemeral.is_some() {
            claims.push(format!("{pod_name}-{}", volume.name));
        }
    }
    claims
}
