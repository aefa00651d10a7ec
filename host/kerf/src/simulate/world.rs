//! From objects to a plan: the index filled as watches would fill it, types from the catalog, and the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_cloud::provider::catalog::Catalog as TypeCatalog;
use kerf_controllers::disruption::decide::decide_with;
use kerf_controllers::provision::rounds::{Question, plan_with};
use kerf_core::disruption::{Decision, DisruptionSettings};
use kerf_core::plan::Plan;
use kerf_core::schedule::Homes;
use kerf_core::snapshot::{Settings, Snapshot};
use kerf_core::static_capacity::SurplusClaim;
use kerf_policy::{PolicyRun, Registry, RunResult};
use kerf_state::{Cluster, Tracked};

use crate::document::Document;
use crate::input;
use crate::simulate::Order;
use crate::simulate::args::{Ask, Source};
use crate::simulate::complaint::Complaint;
use crate::simulate::disruption::{self, Disruption};
use crate::simulate::objects::Objects;
use crate::simulate::report::{self, Report, Surplus};
use crate::simulate::static_pools::StaticPools;
use crate::simulate::trace::{Trace, Visit, Visitor};
use crate::simulate::{buffers, check, classes, overlays, policies, spread, workload};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// By namespace and name of a pod: the workload's title and the item that it was written as.
pub(crate) type Owners = BTreeMap<(String, String), (String, usize)>;

/// The item of what no manifest has.
const NO_ITEM: usize = usize::MAX;

struct World {
    cluster: Cluster,
    owners: Owners,
    notes: Vec<Complaint>,
}

/// Everything that is decided on.
pub(crate) struct Prepared {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) registry: Registry,
    pub(crate) owners: Owners,
    pub(crate) types: TypeCatalog,
    pub(crate) notes: Vec<Complaint>,
    /// When the pods of a trace are there, by uid.
    pub(crate) visits: BTreeMap<String, Visit>,
    /// Whether the trace says so, or they are all there from the beginning.
    pub(crate) has_times: bool,
}

/// What was decided, and on what.
pub(crate) struct Planned {
    pub(crate) world: Prepared,
    pub(crate) plan: Plan,
    /// NodeClaims that static NodePools have too many of.
    pub(crate) surplus: Vec<SurplusClaim>,
    /// None unless it was asked for.
    pub(crate) decision: Option<Decision>,
}

impl Planned {
    /// The answer.
    pub(crate) fn report(&self) -> Report {
        let world = &self.world;
        let decision = self.decision.as_ref();
        Report {
            surplus: self.surplus.iter().map(Surplus::of).collect(),
            disruption: decision.map(|it| Disruption::of(it, &world.snapshot, &world.owners)),
            ..report::build(world, &self.plan)
        }
    }
}

/// Reads everything into the index.
pub(crate) fn prepare(
    items: &[Document],
    mut objects: Objects,
    trace: Option<Trace>,
    order: &Order<'_>,
) -> Result<Prepared, Vec<Complaint>> {
    let Order {
        ask,
        source,
        what_if,
        files: _,
    } = *order;
    let types = catalog(source).map_err(|complaint| vec![complaint])?;
    let constraints = spread::constraints(source).map_err(|complaint| vec![complaint])?;
    let has_default_spread = !constraints.is_empty();
    let mut world = World {
        cluster: Cluster::with_default_spread(constraints),
        owners: Owners::new(),
        notes: Vec::new(),
    };
    let offers = classes::resolve(&mut objects, &types, source, what_if, &mut world.notes)?;
    let offers = overlays::apply(&objects, offers, &mut world.notes);
    world.surroundings(&mut objects);
    if has_default_spread {
        spread::apply(&objects, &mut world.cluster);
    }
    world.pods(&objects);
    buffers::put(
        &objects,
        &mut world.cluster,
        &mut world.owners,
        &mut world.notes,
    );
    let has_times = trace.as_ref().is_some_and(|it| it.has_times);
    let mut visits = BTreeMap::new();
    if let Some(trace) = trace {
        visits = world.visitors(trace, &objects);
    }
    let refused = check::unusable(&world.cluster, items, &world.owners, &mut world.notes);
    if !refused.is_empty() {
        return Err(refused);
    }
    world.notes.extend(check::dangling(items, &types));
    world.notes.extend(objects.remarks(has_default_spread));
    if what_if.hpa.is_none() {
        world.notes.extend(check::scalers(items));
    }
    let registry = policies::load(&objects, what_if, &mut world.notes)?;
    if ask.disrupt {
        world.notes.extend(disruption::remarks(&objects));
    }
    Ok(Prepared {
        snapshot: world.cluster.snapshot(
            &offers,
            Settings::default(),
            kerf_controllers::clock::now(),
        ),
        registry,
        owners: world.owners,
        types,
        notes: world.notes,
        visits,
        has_times,
    })
}

