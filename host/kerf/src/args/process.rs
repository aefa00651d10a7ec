//! Flags about the process itself: ports, leadership, logs, limits.

use std::net::{Ipv4Addr, SocketAddr};

use super::switch;

/// Names and defaults are Karpenter's, but for what says otherwise.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct Process {
    /// Port of /metrics; 0 takes a free one.
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    pub(crate) metrics_port: u16,
    /// Port of /healthz and /readyz; 0 takes a free one.
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    pub(crate) health_probe_port: u16,
    /// Serve metrics and probes together on this address, and not on the two ports (kerf's own).
    #[arg(long, env = "METRICS_ADDRESS")]
    pub(crate) metrics_address: Option<SocketAddr>,
    /// Serve /debug/threads and /debug/memory beside the metrics.
    #[arg(long, env = "ENABLE_PROFILING", default_value_t = false, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) enable_profiling: bool,
    /// Act without a lease: only for a single process that nothing else runs beside.
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value_t = false, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) disable_leader_election: bool,
    /// Name of the lease.
    #[arg(
        long,
        env = "LEADER_ELECTION_NAME",
        default_value = "karpenter-leader-election"
    )]
    pub(crate) leader_election_name: String,
    /// Namespace of the lease; the controller's own when empty.
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", default_value = "")]
    pub(crate) leader_election_namespace: String,
    /// Accepted for Karpenter's charts; a standby of kerf always has its watches and policies ready.
    #[arg(long, env = "DISABLE_CONTROLLER_WARMUP", default_value_t = true, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) disable_controller_warmup: bool,
    /// Leave out the metrics of single pods, nodes and NodePools.
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value_t = false, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) disable_cluster_state_observability: bool,
    /// Metrics of single pods, as long as they wait for a node or to be ready: one series each.
    #[arg(long, env = "POD_METRICS", default_value_t = false, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) pod_metrics: bool,
    /// Requests per second to the API server after a burst. NodeClaims are created beside them, at the same rate.
    #[arg(long, env = "KUBE_CLIENT_QPS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) kube_client_qps: u32,
    /// Requests to the API server that may go at once.
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) kube_client_burst: u32,
    /// CPU request of the container in millicores; one thread per core runs, at least two.
    #[arg(long, env = "CPU_REQUESTS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpu_requests: u32,
    /// Memory limit of the container in bytes, -1 for none. Accepted for Karpenter's charts, where it tunes Go's
    /// garbage collector; kerf has none.
    #[arg(
        long,
        env = "MEMORY_LIMIT",
        default_value_t = -1,
        allow_negative_numbers = true
    )]
    pub(crate) memory_limit: i64,
    /// Name of the controller's Service. Accepted for Karpenter's charts; kerf has no webhook that needs it.
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "")]
    pub(crate) karpenter_service: String,
    /// Where log lines go: stdout, stderr or files, separated by commas.
    #[arg(
        long,
        env = "LOG_OUTPUT_PATHS",
        default_value = "stdout",
        value_delimiter = ','
    )]
    pub(crate) log_output_paths: Vec<String>,
    /// Where the reason goes when the process cannot start or must end: stdout, stderr or files, besides the log.
    #[arg(
        long,
        env = "LOG_ERROR_OUTPUT_PATHS",
        default_value = "stderr",
        value_delimiter = ','
    )]
    pub(crate) log_error_output_paths: Vec<String>,
}

impl Process {
    /// Where metrics are served, and where probes if that is another place.
    pub(crate) fn addresses(&self) -> (SocketAddr, Option<SocketAddr>) {
        let on = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        match self.metrics_address {
            Some(address) => (address, None),
            None if self.metrics_port == self.health_probe_port && self.metrics_port != 0 => {
                (on(self.metrics_port), None)
            }
            None => (on(self.metrics_port), Some(on(self.health_probe_port))),
        }
    }

    /// Threads of the runtime: what the container is promised, and never one, so that a long plan stops no renewal of
    /// the lease. More than 60 cores gain nothing (Karpenter: same bound).
    pub(crate) fn threads(&self) -> usize {
        self.cpu_requests.div_ceil(1000).clamp(2, 60) as usize
    }
}
