//! Arguments of `kerf plugin`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// Arguments of `kerf plugin`.
#[derive(Debug, clap::Args)]
pub(crate) struct Plugin {
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `kerf plugin` can do. Exit code 0: good; 1: a check failed; 2: could not run; 3: a tool or the cluster is missing.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a folder with a policy that builds, its SDK and a first test.
    New(New),
    /// Build the policy in a folder: build/NAME.wasm.
    Build(Build),
    /// Build and test the policy in a folder, and plan manifests with it; with --watch at each save.
    Dev(Dev),
    /// Load a component as the controller would, and say what is wrong with it or with a configuration.
    Check(Check),
    /// Check a configuration as the controller would: against the schema of the component, then by the component itself.
    Config(Configured),
    /// Check the digest and the signature of a component.
    Verify(Verify),
    /// Ask two versions the same questions: which decisions change, and what the hour would cost.
    Replay(Replay),
    /// Fetch real questions from a controller that keeps some (--policy-record-every), for replay and test.
    Record(Record),
    /// Run the cases of tests/*.json: answers, equal answers to equal questions, hostile input, fuel.
    Test(Test),
    /// Ask a component one question and show what it changes and costs.
    Run(Run),
    /// Show what a component is: description, interfaces, size, digest, how it would be shipped.
    Inspect(One),
    /// Measure a component, or with -f planning with policies.
    Bench(Bench),
    /// Put a component into ConfigMaps of a cluster, and print the entry for the ECSNodeClass.
    Publish(Publish),
    /// Show the policies of a cluster: what serves, in which version, since when, and what is wrong.
    Ls(Cluster),
    /// Put the component back that the last publish replaced.
    Rollback(Rollback),
    /// Say which toolchains are there and how to get the others.
    Doctor(Doctor),
}

/// Arguments of `kerf plugin new`.
#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// Name of the policy, and of its folder.
    pub(crate) name: String,
    /// What it is written in.
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    pub(crate) lang: Lang,
    /// What it is asked.
    #[arg(long, value_enum, default_value_t = HookName::Selection)]
    pub(crate) hook: HookName,
}

/// Arguments of `kerf plugin build`.
#[derive(Debug, clap::Args)]
pub(crate) struct Build {
    /// Folder with kerf-plugin.json.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Where the component goes; build/NAME.wasm in the folder when not given.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `kerf plugin dev`.
#[derive(Debug, clap::Args)]
pub(crate) struct Dev {
    /// Folder with kerf-plugin.json.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Manifests or a snapshot of a cluster (`kerf snapshot`) to plan with the policy.
    #[arg(short = 'f', long = "file", value_name = "PATH", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Configuration for planning, as JSON.
    #[arg(short, long, value_name = "JSON", requires = "files")]
    pub(crate) config: Option<String>,
    /// Go on: the same again at each save, until the process is ended.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// A component.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// Component, packed or not, or the folder of a policy that was built.
    #[arg(default_value = ".")]
    pub(crate) component: PathBuf,
}

/// A component and how it is configured.
#[derive(Debug, clap::Args)]
pub(crate) struct Configured {
    /// The component.
    #[command(flatten)]
    pub(crate) one: One,
    /// Hook, where the component serves several.
    #[arg(long, value_enum)]
    pub(crate) hook: Option<HookName>,
    /// Configuration as JSON, or the name of a file with JSON; the policy's own default when not given.
    #[arg(short, long, value_name = "JSON|FILE")]
    pub(crate) config: Option<String>,
}

/// Arguments of `kerf plugin check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The component.
    #[command(flatten)]
    pub(crate) what: Configured,
}

/// Arguments of `kerf plugin verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// The component.
    #[command(flatten)]
    pub(crate) one: One,
    /// Public key that may have signed it (PEM); several may be given.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    /// The signature; the component's name with .sig when not given.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) signature: Option<PathBuf>,
    /// The digest that it must have, as in spec.policies[].digest.
    #[arg(long, value_name = "sha256:...", required_unless_present = "key")]
    pub(crate) digest: Option<kerf_policy::PolicyDigest>,
}

/// Arguments of `kerf plugin record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Folder for the questions, one file each; it is made when it is not there.
    pub(crate) output: PathBuf,
    /// Only questions to this policy.
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Where the controller's metrics are, such as http://127.0.0.1:8080 after `kubectl port-forward`; through the API server when not given.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The cluster.
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Arguments of `kerf plugin replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Folder with questions, one per file, as `kerf plugin run --input` takes them whole.
    pub(crate) questions: PathBuf,
    /// The component as it is.
    #[arg(long, value_name = "FILE")]
    pub(crate) old: PathBuf,
    /// The component as it shall be; the same one shows what another configuration changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) new: PathBuf,
    /// Configuration of the old one; its default when not given.
    #[arg(long, value_name = "JSON|FILE")]
    pub(crate) old_config: Option<String>,
    /// Configuration of the new one.
    #[arg(long, value_name = "JSON|FILE")]
    pub(crate) new_config: Option<String>,
    /// Hook, where the component serves several.
    #[arg(long, value_enum)]
    pub(crate) hook: Option<HookName>,
}

/// Arguments of `kerf plugin run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The component.
    #[command(flatten)]
    pub(crate) what: Configured,
    /// The question: a whole one (context and candidates; node and parts), or a case of tests/. A small one when not given.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
}

