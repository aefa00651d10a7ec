//! The worlds of the contract behind one face: what every component exports, whatever its hook.

use crate::bindings::{bootstrap, pricing, selection};
use crate::call::HostState;
use crate::call::shorten;
use crate::hook::Hook;
use crate::policy::ConfigError;
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// A component whose imports and exports were matched with the world of its hook.
pub(crate) enum World {
    Selection(selection::SelectionPluginPre<HostState>),
    Pricing(pricing::PricingPluginPre<HostState>),
    Bootstrap(bootstrap::BootstrapPluginPre<HostState>),
}

/// What `describe` returned, before it is parsed.
pub(crate) struct RawMetadata {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) config_schema: String,
    pub(crate) default_config: String,
    pub(crate) time_step_s: u32,
}

/// bindgen makes types of its own for each world's exports.
macro_rules! each_world {
    ($world:expr, $store:expr, $lifecycle:ident, $guest:ident => $call:expr) => {
        match $world {
            World::Selection(pre) => {
                use selection::exports::kerf::policy::lifecycle as $lifecycle;
                let plugin = pre.instantiate(&mut *$store)?;
                let $guest = plugin.kerf_policy_lifecycle();
                $call
            }
            World::Pricing(pre) => {
                use pricing::exports::kerf::policy::lifecycle as $lifecycle;
                let plugin = pre.instantiate(&mut *$store)?;
                let $guest = plugin.kerf_policy_lifecycle();
                $call
            }
            World::Bootstrap(pre) => {
                use bootstrap::exports::kerf::policy::lifecycle as $lifecycle;
                let plugin = pre.instantiate(&mut *$store)?;
                let $guest = plugin.kerf_policy_lifecycle();
                $call
            }
        }
    };
}

impl World {
    pub(crate) fn new(hook: Hook, pre: InstancePre<HostState>) -> wasmtime::Result<Self> {
        Ok(match hook {
            Hook::InstanceSelection => Self::Selection(selection::SelectionPluginPre::new(pre)?),
            Hook::PricingPreference => Self::Pricing(pricing::PricingPluginPre::new(pre)?),
            Hook::BootstrapUserData => Self::Bootstrap(bootstrap::BootstrapPluginPre::new(pre)?),
        })
    }

    /// Makes an instance and drops it.
    pub(crate) fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<()> {
        match self {
            Self::Selection(pre) => pre.instantiate(store).map(drop),
            Self::Pricing(pre) => pre.instantiate(store).map(drop),
            Self::Bootstrap(pre) => pre.instantiate(store).map(drop),
        }
    }

    pub(crate) fn describe(&self, store: &mut Store<HostState>) -> wasmtime::Result<RawMetadata> {
        each_world!(self, store, lifecycle, guest => {
            let lifecycle::Metadata { name, version, summary, config_schema, default_config, time_step_s } =
                guest.call_describe(store)?;
            Ok(RawMetadata { name, version, summary, config_schema, default_config, time_step_s })
        })
    }

    pub(crate) fn validate_config(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Vec<ConfigError>> {
        each_world!(self, store, lifecycle, guest => {
            let errors = guest.call_validate_config(store, config)?.err().unwrap_or_default();
            let error = |lifecycle::ConfigError { path, message }: _| {
                ConfigError { path: shorten(&path), message: shorten(&message) }
            };
            Ok(errors.into_iter().map(error).collect())
        })
    }
}
