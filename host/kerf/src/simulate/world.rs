//! From objects to a plan: the index filled as watches would fill it, types from the catalog, and the planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_cloud::provider::catalog::Catalog as TypeCatalog;
use kerf_controllers::disruption::decide::decide_with;
use kerf_controllers::provision::rounds::{Question, plan_with};
use kerf_core::disruption::{Decision, DisruptionSettings};
use kerf_core::plan::Plan;
use kerf_core::snapshot::{Settings, Snapshot};
use kerf_policy::{PolicyRun, RunResult};
use kerf_state::{Cluster, Tracked};

use crate::document::Document;
use crate::simulate::args::{Ask, Source, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::disruption::{self, Disruption};
use crate::simulate::objects::Objects;
use crate::simulate::report::{self, Report};
use crate::simulate::{check, classes, overlays, policies, workload};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// By namespace and name of a pod: the workload's title and the item that it was written as.
pub(crate) type Owners = BTreeMap<(String, String), (String, usize)>;

struct World {
    cluster: Cluster,
    owners: Owners,
    notes: Vec<Complaint>,
}

/// What was decided, and on what.
pub(crate) struct Planned {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) plan: Plan,
    /// None unless it was asked for.
    pub(crate) decision: Option<Decision>,
    owners: Owners,
    types: TypeCatalog,
    notes: Vec<Complaint>,
}

impl Planned {
    /// The answer.
    pub(crate) fn report(self) -> Report {
        let Self {
            snapshot,
            plan,
            decision,
            owners,
            types,
            notes,
        } = self;
        let mut report = report::build(&snapshot, &plan, &owners, &types, notes);
        report.disruption = decision.map(|it| Disruption::of(&it, &snapshot, &owners));
        report
    }
}

/// Decides.
pub(crate) fn plan(
    items: &[Document],
    mut objects: Objects,
    ask: Ask,
    source: &Source,
    what_if: &WhatIf,
) -> Result<Planned, Vec<Complaint>> {
    let types = catalog(source).map_err(|complaint| vec![complaint])?;
    let mut world = World {
        cluster: Cluster::new(),
        owners: Owners::new(),
        notes: Vec::new(),
    };
    let offers = classes::resolve(&mut objects, &types, source, what_if, &mut world.notes)?;
    let offers = overlays::apply(&objects, offers, &mut world.notes);
    world.surroundings(&mut objects);
    world.pods(&objects);
    let refused = check::unusable(&world.cluster, items, &world.owners, &mut world.notes);
    if !refused.is_empty() {
        return Err(refused);
    }
    world.notes.extend(check::dangling(items, &types));
    world.notes.extend(objects.remarks());
    if what_if.hpa.is_none() {
        world.notes.extend(check::scalers(items));
    }
    let registry = policies::load(&objects, what_if, &mut world.notes)?;
    let snapshot = world.cluster.snapshot(&offers, Settings::default());
    let mut failures = std::collections::BTreeSet::new();
    let homes = kerf_core::schedule::Homes::new();
    let question = Question {
        snapshot: &snapshot,
        homes: &homes,
        registry: &registry,
        region: &types.region,
        reason: "simulate",
        now: kerf_controllers::clock::now(),
    };
    let mut told = |class: &str, run: &PolicyRun| {
        if let RunResult::Failed(error) = &run.result {
            failures.insert(Complaint::note(&format!(
                "ECSNodeClass {class}: policy {} failed: {error}",
                run.policy
            )));
        }
    };
    let plan = plan_with(&question, &mut told);
    let decision = ask
        .disrupt
        .then(|| decide_with(&question, &DisruptionSettings::default(), &mut told));
    world.notes.extend(failures);
    if ask.disrupt {
        world.notes.extend(disruption::remarks(&objects));
    }
    let World { owners, notes, .. } = world;
    Ok(Planned {
        snapshot,
        plan,
        decision,
        owners,
        types,
        notes,
    })
}

fn catalog(source: &Source) -> Result<TypeCatalog, Complaint> {
    let Some(path) = &source.catalog else {
        return TypeCatalog::embedded(&source.region, &source.zones)
            .map_err(|error| Complaint::of("--region", &error.to_string()));
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Complaint::of(&name, &format!("cannot be read: {error}")))?;
    TypeCatalog::parse(&text)
        .map_err(|error| Complaint::of(&name, &format!("{:#}", anyhow::Error::new(error))))
}

