//! kube-scheduler's default spread constraints in a simulation: `--scheduler-config`.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use kerf_core::pod::TopologySpread;
use kerf_state::Cluster;

use crate::args::SchedulerConfig;
use crate::simulate::args::Source;
use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;

/// The constraints of the file, none without one.
pub(crate) fn constraints(source: &Source) -> Result<Vec<TopologySpread>, Complaint> {
    let Some(path) = &source.scheduler_config else {
        return Ok(Vec::new());
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Complaint::of(&name, &format!("cannot be read: {error}")))?;
    let config: Result<SchedulerConfig, String> = text.parse();
    let config = config.map_err(|why| {
        let complaint = Complaint::of(&name, &why);
        complaint.hint("it takes what the controller's --scheduler-config takes: podTopologySpread.defaultConstraints")
    })?;
    Ok(config.0)
}

/// Tells the index what selects pods, which says whom the constraints count.
pub(crate) fn apply(objects: &Objects, cluster: &mut Cluster) {
    for (_, it) in &objects.services {
        let mut it = it.clone();
        in_namespace(&mut it.metadata.namespace);
        cluster.apply(&it);
    }
    for (_, it) in &objects.replication_controllers {
        let mut it = it.clone();
        in_namespace(&mut it.metadata.namespace);
        cluster.apply(&it);
    }
    for (_, it) in &objects.stateful_sets {
        let mut it = it.clone();
        in_namespace(&mut it.metadata.namespace);
        cluster.apply(&it);
    }
    // The pods that a simulation makes of a Deployment belong to a ReplicaSet of its name.
    for (_, it) in &objects.deployments {
        let mut set = ReplicaSet::default();
        set.metadata.name.clone_from(&it.metadata.name);
        set.metadata.namespace.clone_from(&it.metadata.namespace);
        in_namespace(&mut set.metadata.namespace);
        set.spec = it.spec.as_ref().map(|spec| ReplicaSetSpec {
            selector: spec.selector.clone(),
            ..ReplicaSetSpec::default()
        });
        cluster.apply(&set);
    }
    for (_, it) in &objects.replica_sets {
        let mut it = it.clone();
        in_namespace(&mut it.metadata.namespace);
        cluster.apply(&it);
    }
}

fn in_namespace(namespace: &mut Option<String>) {
    namespace.get_or_insert_with(|| "default".to_owned());
}
