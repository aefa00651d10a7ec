//! From the traits to the functions that a component exports.

use crate::{
    About, Adjustment, BootstrapPolicy, Candidate, ConfigError, Context, Level, Node, Part,
    PolicyError, PricingContext, PricingPolicy, Selection, SelectionPolicy, emit,
};
use serde::de::DeserializeOwned;

#[doc(hidden)]
#[macro_export]
macro_rules! export_lifecycle {
    ($world:ident, $policy:ty, $trait:ident) => {
        struct KerfPolicyExport;

        impl $crate::$world::exports::kerf::policy::lifecycle::Guest for KerfPolicyExport {
            fn describe() -> $crate::$world::exports::kerf::policy::lifecycle::Metadata {
                let $crate::About {
                    name,
                    version,
                    summary,
                    config_schema,
                    default_config,
                    time_step_secs,
                } = $crate::describe(<$policy as $crate::$trait>::about);
                $crate::$world::exports::kerf::policy::lifecycle::Metadata {
                    name: name.into(),
                    version: version.into(),
                    summary: summary.into(),
                    config_schema: config_schema.into(),
                    default_config: default_config.into(),
                    time_step_s: time_step_secs,
                }
            }

            fn validate_config(
                config: String,
            ) -> Result<(), Vec<$crate::$world::exports::kerf::policy::lifecycle::ConfigError>>
            {
                use $crate::$world::exports::kerf::policy::lifecycle::ConfigError;
                let errors = $crate::validate(&config, <$policy as $crate::$trait>::check);
                if errors.is_empty() {
                    return Ok(());
                }
                Err(errors
                    .into_iter()
                    .map(|it| ConfigError {
                        path: it.path,
                        message: it.message,
                    })
                    .collect())
            }
        }
    };
}

/// Exports a [`SelectionPolicy`] as the component's functions.
#[macro_export]
macro_rules! export_selection {
    ($policy:ty) => {
        $crate::export_lifecycle!(selection, $policy, SelectionPolicy);

        impl $crate::selection::exports::kerf::policy::instance_selection::Guest for KerfPolicyExport {
            fn select(
                config: String,
                ctx: $crate::Context,
                candidates: Vec<$crate::Candidate>,
            ) -> Result<$crate::Selection, $crate::PolicyError> {
                $crate::select::<$policy>(&config, &ctx, &candidates)
            }
        }

        $crate::selection::export!(KerfPolicyExport with_types_in $crate::selection);
    };
}

/// Exports a [`PricingPolicy`] as the component's functions.
#[macro_export]
macro_rules! export_pricing {
    ($policy:ty) => {
        $crate::export_lifecycle!(pricing, $policy, PricingPolicy);

        impl $crate::pricing::exports::kerf::policy::pricing_preference::Guest for KerfPolicyExport {
            fn adjust(
                config: String,
                ctx: $crate::PricingContext,
                candidates: Vec<$crate::Candidate>,
            ) -> Result<Vec<$crate::Adjustment>, $crate::PolicyError> {
                $crate::adjust::<$policy>(&config, &ctx, &candidates)
            }
        }

        $crate::pricing::export!(KerfPolicyExport with_types_in $crate::pricing);
    };
}

/// Exports a [`BootstrapPolicy`] as the component's functions.
#[macro_export]
macro_rules! export_bootstrap {
    ($policy:ty) => {
        $crate::export_lifecycle!(bootstrap, $policy, BootstrapPolicy);

        impl $crate::bootstrap::exports::kerf::policy::bootstrap_userdata::Guest for KerfPolicyExport {
            fn render(
                config: String,
                node: $crate::Node,
                parts: Vec<$crate::Part>,
            ) -> Result<Vec<$crate::Part>, $crate::PolicyError> {
                $crate::render::<$policy>(&config, &node, parts)
            }
        }

        $crate::bootstrap::export!(KerfPolicyExport with_types_in $crate::bootstrap);
    };
}

pub fn describe(about: fn() -> About) -> About {
    report_panics();
    about()
}

pub fn validate<C: DeserializeOwned>(
    config: &str,
    check: fn(&C) -> Vec<ConfigError>,
) -> Vec<ConfigError> {
    report_panics();
    match serde_json::from_str(config) {
        Ok(config) => check(&config),
        Err(error) => vec![ConfigError {
            path: String::new(),
            message: error.to_string(),
        }],
    }
}

pub fn select<P: SelectionPolicy>(
    config: &str,
    ctx: &Context,
    candidates: &[Candidate],
) -> Result<Selection, PolicyError> {
    P::select(&parse(config)?, ctx, candidates)
}

pub fn adjust<P: PricingPolicy>(
    config: &str,
    ctx: &PricingContext,
    candidates: &[Candidate],
) -> Result<Vec<Adjustment>, PolicyError> {
    P::adjust(&parse(config)?, ctx, candidates)
}

pub fn render<P: BootstrapPolicy>(
    config: &str,
    node: &Node,
    parts: Vec<Part>,
) -> Result<Vec<Part>, PolicyError> {
    P::render(&parse(config)?, node, parts)
}

fn parse<C: DeserializeOwned>(config: &str) -> Result<C, PolicyError> {
    report_panics();
    serde_json::from_str(config).map_err(|error| PolicyError::InvalidConfig(error.to_string()))
}

/// A panic ends the instance without a word; this sends its message and place to kerf first.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        emit(Level::Error, &panic.to_string(), &[])
    }));
}
