//! Every argument of every subcommand, with its environment variable. Nothing else reads the environment.
//!
//! Names and defaults are Karpenter's and the Alibaba Cloud providers' where the meaning is the same, so that their
//! charts' values carry over.

mod planning;
mod process;
mod scheduler_config;

use std::path::PathBuf;
use std::time::Duration;

use kerf_controllers::interruption::notice::Source;
use kerf_controllers::settings::RepairPolicy;
use kerf_core::sabotage::Sabotage;

use clap::{Parser, Subcommand};

pub(crate) use planning::Planning;
pub(crate) use process::Process;
pub(crate) use scheduler_config::SchedulerConfig;

use crate::compile_policy::CompilePolicy;
use crate::explain::args::{Explain, Output};
use crate::logging::Log;
use crate::plugin::args::Plugin;
use crate::simulate::args::{Diff, Simulate};

/// A Karpenter-compatible node autoscaler for Alibaba Cloud, extended by WebAssembly policies.
#[derive(Debug, Parser)]
#[command(name = "kerf", version, propagate_version = true)]
pub(crate) struct Args {
    /// Logging.
    #[command(flatten)]
    pub(crate) log: Log,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `kerf` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take over a cluster that ran another Karpenter provider for Alibaba Cloud.
    Adopt(Adopt),
    /// Read what an account sees of a region, for simulations.
    Catalog(Catalog),
    /// The process in which the controller compiles a policy.
    #[command(hide = true)]
    CompilePolicy(CompilePolicy),
    /// Print completions for a shell, such as `kerf completions bash > /etc/bash_completion.d/kerf`.
    Completions(Completions),
    /// Run the autoscaler.
    Controller(Box<Controller>),
    /// Check a cluster: definitions, rights, credentials, permissions in the cloud, networks, images and policies. Prints
    /// what to fix; changes nothing. Exit code 0: nothing to fix; 1: something is; 2: could not run. Takes the controller's
    /// settings, so that `kubectl exec` into one of its pods needs no arguments.
    Doctor(Box<Doctor>),
    /// Turn manifests of other autoscalers into NodePools and ECSNodeClasses.
    Convert(Convert),
    /// Write manual pages into a folder.
    #[command(hide = true)]
    Man(Man),
    /// Print the least RAM policy that the controller needs: the calls that it makes, and no other.
    RamPolicy(RamPolicy),
    /// Say what the API server would refuse in manifests, and what it cannot see, without a cluster.
    Validate(Validate),
    /// Make, build, check, test, measure and publish policies. Exit code 0: good; 1: a check failed; 2: could not run; 3: a
    /// tool or the cluster is missing.
    Plugin(Plugin),
    /// Show what would be launched for manifests: offline, without cluster or account. Exit code 0: every pod has a
    /// place; 1: some have none; 2: could not run.
    Simulate(Box<Simulate>),
    /// Say why a pod waits or is where it is, and why a node stays: what the controller of a cluster said itself, or with
    /// -f what would be decided for manifests.
    Explain(Box<Explain>),
    /// Write what decisions are made from into a file that `simulate` and `explain` take with -f: no environment, no
    /// secrets, no annotations but those that decisions read.
    Snapshot(Snapshot),
    /// Compare two simulations: of A and B, or of A without and with what-ifs. Exit codes as for `simulate`, of B.
    Diff(Box<Diff>),
}

/// Arguments of `kerf adopt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Adopt {
    /// Only show what would happen. This is all that the command ever does: taking over is the controller's work.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Kubeconfig; in a pod, the service account is used.
    #[arg(long, env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Arguments of `kerf catalog`.
#[derive(Debug, clap::Args)]
pub(crate) struct Catalog {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: CatalogCommand,
}

/// What `kerf catalog` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Write the instance types, stock and prices that an account sees now into a file that `simulate`, `diff` and
    /// `explain` take with --catalog. Only reads; needs the rights ecs:DescribeInstanceTypes, ecs:DescribeZones and, for
    /// stock and spot prices, ecs:DescribeAvailableResource and ecs:DescribeSpotAdvice.
    Pull(Box<Pull>),
}

/// Arguments of `kerf catalog pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct Pull {
    /// File to write, or - for standard output; one that ends in .zst is packed.
    #[arg(short, long, default_value = "-")]
    pub(crate) output: PathBuf,
    /// Region to read.
    #[arg(long, env = "ALIBABA_CLOUD_REGION", default_value = "cn-hangzhou")]
    pub(crate) region: String,
    /// Also ask what the account pays for each type in stock: two calls for each, some minutes for a region. Needs the rights
    /// ecs:DescribePrice and ecs:DescribeSpotPriceHistory.
    #[arg(long)]
    pub(crate) live_prices: bool,
    /// The account.
    #[command(flatten)]
    pub(crate) cloud: Cloud,
}

