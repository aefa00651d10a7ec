//! Flags about how pods are planned. Names and defaults are Karpenter's.

use kerf_controllers::feature_gates::FeatureGates;
use kerf_core::snapshot::{MinValuesPolicy, PreferencePolicy, Settings};

use super::scheduler_config::SchedulerConfig;
use super::switch;

/// How pods are planned, and what is switched on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct Planning {
    /// What preferences of pods count: Respect (as far as they can be met) or Ignore.
    #[arg(long, env = "PREFERENCE_POLICY", default_value = "Respect", value_parser = preference)]
    preference_policy: PreferencePolicy,
    /// What minValues of a NodePool are: Strict or BestEffort.
    #[arg(long, env = "MIN_VALUES_POLICY", default_value = "Strict", value_parser = min_values)]
    min_values_policy: MinValuesPolicy,
    /// Leave pods with resource claims (DRA) alone. `false` is refused: kerf does not plan them (docs/decisions).
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, value_parser = switch, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) ignore_dra_requests: bool,
    /// Feature gates, such as NodeRepair=true,ReservedCapacity=true. A gate that kerf does not know or cannot open is
    /// refused.
    #[arg(long, env = "FEATURE_GATES", default_value = "")]
    pub(crate) feature_gates: FeatureGates,
    /// What kube-scheduler is configured to do, in YAML or JSON: podTopologySpread.defaultConstraints, which pods without
    /// constraints of their own get.
    #[arg(
        long,
        env = "SCHEDULER_CONFIG",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) scheduler_config: SchedulerConfig,
}

impl Planning {
    /// In the core's words.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            preference_policy: self.preference_policy,
            min_values_policy: self.min_values_policy,
        }
    }
}

fn preference(text: &str) -> Result<PreferencePolicy, &'static str> {
    match text {
        "Respect" => Ok(PreferencePolicy::Respect),
        "Ignore" => Ok(PreferencePolicy::Ignore),
        _ => Err("it must be Respect or Ignore"),
    }
}

fn min_values(text: &str) -> Result<MinValuesPolicy, &'static str> {
    match text {
        "Strict" => Ok(MinValuesPolicy::Strict),
        "BestEffort" => Ok(MinValuesPolicy::BestEffort),
        _ => Err("it must be Strict or BestEffort"),
    }
}
