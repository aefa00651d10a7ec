//! `kerf controller`: from arguments to a running controller.

use std::convert::Infallible;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kerf_cloud::provider::Provider;
use kerf_cloud::provider::config::ProviderConfig;
use kerf_controllers::hot::{Batching, SetLevel};
use kerf_controllers::oci::Registries;
use kerf_controllers::settings::{RepairPolicy, Settings};
use kerf_controllers::{Clients, Leadership, Listen};
use kerf_policy::{Artifacts, CodePages, Compiler};

use crate::api_server::{self, Rate};
use crate::args::Controller;
use crate::cloud;
use crate::compile_policy;
use crate::exit::Restart;
use crate::policy_keys;

/// A thread that plans or decides goes when it had nothing to do for this long: its stack and what it keeps of freed memory go
/// with it, and a new one costs less than a tenth of a millisecond.
const COMPUTING_REST: Duration = Duration::from_secs(2);

/// Runs until the process is told to stop or must be started anew. `set_level` changes the level of the log that it runs with.
///
/// # Errors
/// When the arguments do not fit together, or the API server cannot be reached at all.
pub(crate) fn run(args: Controller, set_level: SetLevel) -> anyhow::Result<()> {
    if !args.planning.ignore_dra_requests {
        bail!(
            "IGNORE_DRA_REQUESTS=false: kerf does not plan pods with resource claims (DRA); leave it unset"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.process.threads())
        .thread_keep_alive(COMPUTING_REST)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(run_async(args, set_level))
}

async fn run_async(args: Controller, set_level: SetLevel) -> anyhow::Result<()> {
    // The first installer wins; a second one in the same process would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let process = &args.process;
    let rate = Rate {
        per_second: process.kube_client_qps,
        burst: process.kube_client_burst,
    };
    let clients = Clients {
        urgent: api_server::connect_for_few(args.kubeconfig.as_deref(), rate).await?,
        all: api_server::connect(args.kubeconfig.as_deref(), rate).await?,
    };
    let cloud = provider(&args)?;
    let mut settings = Settings {
        set_level,
        ..settings(&args)
    };
    if let Some(folder) = &args.policy_key_dir {
        settings.policy_keys = policy_keys::read(folder)?;
    }
    if let Some(file) = &args.registry_ca_bundle {
        settings.registry_roots = Some(registry_roots(file)?);
    }
    let leadership = if process.disable_leader_election {
        Leadership::Alone
    } else {
        Leadership::Lease {
            name: process.leader_election_name.clone(),
            namespace: if process.leader_election_namespace.is_empty() {
                args.namespace.clone()
            } else {
                process.leader_election_namespace.clone()
            },
            client: Box::new(api_server::connect_for_few(args.kubeconfig.as_deref(), rate).await?),
        }
    };
    let (metrics, probes) = process.addresses();
    let listen = Listen {
        metrics,
        probes,
        has_profiling: process.enable_profiling,
    };
    give_back_code()?;
    let ended = kerf_controllers::run(clients, cloud, settings, listen, leadership).await?;
    match ended {
        kerf_controllers::Ended::Stopped => Ok(()),
        kerf_controllers::Ended::MustRestart(why) => Err(Restart(why).into()),
    }
}

/// The cloud, by the arguments. Makes no call.
///
/// # Errors
/// When the arguments do not fit together.
pub(crate) fn provider(args: &Controller) -> anyhow::Result<Provider> {
    let client = cloud::client(&args.cloud, &args.region)?;
    let name = if args.cluster_name.is_empty() {
        &args.cluster_id
    } else {
        &args.cluster_name
    };
    if name.is_empty() {
        bail!(
            "--cluster-id (or --cluster-name for a self-managed cluster) is needed: it tells this cluster's instances from others'"
        );
    }
    let mut provider = ProviderConfig::new(args.region.as_str(), name.as_str());
    provider.cluster_id.clone_from(&args.cluster_id);
    provider.vm_memory_overhead_percent = args.cloud.vm_memory_overhead_percent;
    provider.prices = cloud::prices(&args.cloud)?;
    provider.account_discount_percent = args.cloud.account_discount_percent;
    Ok(Provider::new(client, provider))
}

fn settings(args: &Controller) -> Settings {
    let timing = &args.timing;
    let mut settings = Settings::new(
        args.region.clone(),
        args.cluster_id.clone(),
        args.namespace.clone(),
    );
    settings.pod_name.clone_from(&args.pod_name);
    settings
        .default_node_role
        .clone_from(&args.default_node_role);
    settings.gates = args.planning.feature_gates;
    settings.disruption.spot_to_spot = args.planning.feature_gates.spot_to_spot_consolidation;
    settings.planning = args.planning.settings();
    settings
        .default_spread
        .clone_from(&args.planning.scheduler_config.0);
    settings.batching = Batching {
        idle: timing.batch_idle_duration,
        max: timing.batch_max_duration,
    };
    settings.disruption_poll = timing.disruption_poll_duration;
    settings.consolidation_quiet = timing.consolidation_quiet_duration;
    settings.instance_type_drift_delay = timing.instance_type_drift_delay;
    settings.garbage_collection_poll = timing.garbage_collection_poll_duration;
    settings.orphan_grace = timing.orphan_grace_duration;
    settings.interruption_poll = timing.interruption_poll_duration;
    settings
        .interruption_sources
        .clone_from(&timing.interruption_sources);
    settings.price_poll = Some(timing.price_poll_duration).filter(|it| !it.is_zero());
    settings.launch_timeout = timing.launch_timeout;
    settings.registration_timeout = timing.registration_timeout;
    settings.initialization_timeout = timing.initialization_timeout;
    settings.expiration_jitter = timing.expiration_jitter;
    settings.expires_within_budgets = timing.expiration_within_budgets;
    settings
        .repair_policies
        .clone_from(&args.repair.node_repair_policies);
    if args.planning.feature_gates.node_repair && settings.repair_policies.is_empty() {
        settings.repair_policies = RepairPolicy::defaults();
    }
    settings.repair_threshold_percent = args.repair.node_repair_threshold_percent;
    settings.has_state_metrics = !args.process.disable_cluster_state_observability;
    settings.has_pod_metrics = args.process.pod_metrics;
    settings.policy_folder.clone_from(&args.policy_folder);
    settings.policy_record_every = NonZeroU64::new(args.policy_record_every);
    settings.policy_compiler = Some(Arc::new(policy_compiler(args)));
    settings.failpoint.clone_from(&args.failpoint);
    if let Some(sabotage) = args.sabotage {
        kerf_core::sabotage::choose(sabotage);
    }
    settings
}

/// A bundle without a certificate is refused here rather than at the first pull.
fn registry_roots(file: &Path) -> anyhow::Result<Arc<[u8]>> {
    let what = || format!("--registry-ca-bundle {}", file.display());
    let roots = std::fs::read(file).with_context(what)?;
    Registries::new(Some(&roots)).with_context(what)?;
    Ok(roots.into())
}

/// How often pages of code that nothing uses any more go. What a minute of work needs comes back within some hundred page
/// faults, a millisecond in all.
const CODE_REST: Duration = Duration::from_secs(60);

/// Starts what keeps the code of the start and of rare work out of memory.
fn give_back_code() -> anyhow::Result<()> {
    let work = || {
        let Err(error) = keep_giving_back();
        // Nothing is lost but memory, and trying again each minute would say so each minute.
        tracing::warn!(%error, "pages of code are kept");
    };
    let thread = std::thread::Builder::new().name("code-pages".to_owned());
    thread
        .spawn(work)
        .map(drop)
        .context("cannot start a thread")
}

fn keep_giving_back() -> io::Result<Infallible> {
    std::thread::sleep(CODE_REST);
    let pages = CodePages::find()?;
    loop {
        pages.give_back()?;
        std::thread::sleep(CODE_REST);
    }
}

/// Without a folder that is ours, policies are compiled anew at each start.
fn policy_compiler(args: &Controller) -> Compiler {
    let folder = args.policy_cache_dir.clone();
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("kerf-policies"));
    match Artifacts::open(&folder) {
        Ok(artifacts) => compile_policy::compiler(Some(artifacts)),
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::warn!(error = %format!("{error:#}"), "machine code of policies is not kept; hint: --policy-cache-dir");
            compile_policy::compiler(None)
        }
    }
}