/// Arguments of `kerf snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct Snapshot {
    /// File to write, or - for standard output; one that ends in .zst is packed.
    #[arg(short, long, default_value = "-")]
    pub(crate) output: PathBuf,
    /// Kubeconfig of the cluster; without it ~/.kube/config, or the service account of the pod that this runs in.
    #[arg(long, env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Arguments of `kerf doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Look with the rights of this user, such as system:serviceaccount:kerf-system:kerf. Not needed in a pod of the
    /// controller.
    #[arg(long = "as", value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// What the controller is started with.
    #[command(flatten)]
    pub(crate) controller: Controller,
}

/// Arguments of `kerf convert`.
#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    /// Provisioners, node templates and classes, NodePools of other providers, answers of DescribeClusterNodePools, node
    /// groups of cluster-autoscaler, helm values: YAML or JSON.
    #[arg(short, long = "file", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
}

/// Arguments of `kerf completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `kerf man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Folder that is there.
    pub(crate) folder: PathBuf,
}

/// Arguments of `kerf ram-policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct RamPolicy {
    /// RAM role that instances get (spec.role of an ECSNodeClass, or --default-node-role): adds the right to give it to them.
    #[arg(long)]
    pub(crate) node_role: Option<String>,
}

/// Arguments of `kerf validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Validate {
    /// Manifests: files, or folders that are read with the folders in them.
    #[arg(short, long = "file", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Manifests as they are now, for the rules about what must not change.
    #[arg(long, num_args = 1..)]
    pub(crate) old: Vec<PathBuf>,
    /// Leave out what the API server would not refuse: objects against each other, types and schedules.
    #[arg(long)]
    pub(crate) schema_only: bool,
    /// Region whose instance types the pools are compared with.
    #[arg(long, env = "ALIBABA_CLOUD_REGION", default_value = "cn-hangzhou")]
    pub(crate) region: String,
}

/// Arguments of `kerf controller`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Controller {
    /// ACK cluster id that nodes join when an ECSNodeClass leaves clusterID empty.
    #[arg(long, env = "CLUSTER_ID", default_value = "")]
    pub(crate) cluster_id: String,
    /// What tells this cluster's instances from other clusters'; the cluster id when not given.
    #[arg(long, env = "CLUSTER_NAME", default_value = "")]
    pub(crate) cluster_name: String,
    /// Region of the cluster.
    #[arg(long, env = "ALIBABA_CLOUD_REGION", default_value = "cn-hangzhou")]
    pub(crate) region: String,
    /// Namespace of the controller: policy ConfigMaps, the lease and the controller's memory are here.
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = "kerf-system")]
    pub(crate) namespace: String,
    /// Kubeconfig; in a pod, the service account is used.
    #[arg(long, env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Name of the pod, which lease and events show.
    #[arg(long, env = "POD_NAME", default_value = "")]
    pub(crate) pod_name: String,
    /// Ports, leadership, logs and limits.
    #[command(flatten)]
    pub(crate) process: Process,
    /// How pods are planned.
    #[command(flatten)]
    pub(crate) planning: Planning,
    /// The cloud.
    #[command(flatten)]
    pub(crate) cloud: Cloud,
    /// Time settings.
    #[command(flatten)]
    pub(crate) timing: Timing,
    /// Node repair.
    #[command(flatten)]
    pub(crate) repair: Repair,
    /// RAM role of instances whose ECSNodeClass names none.
    #[arg(long, env = "DEFAULT_NODE_ROLE", default_value = "")]
    pub(crate) default_node_role: String,
    /// Address of the API server. Accepted for Karpenter's charts; ACK nodes learn it from their attach script, and a
    /// join template names it itself.
    #[arg(long, env = "CLUSTER_ENDPOINT", default_value = "")]
    pub(crate) cluster_endpoint: String,
    /// Folder that policies with source.path are read from; without it such policies are refused.
    #[arg(long, env = "KERF_POLICY_FOLDER")]
    pub(crate) policy_folder: Option<PathBuf>,
    /// Folder with public keys (PEM, *.pem or *.pub: ed25519, or ECDSA over P-256 such as cosign's). What one of them signed
    /// needs no digest, and a signature by another key is refused.
    #[arg(long, env = "KERF_POLICY_KEY_DIR")]
    pub(crate) policy_key_dir: Option<PathBuf>,
    /// File with the CAs (PEM) that registries of policies may have besides the system's.
    #[arg(long, env = "KERF_REGISTRY_CA_BUNDLE")]
    pub(crate) registry_ca_bundle: Option<PathBuf>,
    /// Keep one of so many questions to policies, without private values, for `kerf plugin record`; 0 keeps none.
    #[arg(long, env = "KERF_POLICY_RECORD_EVERY", default_value_t = 0)]
    pub(crate) policy_record_every: u64,
    /// Folder that keeps the machine code of policies, so that a restart compiles none. It is made when it is not there, and
    /// must be this user's alone. Default: kerf-policies in the folder for temporary files.
    #[arg(long, env = "KERF_POLICY_CACHE_DIR")]
    pub(crate) policy_cache_dir: Option<PathBuf>,
    /// Stand still at this point (test builds only).
    #[arg(long, env = "KERF_FAILPOINT", hide = true)]
    pub(crate) failpoint: Option<String>,
    /// Take a guard out (test builds only).
    #[arg(long, env = "KERF_SABOTAGE", hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
}