/// Arguments of `kerf plugin test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// The component; its folder has the cases when --cases is not given.
    #[command(flatten)]
    pub(crate) one: One,
    /// Folder with the cases.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cases: Option<PathBuf>,
    /// Write down what each case costs now (tests/fuel.lock); later runs fail when one costs over a tenth more.
    #[arg(long)]
    pub(crate) lock_fuel: bool,
}

/// Arguments of `kerf plugin bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// The component.
    #[command(flatten)]
    pub(crate) what: Configured,
    /// Calls of each size.
    #[arg(long, default_value_t = 1000)]
    pub(crate) calls: usize,
    /// Candidates of a call.
    #[arg(long, value_delimiter = ',', default_value = "1,100,300,1000")]
    pub(crate) candidates: Vec<u16>,
    /// Measure planning these manifests without and with policies instead.
    #[arg(short = 'f', long = "file", value_name = "PATH", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Further components that plan with, besides the first one.
    #[arg(long, value_name = "FILE", requires = "files")]
    pub(crate) and: Vec<PathBuf>,
    /// Configurations of those.
    #[arg(long, value_name = "JSON", requires = "and")]
    pub(crate) and_config: Vec<String>,
}

/// A cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Cluster {
    /// Kubeconfig; ~/.kube/config or the pod's service account when not given.
    #[arg(long, env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Namespace of the controller.
    #[arg(short, long, env = "SYSTEM_NAMESPACE", default_value = "kerf-system")]
    pub(crate) namespace: String,
}

/// Arguments of `kerf plugin publish`.
#[derive(Debug, clap::Args)]
pub(crate) struct Publish {
    /// The component.
    #[command(flatten)]
    pub(crate) one: One,
    /// Name of the ConfigMap, or of the first part of its parts' names; the policy's name when not given.
    #[arg(long, value_name = "NAME")]
    pub(crate) configmap: Option<String>,
    /// Push it as an artifact to a registry instead: HOST/REPOSITORY:TAG.
    #[arg(long, value_name = "REF", conflicts_with_all = ["configmap", "dry_run"])]
    pub(crate) oci: Option<String>,
    /// File with the login for the registry, as `docker login` writes it; config.json in DOCKER_CONFIG or in ~/.docker when not given.
    #[arg(long, value_name = "FILE", requires = "oci")]
    pub(crate) docker_config: Option<PathBuf>,
    /// File with the CAs (PEM) that the registry may have besides the system's.
    #[arg(long, value_name = "FILE", requires = "oci")]
    pub(crate) registry_ca_bundle: Option<PathBuf>,
    /// How it is stored.
    #[arg(long = "as", value_enum, default_value_t = Form::Auto)]
    pub(crate) form: Form,
    /// The cluster.
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Only let the API server say whether it would take it.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `kerf plugin rollback`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rollback {
    /// Name of the ConfigMap.
    pub(crate) configmap: String,
    /// The cluster.
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Arguments of `kerf plugin doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Folder of a policy, whose own tools count.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
}

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    /// For wasm32-unknown-unknown.
    Rust,
    /// QuickJS.
    #[value(alias = "javascript")]
    Js,
    /// CPython.
    Python,
    /// Go's own compiler.
    Go,
    /// zig cc.
    C,
}

/// What a policy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookName {
    /// InstanceSelection.
    #[value(alias = "InstanceSelection")]
    Selection,
    /// PricingPreference.
    #[value(alias = "PricingPreference")]
    Pricing,
    /// BootstrapUserData.
    #[value(alias = "BootstrapUserData")]
    Bootstrap,
}

/// How a component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The first of the others that fits.
    Auto,
    /// As it is, in one ConfigMap.
    Raw,
    /// Packed with zstd, in one ConfigMap.
    Zst,
    /// Packed with zstd, in several ConfigMaps that never change.
    Shards,
}

impl From<Lang> for kerf_guest::Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Js => Self::JavaScript,
            Lang::Python => Self::Python,
            Lang::Go => Self::Go,
            Lang::C => Self::C,
        }
    }
}

impl From<HookName> for kerf_guest::Hook {
    fn from(hook: HookName) -> Self {
        match hook {
            HookName::Selection => Self::InstanceSelection,
            HookName::Pricing => Self::PricingPreference,
            HookName::Bootstrap => Self::BootstrapUserData,
        }
    }
}

impl From<HookName> for kerf_policy::Hook {
    fn from(hook: HookName) -> Self {
        match hook {
            HookName::Selection => Self::InstanceSelection,
            HookName::Pricing => Self::PricingPreference,
            HookName::Bootstrap => Self::BootstrapUserData,
        }
    }
}