impl World {
    /// Everything besides pods.
    fn surroundings(&mut self, objects: &mut Objects) {
        for (_, class) in &objects.node_classes {
            self.cluster.apply(class);
        }
        for (_, pool) in &objects.node_pools {
            self.cluster.apply(pool);
        }
        let default_class = objects.storage_classes.iter().find_map(|(_, class)| {
            let annotations = class.metadata.annotations.as_ref()?;
            let is_default =
                annotations.get("storageclass.kubernetes.io/is-default-class")? == "true";
            is_default.then(|| class.metadata.name.clone())?
        });
        for (_, class) in &mut objects.storage_classes {
            // Where the provisioner would put it is unknown; the pod's own choice is as good a guess as any.
            if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
                class.volume_binding_mode = Some("WaitForFirstConsumer".to_owned());
                let name = class.metadata.name.clone().unwrap_or_default();
                self.notes.push(Complaint::note(&format!(
                    "StorageClass {name} binds at once; planned as if it waited for the pod"
                )));
            }
            self.cluster.apply(&*class);
        }
        for (_, it) in &objects.volumes {
            self.cluster.apply(it);
        }
        let made: Vec<_> = workload::workloads(objects)
            .iter()
            .flat_map(|it| it.volume_claims().collect::<Vec<_>>())
            .collect();
        let written = objects.volume_claims.iter().map(|(_, it)| it.clone());
        for mut claim in made.into_iter().chain(written) {
            claim
                .metadata
                .namespace
                .get_or_insert_with(|| "default".to_owned());
            if let Some(spec) = &mut claim.spec {
                if spec.storage_class_name.is_none() {
                    spec.storage_class_name.clone_from(&default_class);
                }
                if spec.volume_name.is_some() {
                    let annotations = claim.metadata.annotations.get_or_insert_default();
                    annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
                }
            }
            self.cluster.apply(&claim);
        }
        for (_, it) in &objects.nodes {
            self.cluster.apply(it);
        }
        for (_, it) in &objects.node_claims {
            self.cluster.apply(it);
        }
        for (_, it) in &objects.csi_nodes {
            self.cluster.apply(it);
        }
        for (_, it) in &objects.namespaces {
            self.cluster.apply(it);
        }
        for (_, it) in &objects.budgets {
            let mut it = it.clone();
            it.metadata
                .namespace
                .get_or_insert_with(|| "default".to_owned());
            self.cluster.apply(&it);
        }
        for (item, it) in &objects.daemon_sets {
            let mut it = it.clone();
            it.metadata
                .namespace
                .get_or_insert_with(|| "default".to_owned());
            self.own(&it, "DaemonSet", *item);
            self.cluster.apply(&it);
        }
    }

    fn pods(&mut self, objects: &Objects) {
        let priorities: BTreeMap<String, i32> = objects
            .priority_classes
            .iter()
            .flat_map(|(_, class)| {
                let name = class.metadata.name.clone().unwrap_or_default();
                let default = (class.global_default == Some(true))
                    .then(|| (String::new(), class.value.unwrap_or_default()));
                [Some((name, class.value.unwrap_or_default())), default]
                    .into_iter()
                    .flatten()
            })
            .collect();
        for (item, pod) in &objects.pods {
            let mut pod = pod.clone();
            workload::admit(&mut pod, &priorities);
            let namespace = workload::namespace(&pod.metadata);
            let name = pod
                .metadata
                .name
                .clone()
                .or_else(|| pod.metadata.generate_name.clone());
            let name = name.unwrap_or_default();
            pod.metadata
                .uid
                .get_or_insert_with(|| format!("{namespace}/Pod/{name}"));
            pod.metadata.namespace = Some(namespace);
            pod.metadata.name = Some(name);
            self.own(&pod, "Pod", *item);
            self.cluster.apply(&pod);
        }
        for workload in workload::workloads(objects) {
            let title = workload.title();
            for pod in workload.pods(&priorities) {
                let key = (
                    workload.namespace.clone(),
                    pod.metadata.name.clone().unwrap_or_default(),
                );
                self.owners.insert(key, (title.clone(), workload.item));
                self.cluster.apply(&pod);
            }
        }
    }

    fn own<K: Tracked>(&mut self, object: &K, kind: &str, item: usize) {
        let key = object.key();
        let title = format!("{kind} {}/{}", key.namespace, key.name);
        self.owners.insert((key.namespace, key.name), (title, item));
    }
}