/// How the cloud is reached.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cloud")]
pub(crate) struct Cloud {
    /// AccessKey id.
    #[arg(
        long,
        env = "ALIBABA_CLOUD_ACCESS_KEY_ID",
        hide_env_values = true,
        default_value = ""
    )]
    pub(crate) access_key_id: String,
    /// AccessKey secret; give it by the environment, not on the command line.
    #[arg(
        long,
        env = "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        hide_env_values = true,
        default_value = ""
    )]
    pub(crate) access_key_secret: String,
    /// Token of temporary credentials.
    #[arg(
        long,
        env = "ALIBABA_CLOUD_SECURITY_TOKEN",
        hide_env_values = true,
        default_value = ""
    )]
    pub(crate) security_token: String,
    /// RAM role that the service account assumes (RRSA), acs:ram::<account>:role/<name>; it wins over an access key.
    #[arg(long, env = "ALIBABA_CLOUD_ROLE_ARN", default_value = "")]
    pub(crate) role_arn: String,
    /// The cluster's OIDC provider, acs:ram::<account>:oidc-provider/<name>.
    #[arg(long, env = "ALIBABA_CLOUD_OIDC_PROVIDER_ARN", default_value = "")]
    pub(crate) oidc_provider_arn: String,
    /// The service account's token for STS; the kubelet renews it.
    #[arg(
        long,
        env = "ALIBABA_CLOUD_OIDC_TOKEN_FILE",
        default_value = "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token"
    )]
    pub(crate) oidc_token_file: PathBuf,
    /// Name of the session, which ActionTrail shows.
    #[arg(long, env = "ALIBABA_CLOUD_ROLE_SESSION_NAME", default_value = "kerf")]
    pub(crate) role_session_name: String,
    /// RAM role of the machine that the controller runs on; taken when there is neither RRSA nor an access key.
    #[arg(long, env = "ALIBABA_CLOUD_ECS_METADATA", default_value = "")]
    pub(crate) ecs_role: String,
    /// Endpoint of ECS, such as ecs.cn-hangzhou.aliyuncs.com or http://127.0.0.1:1234.
    #[arg(long, env = "ECS_ENDPOINT")]
    pub(crate) ecs_endpoint: Option<String>,
    /// Endpoint of VPC.
    #[arg(long, env = "VPC_ENDPOINT")]
    pub(crate) vpc_endpoint: Option<String>,
    /// Endpoint of Container Service.
    #[arg(long, env = "CS_ENDPOINT")]
    pub(crate) cs_endpoint: Option<String>,
    /// Endpoint of RAM.
    #[arg(long, env = "RAM_ENDPOINT")]
    pub(crate) ram_endpoint: Option<String>,
    /// Endpoint of STS.
    #[arg(long, env = "STS_ENDPOINT")]
    pub(crate) sts_endpoint: Option<String>,
    /// Network of the default endpoints: `public` or `vpc`.
    #[arg(long, env = "ALIBABA_CLOUD_NETWORK", default_value = "public")]
    pub(crate) network: String,
    /// Signature: `acs3`, or `v1` for endpoints that only know HMAC-SHA1.
    #[arg(long, env = "KERF_SIGNATURE", default_value = "acs3")]
    pub(crate) signature: String,
    /// The part of the nominal memory, in percent, that the operating system never shows.
    #[arg(long, env = "VM_MEMORY_OVERHEAD_PERCENT", default_value_t = 7.5)]
    pub(crate) vm_memory_overhead_percent: f64,
    /// Catalog file (format v1, as for `kerf simulate --catalog`) whose prices are taken in place of the embedded list and
    /// the spot market: what the account really pays. What it has no price for keeps the usual one.
    #[arg(long, env = "PRICE_CATALOG")]
    pub(crate) price_catalog: Option<PathBuf>,
    /// What the account pays less than the list price on demand, in percent, while no price that the cloud was asked for
    /// says so. Spot prices are the market's.
    #[arg(long, env = "ACCOUNT_DISCOUNT_PERCENT", value_parser = discount, default_value = "0")]
    pub(crate) account_discount_percent: f64,
}

