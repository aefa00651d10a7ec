//! Pods of workloads, as the controllers and admission of a cluster would make them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::simulate::objects::Objects;

/// Priorities that every cluster has.
const SYSTEM_PRIORITIES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Some pods of one template.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    /// The item that it was written as.
    pub(crate) item: usize,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// How many pods are still to be made.
    pub(crate) count: usize,
    pub(crate) template: &'a PodTemplateSpec,
    pub(crate) claim_templates: &'a [PersistentVolumeClaim],
}

/// A workload as written: what of it says how many pods there are, and of which form.
pub(crate) struct Written<'a> {
    item: usize,
    pub(crate) kind: &'static str,
    pub(crate) metadata: &'a ObjectMeta,
    /// What `spec.replicas` says, or what stands for it.
    pub(crate) replicas: Option<i32>,
    pub(crate) template: Option<&'a PodTemplateSpec>,
    claim_templates: &'a [PersistentVolumeClaim],
}

/// All workloads whose pods have to be made. Pods that a dump of a cluster has already are not made twice.
pub(crate) fn workloads(objects: &Objects) -> Vec<Workload<'_>> {
    let existing = existing(objects);
    let owned = |metadata: &ObjectMeta| {
        let mut owners = metadata.owner_references.iter().flatten();
        owners.any(|it| it.controller == Some(true))
    };
    // What belongs to another workload is made by that one.
    let written = written(objects).filter(|it| !owned(it.metadata));
    let workloads = written.filter_map(|it| {
        let namespace = namespace(it.metadata);
        let name = it.metadata.name.clone().unwrap_or_default();
        let there = existing.get(&(namespace.clone(), it.kind, name.clone()));
        // One is what the API server fills in.
        let count = usize::try_from(it.replicas.unwrap_or(1)).unwrap_or_default();
        Some(Workload {
            item: it.item,
            kind: it.kind,
            namespace,
            name,
            count: count.saturating_sub(there.copied().unwrap_or_default()),
            template: it.template?,
            claim_templates: it.claim_templates,
        })
    });
    workloads.collect()
}

/// The workloads that can be scaled.
pub(crate) fn scalable(objects: &Objects) -> impl Iterator<Item = Written<'_>> {
    let kinds = ["Deployment", "StatefulSet", "ReplicaSet"];
    written(objects).filter(move |it| kinds.contains(&it.kind))
}

fn written(objects: &Objects) -> impl Iterator<Item = Written<'_>> {
    let new = |item: &usize, kind, metadata, replicas, template| Written {
        item: *item,
        kind,
        metadata,
        replicas,
        template,
        claim_templates: &[][..],
    };
    let deployments = objects.deployments.iter().map(move |(item, it)| {
        let spec = it.spec.as_ref();
        let template = spec.map(|spec| &spec.template);
        let replicas = spec.and_then(|spec| spec.replicas);
        new(item, "Deployment", &it.metadata, replicas, template)
    });
    let replica_sets = objects.replica_sets.iter().map(move |(item, it)| {
        let spec = it.spec.as_ref();
        let template = spec.and_then(|spec| spec.template.as_ref());
        let replicas = spec.and_then(|spec| spec.replicas);
        new(item, "ReplicaSet", &it.metadata, replicas, template)
    });
    let stateful_sets = objects.stateful_sets.iter().map(move |(item, it)| {
        let spec = it.spec.as_ref();
        let template = spec.map(|spec| &spec.template);
        let replicas = spec.and_then(|spec| spec.replicas);
        let claims = spec.and_then(|spec| spec.volume_claim_templates.as_deref());
        Written {
            claim_templates: claims.unwrap_or_default(),
            ..new(item, "StatefulSet", &it.metadata, replicas, template)
        }
    });
    let jobs = objects.jobs.iter().map(move |(item, it)| {
        let spec = it.spec.as_ref();
        let template = spec.map(|spec| &spec.template);
        new(item, "Job", &it.metadata, spec.map(at_once), template)
    });
    let cron_jobs = objects.cron_jobs.iter().map(move |(item, it)| {
        let spec = it.spec.job_template.spec.as_ref();
        let template = spec.map(|spec| &spec.template);
        new(item, "CronJob", &it.metadata, spec.map(at_once), template)
    });
    deployments
        .chain(replica_sets)
        .chain(stateful_sets)
        .chain(jobs)
        .chain(cron_jobs)
}

/// Pods of a Job that run at the same time.
fn at_once(job: &k8s_openapi::api::batch::v1::JobSpec) -> i32 {
    if job.suspend == Some(true) {
        return 0;
    }
    let parallelism = job.parallelism.unwrap_or(1);
    job.completions
        .map_or(parallelism, |completions| parallelism.min(completions))
}