/// Decides. `known` hears what is known before nodes that exist are looked at, which takes longest.
pub(crate) fn decide(mut world: Prepared, ask: Ask, known: &dyn Fn(&Planned)) -> Planned {
    let mut failures = Failures::default();
    let mut told = |class: &str, run: &PolicyRun| failures.hear(class, run);
    let homes = Homes::new();
    let now = kerf_controllers::clock::now();
    let mut notes = Vec::new();
    let question = world.question(&world.snapshot, &homes, now);
    let mut static_pools = StaticPools::decide(&question, &mut told, &mut notes);
    let snapshot = static_pools.snapshot(&world.snapshot, now);
    let mut plan = plan_with(&world.question(&snapshot, &homes, now), &mut told);
    static_pools.join(&mut plan);
    world.notes.extend(notes);
    let mut planned = Planned {
        world,
        plan,
        surplus: static_pools.surplus,
        decision: None,
    };
    if ask.disrupt {
        known(&planned);
        let world = &planned.world;
        let question = world.question(&world.snapshot, &homes, now);
        let settings = DisruptionSettings::default();
        planned.decision = Some(decide_with(&question, &settings, &mut told));
    }
    planned.world.notes.extend(failures.0);
    planned
}

impl Prepared {
    /// What is asked about a state of this world.
    pub(crate) fn question<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        homes: &'a Homes,
        now: Timestamp,
    ) -> Question<'a> {
        Question {
            snapshot,
            homes,
            registry: &self.registry,
            region: &self.types.region,
            reason: "simulate",
            now,
        }
    }
}

/// What policies failed with, each once.
#[derive(Debug, Default)]
pub(crate) struct Failures(pub(crate) BTreeSet<Complaint>);

impl Failures {
    /// Takes in a run of a policy.
    pub(crate) fn hear(&mut self, class: &str, run: &PolicyRun) {
        if let RunResult::Failed(error) = &run.result {
            self.0.insert(Complaint::note(&format!(
                "ECSNodeClass {class}: policy {} failed: {error}",
                run.policy
            )));
        }
    }
}

fn catalog(source: &Source) -> Result<TypeCatalog, Complaint> {
    let Some(path) = &source.catalog else {
        return TypeCatalog::embedded(&source.region, &source.zones)
            .map_err(|error| Complaint::of("--region", &error.to_string()));
    };
    let name = path.display().to_string();
    let text = input::read_to_string(path)
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

    /// The pods of a trace; when each of them is there.
    fn visitors(&mut self, trace: Trace, objects: &Objects) -> BTreeMap<String, Visit> {
        let priorities = priorities(objects);
        self.notes.extend(trace.notes);
        let visitors = trace.visitors.into_iter().map(|visitor| {
            let Visitor {
                mut pod,
                workload,
                visit,
            } = visitor;
            workload::admit(&mut pod, &priorities);
            let key = pod.key();
            let key = (key.namespace.to_string(), key.name.to_string());
            self.owners.insert(key, (workload, NO_ITEM));
            self.cluster.apply(&pod);
            (pod.metadata.uid.unwrap_or_default(), visit)
        });
        visitors.collect()
    }

    fn pods(&mut self, objects: &Objects) {
        let priorities = priorities(objects);
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
        let key = (key.namespace.to_string(), key.name.to_string());
        self.owners.insert(key, (title, item));
    }
}

/// The value of each PriorityClass, and of the default one under the empty name.
fn priorities(objects: &Objects) -> BTreeMap<String, i32> {
    let classes = objects.priority_classes.iter();
    let classes = classes.flat_map(|(_, class)| {
        let name = class.metadata.name.clone().unwrap_or_default();
        let value = class.value.unwrap_or_default();
        let default = (class.global_default == Some(true)).then(|| (String::new(), value));
        [Some((name, value)), default].into_iter().flatten()
    });
    classes.collect()
}