/// Durations, such as 1s, 500ms, 10m.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub(crate) struct Timing {
    /// Plan when no new pod came for this long.
    #[arg(long, env = "BATCH_IDLE_DURATION", value_parser = duration, default_value = "1s")]
    pub(crate) batch_idle_duration: Duration,
    /// Plan at the latest this long after the first pod.
    #[arg(long, env = "BATCH_MAX_DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) batch_max_duration: Duration,
    /// Look for nodes to remove at least this often.
    #[arg(long, env = "DISRUPTION_POLL_DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) disruption_poll_duration: Duration,
    /// Consolidate only nodes to which no pod came and from which none left for this long, also where consolidateAfter is
    /// shorter.
    #[arg(long, env = "CONSOLIDATION_QUIET_DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) consolidation_quiet_duration: Duration,
    /// Let a NodeClaim drift because its instance type is no longer offered only when it is this old.
    #[arg(long, env = "INSTANCE_TYPE_DRIFT_DELAY", value_parser = duration, default_value = "1h")]
    pub(crate) instance_type_drift_delay: Duration,
    /// Compare instances with NodeClaims this often.
    #[arg(long, env = "GARBAGE_COLLECTION_POLL_DURATION", value_parser = duration, default_value = "2m")]
    pub(crate) garbage_collection_poll_duration: Duration,
    /// Delete an instance that no NodeClaim claims this long after first sight.
    #[arg(long, env = "ORPHAN_GRACE_DURATION", value_parser = duration, default_value = "10m")]
    pub(crate) orphan_grace_duration: Duration,
    /// Ask the cloud this often which instances it takes back or works on.
    #[arg(long, env = "INTERRUPTION_POLL_DURATION", value_parser = duration, default_value = "15s")]
    pub(crate) interruption_poll_duration: Duration,
    /// Who is believed about that: lock, events, conditions. Nothing is done about interruptions where this is empty.
    #[arg(long, env = "INTERRUPTION_SOURCES", value_delimiter = ',', default_value = "lock,events,conditions", num_args = 0..)]
    pub(crate) interruption_sources: Vec<Source>,
    /// Ask the cloud what one instance type costs this often; 0s never asks.
    #[arg(long, env = "PRICE_POLL_DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) price_poll_duration: Duration,
    /// Give up a NodeClaim that is not launched in this time.
    #[arg(long, env = "LAUNCH_TIMEOUT", value_parser = duration, default_value = "5m")]
    pub(crate) launch_timeout: Duration,
    /// Give up a NodeClaim whose node does not register in this time.
    #[arg(long, env = "REGISTRATION_TIMEOUT", value_parser = duration, default_value = "15m")]
    pub(crate) registration_timeout: Duration,
    /// Give up a NodeClaim whose node does not get ready in this time after it registered; 0s waits for ever.
    #[arg(long, env = "INITIALIZATION_TIMEOUT", value_parser = duration, default_value = "1h")]
    pub(crate) initialization_timeout: Duration,
    /// Let NodeClaims expire up to this much earlier than their expireAfter says, each by another amount.
    #[arg(long, env = "EXPIRATION_JITTER", value_parser = duration, default_value = "0s")]
    pub(crate) expiration_jitter: Duration,
    /// Let expired NodeClaims go only within the disruption budgets of their NodePool.
    #[arg(long, env = "EXPIRATION_WITHIN_BUDGETS", default_value_t = false, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) expiration_within_budgets: bool,
}

/// When broken nodes are replaced.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Node repair")]
pub(crate) struct Repair {
    /// Node conditions that mean a broken node, and how long each may last, such as
    /// Ready=False:30m,Ready=Unknown:30m, which are taken when only the feature gate NodeRepair is given. Without
    /// either, no node is repaired.
    #[arg(long, env = "NODE_REPAIR_POLICIES", value_delimiter = ',')]
    pub(crate) node_repair_policies: Vec<RepairPolicy>,
    /// Repair nothing in a NodePool of which more than this part of the nodes, in percent, is broken.
    #[arg(long, env = "NODE_REPAIR_THRESHOLD_PERCENT", default_value_t = 20)]
    pub(crate) node_repair_threshold_percent: u32,
}

/// True or false as Go reads it, since Karpenter's charts write it so; anything else is refused.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// At the full discount all prices would be zero, which means unknown.
fn discount(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("it must be a number from 0 to less than 100".to_owned()),
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = kerf_api::duration::parse_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(parsed).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
