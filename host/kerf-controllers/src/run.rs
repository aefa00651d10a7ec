//! From a client to a running controller: watches first, then leadership, then everything that acts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kerf_cloud::provider::Provider;
use kerf_state::Cluster;
use kube::{Api, Client};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::capacity_buffer::Buffers;
use crate::cloud::Cloud;
use crate::context::Context;
use crate::disruption::networks::Networks;
use crate::events::Events;
use crate::hot::Hot;
use crate::http::{Listen, Served};
use crate::intake::Intake;
use crate::lease::{Election, Leash};
use crate::lifecycle::groups::Launches;
use crate::lifecycle::health::Registrations;
use crate::memory::Keeper;
use crate::metrics::{Metrics, Scope};
use crate::node_class::Classes;
use crate::node_overlay::Overlays;
use crate::policies::Policies;
use crate::settings::Settings;
use crate::supervise::{self, Supervisor};
use crate::termination::apart::SetApart;
use crate::termination::eviction::Refusals;
use crate::{
    capacity_buffer, cluster::SharedCluster, disruption, garbage, http, interruption, lifecycle,
    node_class, node_overlay, node_pool, pod_events, prices, provision, reconciler, repack, repair,
    static_capacity, termination,
};

/// Clients for the API server, each with connections and a rate of its own.
pub struct Clients {
    /// For nothing but what pods wait for: NodeClaims that are created and Nodes that open to pods.
    pub urgent: Client,
    /// For everything else.
    pub all: Client,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// How this process comes to act.
#[derive(Clone)]
pub enum Leadership {
    /// It is alone and acts at once.
    Alone,
    /// It acts while it holds this lease.
    Lease {
        /// The lease's name.
        name: String,
        /// The lease's namespace.
        namespace: String,
        /// A client for nothing else: a renewal must not wait behind requests that an API server in need lets hang.
        client: Box<Client>,
    },
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("Alone"),
            Self::Lease {
                name, namespace, ..
            } => write!(f, "Lease({namespace}/{name})"),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// It cannot go on as it is.
    MustRestart(String),
}

/// Why the controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken or not allowed.
    #[error(
        "cannot listen on {address} for metrics and probes; hint: --metrics-port, --health-probe-port"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Signals cannot be handled.
    #[error("cannot handle signals")]
    Signals(#[source] std::io::Error),
    /// The policy host cannot start.
    #[error("cannot start the policy host: {0}")]
    Policies(String),
}

/// How long the first lists may take before it is said what is missing.
const SYNC_PATIENCE: Duration = Duration::from_secs(30);

/// Runs until the process is told to stop or must be started anew.
///
/// # Errors
/// [`StartError`]; after the start nothing ends the run but a signal, a lost lease or a dead task.
pub async fn run(
    clients: Clients,
    cloud: Provider,
    settings: Settings,
    listen: Listen,
    leadership: Leadership,
) -> Result<Ended, StartError> {
    let mut stop = Stop::new().map_err(StartError::Signals)?;
    let supervisor = Supervisor::default();
    let (mut intake, stores) = Intake::new();
    let identity = identity(&settings.pod_name);
    let leash = Arc::<Leash>::default();
    let held = Arc::clone(&leash);
    cloud.client().ask_before_making(move || held.is_held());
    let (events, writer) = Events::new(clients.all.clone(), identity.clone());
    supervisor.spawn("events", writer.run());
    let metrics = Arc::new(Metrics::new(Scope {
        has_state: settings.has_state_metrics,
        has_pods: settings.has_pod_metrics,
    }));
    let context = Arc::new(Context {
        started_at: crate::clock::now(),
        events,
        cluster: SharedCluster::new(Cluster::with_default_spread(
            settings.default_spread.clone(),
        )),
        classes: Classes::default(),
        overlays: Overlays::default(),
        buffers: Buffers::new(intake.buffer_trigger()),
        policies: Policies::start(&settings, intake.class_trigger())
            .map_err(StartError::Policies)?,
        registrations: Registrations::default(),
        launches: Launches::default(),
        refusals: Refusals::default(),
        set_apart: SetApart::default(),
        claim_writes: Semaphore::new(lifecycle::WRITES_MAX),
        expirations: std::sync::Mutex::default(),
        networks: Networks::default(),
        cloud: Cloud::new(cloud, metrics.cloud.clone()),
        metrics,
        client: clients.all,
        urgent_client: clients.urgent,
        hot: Hot::new(settings.batching, settings.set_level.clone()),
        settings,
        stores,
    });
    let is_ready = serve(&supervisor, &context, &listen).await?;
    intake.start(&supervisor, &context);
    tokio::select! {
        () = intake.synced(SYNC_PATIENCE) => {}
        () = stop.requested() => return Ok(Ended::Stopped),
    }
    is_ready.store(true, Ordering::Release);
    context.metrics.state_synced.set(1);
    match leadership {
        Leadership::Alone => {
            start(&supervisor, intake, &context).await;
            Ok(until_end(supervisor, &mut stop, std::future::pending()).await)
        }
        Leadership::Lease {
            name,
            namespace,
            client,
        } => {
            let api = Api::namespaced(*client, &namespace);
            Ok(lead(
                Election::new(api, name, identity, leash),
                supervisor,
                intake,
                &context,
                &mut stop,
            )
            .await)
        }
    }
}

/// Opens the ports for metrics and probes; the flag says that the process is ready.
async fn serve(
    supervisor: &Supervisor,
    context: &Arc<Context>,
    listen: &Listen,
) -> Result<Arc<AtomicBool>, StartError> {
    let is_ready = Arc::new(AtomicBool::new(false));
    let served = Served {
        context: Arc::clone(context),
        started: std::time::Instant::now(),
        is_ready: Arc::clone(&is_ready),
        has_profiling: listen.has_profiling,
        scrapes: Arc::new(Semaphore::new(http::SCRAPES_MAX)),
    };
    let open = async |address| {
        let opened = http::bind(address).await;
        opened.map_err(|source| StartError::Listen { address, source })
    };
    let (listener, bound) = open(listen.metrics).await?;
    tracing::info!(address = %bound, "serving metrics");
    match listen.probes {
        None => supervisor.spawn("http", http::serve(listener, http::all(served))),
        Some(address) => {
            let (probes, bound) = open(address).await?;
            tracing::info!(address = %bound, "serving probes");
            supervisor.spawn("http", http::serve(listener, http::scrapes(served.clone())));
            supervisor.spawn("probes", http::serve(probes, http::probes(served)));
        }
    }
    Ok(is_ready)
}

/// Waits for the lease, acts while it is held, and gives it back.
async fn lead(
    mut election: Election,
    supervisor: Supervisor,
    intake: Intake,
    context: &Arc<Context>,
    stop: &mut Stop,
) -> Ended {
    tokio::select! {
        () = election.acquire() => {}
        () = stop.requested() => return Ended::Stopped,
    }
    tracing::info!("acting: this process holds the lease");
    start(&supervisor, intake, context).await;
    let ended = until_end(supervisor, stop, election.hold()).await;
    if ended == Ended::Stopped {
        release(&mut election).await;
    }
    ended
}

async fn release(election: &mut Election) {
    if let Err(error) = election.release().await {
        tracing::warn!(%error, "lease not released; a standby waits until it runs out");
    }
}

/// Starts everything that acts, with what the predecessor left behind.
async fn start(supervisor: &Supervisor, intake: Intake, context: &Arc<Context>) {
    let memory = Keeper::open(context).await;
    supervisor.spawn("memory", memory.run(Arc::clone(context)));
    capacity_buffer::prime(context).await;
    start_reconcilers(supervisor, intake, context);
    let with = || Arc::clone(context);
    supervisor.spawn("repack", repack::run(with()));
    let (nominator, teller) = provision::nominated::channel();
    supervisor.spawn("nominations", teller.run(with()));
    supervisor.spawn("provisioner", provision::run(nominator, with()));
    supervisor.spawn("static-capacity", static_capacity::run(with()));
    let (kept, newest) = tokio::sync::watch::channel(disruption::tell::Kept::default());
    supervisor.spawn("disruption", disruption::run(kept, with()));
    supervisor.spawn("kept-nodes", disruption::tell::run(newest, with()));
    supervisor.spawn("disruption-conditions", disruption::conditions::run(with()));
    supervisor.spawn("garbage-collection", garbage::run(with()));
    supervisor.spawn("tagging", lifecycle::tagging::run(with()));
    supervisor.spawn("node-repair", repair::run(with()));
    supervisor.spawn("interruption", interruption::run(with()));
    supervisor.spawn("prices", prices::run(with()));
}

fn start_reconcilers(supervisor: &Supervisor, intake: Intake, context: &Arc<Context>) {
    let stores = &context.stores;
    let with = || Arc::clone(context);
    let keys = intake.into_keys();
    supervisor.spawn(
        "ecsnodeclass",
        reconciler::run(
            "ecsnodeclass",
            stores.node_classes.clone(),
            keys.node_classes,
            with(),
            node_class::reconcile,
        ),
    );
    supervisor.spawn(
        "nodepool",
        reconciler::run(
            "nodepool",
            stores.nodepools.clone(),
            keys.nodepools,
            with(),
            node_pool::reconcile,
        ),
    );
    if context.settings.gates.capacity_buffer {
        supervisor.spawn(
            "capacitybuffer",
            reconciler::run(
                "capacitybuffer",
                stores.buffers.clone(),
                keys.buffers,
                with(),
                capacity_buffer::reconcile,
            ),
        );
    }
    if context.settings.gates.node_overlay {
        supervisor.spawn(
            "nodeoverlay",
            reconciler::run(
                "nodeoverlay",
                stores.overlays.clone(),
                keys.overlays,
                with(),
                node_overlay::reconcile,
            ),
        );
    }
    supervisor.spawn(
        "nodeclaim",
        reconciler::run(
            "nodeclaim",
            stores.nodeclaims.clone(),
            keys.nodeclaims,
            with(),
            lifecycle::reconcile,
        ),
    );
    supervisor.spawn(
        "node",
        reconciler::run(
            "node",
            stores.nodes.clone(),
            keys.nodes,
            with(),
            termination::node::reconcile,
        ),
    );
    supervisor.spawn("pod-events", pod_events::run(keys.pod_events, with()));
}

async fn until_end(
    supervisor: Supervisor,
    stop: &mut Stop,
    lost: impl Future<Output = ()>,
) -> Ended {
    tokio::select! {
        () = stop.requested() => Ended::Stopped,
        () = lost => Ended::MustRestart("the lease is lost".to_owned()),
        ended = supervisor.first_end() => Ended::MustRestart(match ended {
            Some(supervise::Ended::Returned { task }) => format!("task {task} returned"),
            Some(supervise::Ended::Died { task, source }) => format!("task {task} died: {source}"),
            None => "no task is left".to_owned(),
        }),
    }
}

/// Different in each process: a restarted container is another leader.
fn identity(pod: &str) -> String {
    let nanos = clock_nanos();
    if pod.is_empty() {
        format!("kerf-{}-{nanos:x}", std::process::id())
    } else {
        format!("{pod}_{nanos:x}")
    }
}

fn clock_nanos() -> i128 {
    crate::clock::now().as_nanosecond()
}

/// The signals by which Kubernetes and people stop a process.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        tracing::info!("stopping");
    }
}
