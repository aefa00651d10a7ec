//! Arguments of `kerf explain`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::simulate::args::Source;

/// Arguments of `kerf explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// What is asked about.
    #[arg(value_enum)]
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
    /// Namespace of the pod.
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
    /// Decide for manifests (such as a dump of a cluster) in place of asking a cluster: files, folders, or -.
    #[arg(short = 'f', long = "file", visible_alias = "filename", value_name = "PATH", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Kubeconfig of the cluster; without it ~/.kube/config, or the service account of the pod that this runs in.
    #[arg(long, env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Where types and prices come from, for -f, and how it looks.
    #[command(flatten)]
    pub(crate) source: Source,
}

/// What can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Why it waits, or where it goes.
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// How far its launch is, and why it stays.
    #[value(name = "nodeclaim", alias = "nodeclaims")]
    NodeClaim,
    /// Why it stays.
    #[value(alias = "nodes", alias = "no")]
    Node,
    /// Whether it can launch nodes, and what its budgets block.
    #[value(name = "nodepool", alias = "nodepools")]
    NodePool,
}

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people at a terminal.
    Text,
    /// One JSON object.
    Json,
}
