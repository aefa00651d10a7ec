//! Arguments of `kerf simulate` and `kerf diff`.

use std::path::PathBuf;

use clap::ValueEnum;

/// Arguments of `kerf simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// Manifests: a file, a folder (every .yaml, .yml and .json in it), or - for standard input.
    #[arg(
        short = 'f',
        long = "file",
        visible_alias = "filename",
        value_name = "PATH",
        num_args = 1..,
        required_unless_present = "print_schema"
    )]
    pub(crate) files: Vec<PathBuf>,
    /// Form of the answer: a table, JSON (docs/reference/simulate.schema.json), or one HTML page.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Print the JSON Schema of `-o json` and end.
    #[arg(long)]
    pub(crate) print_schema: bool,
    /// What is asked besides.
    #[command(flatten)]
    pub(crate) ask: Ask,
    /// Play the trace: pods come and go at their times, nodes are launched, consolidated and removed. The answer is a time
    /// line with averages (docs/reference/replay.schema.json).
    #[arg(long, conflicts_with = "disrupt")]
    pub(crate) replay: bool,
    /// How often a replay looks at nodes that exist, and has a row, in the trace's time, such as 1h; a hundredth of the
    /// trace where it is not given. A shorter step is truer and takes longer.
    #[arg(long, requires = "replay", value_parser = crate::args::duration, value_name = "DURATION")]
    pub(crate) step: Option<std::time::Duration>,
    /// Where types and prices come from, and how it looks.
    #[command(flatten)]
    pub(crate) source: Source,
    /// What would be different.
    #[command(flatten)]
    pub(crate) what_if: WhatIf,
}

/// Arguments of `kerf diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// Manifests (file or folder) of the first simulation.
    pub(crate) a: PathBuf,
    /// Manifests of the second; without them A again, with the what-ifs, which only ever change the second.
    pub(crate) b: Option<PathBuf>,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = DiffOutput::Table)]
    pub(crate) output: DiffOutput,
    /// What is asked besides.
    #[command(flatten)]
    pub(crate) ask: Ask,
    /// Where types and prices come from, and how it looks.
    #[command(flatten)]
    pub(crate) source: Source,
    /// What would be different in B.
    #[command(flatten)]
    pub(crate) what_if: WhatIf,
}

/// What is asked besides what would be launched.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Ask {
    /// Say too which of the NodeClaims that exist would be removed or replaced now, what that saves, and why the others
    /// stay.
    #[arg(long)]
    pub(crate) disrupt: bool,
}

/// Form of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people at a terminal.
    Table,
    /// One JSON object.
    Json,
    /// One page that needs nothing else.
    Html,
}

/// Form of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffOutput {
    /// For people at a terminal.
    Table,
    /// One JSON object.
    Json,
}

/// What pods are planned on besides the manifests.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// Pods as a CSV, besides those of the manifests: one row per pod (name, cpu_milli, memory_mib, and if they are known
    /// num_gpu, creation_time, deletion_time in seconds), or one per ReplicaSet (name, cpu_milli, memory_mib, replicas, and
    /// if they are known zone_spread, replicas_after).
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// What kube-scheduler is configured to do, in YAML or JSON, as the controller takes it:
    /// podTopologySpread.defaultConstraints. Services and workloads among the manifests say whom they count.
    #[arg(long, value_name = "FILE")]
    pub(crate) scheduler_config: Option<PathBuf>,
    /// Region, for zones and prices.
    #[arg(long, env = "ALIBABA_CLOUD_REGION", default_value = "cn-hangzhou")]
    pub(crate) region: String,
    /// Zones in place of those that are known for the region.
    #[arg(long, value_delimiter = ',', value_name = "ZONE")]
    pub(crate) zones: Vec<String>,
    /// A catalog (format v1) in place of the embedded one.
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
    /// Network plugin of the cluster, which decides how many pods fit on a node.
    #[arg(long, value_enum, default_value_t = Cni::Terway)]
    pub(crate) cni: Cni,
    /// How it looks.
    #[command(flatten)]
    pub(crate) look: Look,
}

/// Network plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cni {
    /// Terway with shared interfaces.
    Terway,
    /// Terway with one interface per pod.
    TerwayExclusive,
    /// Flannel with 64 pods per node.
    Flannel,
    /// Any other: 110 pods per node.
    Other,
}

/// How text looks.
#[derive(Debug, clap::Args)]
pub(crate) struct Look {
    /// Colours: auto uses them on a terminal unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[arg(long, env = "NO_COLOR", hide = true)]
    pub(crate) no_color: Option<String>,
    #[arg(long, env = "COLUMNS", hide = true)]
    pub(crate) columns: Option<usize>,
}

/// When there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Changes to what the manifests say.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WhatIf {
    /// Set a field: KIND.NAME.PATH=VALUE, such as nodepool.default.spec.limits.cpu=200.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Leave out what has this: zone, type, family, arch, capacity-type or pool, such as zone=cn-hangzhou-k.
    #[arg(long, value_name = "WHAT=VALUE")]
    pub(crate) without: Vec<String>,
    /// No spot capacity anywhere.
    #[arg(long)]
    pub(crate) spot_out: bool,
    /// Other replicas: deploy/web=200, with a namespace shop/deploy/web=200.
    #[arg(long, value_name = "WORKLOAD=N")]
    pub(crate) scale: Vec<String>,
    /// Plan what HorizontalPodAutoscalers would scale to at the least or the most, not the replicas as written.
    #[arg(long, value_enum)]
    pub(crate) hpa: Option<Hpa>,
    /// A policy for every ECSNodeClass (a WebAssembly component).
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// The configuration of the --policy before it, as JSON.
    #[arg(long, value_name = "JSON")]
    pub(crate) policy_config: Vec<String>,
}

/// Which end of a HorizontalPodAutoscaler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hpa {
    /// minReplicas.
    Min,
    /// maxReplicas.
    Max,
}

impl WhatIf {
    /// Whether anything is changed at all.
    pub(crate) fn is_empty(&self) -> bool {
        !self.spot_out
            && self.hpa.is_none()
            && [&self.set, &self.without, &self.scale]
                .iter()
                .all(|list| list.is_empty())
            && self.policy.is_empty()
    }
}