/// Pods that are there, by what made them. A Deployment's pods belong to its ReplicaSet, whose name begins with its.
fn existing(objects: &Objects) -> BTreeMap<(String, &'static str, String), usize> {
    let mut counts = BTreeMap::new();
    for (_, pod) in &objects.pods {
        let owners = pod.metadata.owner_references.iter().flatten();
        for owner in owners.filter(|owner| owner.controller == Some(true)) {
            let mut count = |kind: &'static str, name: &str| {
                let key = (namespace(&pod.metadata), kind, name.to_owned());
                *counts.entry(key).or_default() += 1;
            };
            match owner.kind.as_str() {
                "ReplicaSet" => {
                    count("ReplicaSet", &owner.name);
                    if let Some((deployment, _)) = owner.name.rsplit_once('-') {
                        count("Deployment", deployment);
                    }
                }
                "StatefulSet" => count("StatefulSet", &owner.name),
                "Job" => count("Job", &owner.name),
                _ => {}
            }
        }
    }
    counts
}

pub(crate) fn namespace(metadata: &ObjectMeta) -> String {
    metadata
        .namespace
        .clone()
        .unwrap_or_else(|| "default".to_owned())
}

impl Workload<'_> {
    /// How the answer names it.
    pub(crate) fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// Its pods, pending.
    pub(crate) fn pods(&self, priorities: &BTreeMap<String, i32>) -> impl Iterator<Item = Pod> {
        let digits = self.count.saturating_sub(1).to_string().len();
        let mut prototype = Pod {
            metadata: self.template.metadata.clone().unwrap_or_default(),
            spec: self.template.spec.clone(),
            status: None,
        };
        prototype.metadata.namespace = Some(self.namespace.clone());
        prototype.metadata.owner_references = Some(vec![self.owner()]);
        admit(&mut prototype, priorities);
        (0..self.count).map(move |index| {
            let mut pod = prototype.clone();
            let name = if self.kind == "StatefulSet" {
                format!("{}-{index}", self.name)
            } else {
                format!("{}-{index:0digits$}", self.name)
            };
            if let Some(spec) = &mut pod.spec {
                self.mount_claims(spec, &name);
            }
            pod.metadata.uid = Some(format!("{}/{}/{name}", self.namespace, self.kind));
            pod.metadata.name = Some(name);
            pod
        })
    }

    /// The claims that a StatefulSet makes for its pods.
    pub(crate) fn volume_claims(&self) -> impl Iterator<Item = PersistentVolumeClaim> {
        let templates = self.claim_templates.iter();
        templates.flat_map(move |template| {
            let base = template.metadata.name.clone().unwrap_or_default();
            (0..self.count).map(move |index| {
                let mut claim = template.clone();
                claim.metadata.name = Some(format!("{base}-{}-{index}", self.name));
                claim.metadata.namespace = Some(self.namespace.clone());
                claim
            })
        })
    }

    fn mount_claims(&self, spec: &mut PodSpec, pod: &str) {
        for template in self.claim_templates {
            let base = template.metadata.name.clone().unwrap_or_default();
            let mut volume = k8s_openapi::api::core::v1::Volume {
                name: base.clone(),
                ..Default::default()
            };
            let source = volume.persistent_volume_claim.get_or_insert_default();
            source.claim_name = format!("{base}-{pod}");
            spec.volumes.get_or_insert_default().push(volume);
        }
    }

    fn owner(&self) -> OwnerReference {
        let (api_version, kind) = match self.kind {
            "StatefulSet" => ("apps/v1", "StatefulSet"),
            "Job" | "CronJob" => ("batch/v1", "Job"),
            _ => ("apps/v1", "ReplicaSet"),
        };
        OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: self.name.clone(),
            uid: format!("{}/{}", self.namespace, self.name),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

/// What the API server's admission fills in, and the mark of a pod that kube-scheduler found no node for.
pub(crate) fn admit(pod: &mut Pod, priorities: &BTreeMap<String, i32>) {
    if let Some(spec) = &mut pod.spec {
        let class = spec.priority_class_name.as_deref().unwrap_or_default();
        let system = SYSTEM_PRIORITIES.iter().find(|(name, _)| *name == class);
        let priority = system
            .map(|(_, value)| *value)
            .or_else(|| priorities.get(class).copied());
        spec.priority = spec.priority.or(priority);
        if spec.host_network == Some(true) {
            for port in spec
                .containers
                .iter_mut()
                .flat_map(|it| it.ports.iter_mut().flatten())
            {
                port.host_port.get_or_insert(port.container_port);
            }
        }
    }
    let is_bound = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_some());
    if !is_bound {
        let status = pod.status.get_or_insert_with(PodStatus::default);
        status.conditions = Some(vec![PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            ..PodCondition::default()
        }]);
    }
}
