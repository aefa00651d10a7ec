//! A policy that was checked and compiled, and the functions of its contract.

use crate::bindings::selection::kerf::policy::types;
use crate::bootstrap::{self, BootstrapInput, Part};
use crate::call::{self, CallReport, shorten};
use crate::compile::{self, Compiled};
use crate::digest::PolicyDigest;
use crate::engine::Engine;
use crate::error::{CallError, LoadError};
use crate::hook::Hook;
use crate::inspect;
use crate::limits::{CANDIDATES_MAX, CONFIG_BYTES_MAX, CallLimits};
use crate::pricing::{self, Adjustment, PricingInput};
use crate::schema;
use crate::selection::{Candidate, Context, Selection, SelectionInput};
use crate::wasi::{self, Inert, Wasi};
use crate::world::{RawMetadata, World};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// What a policy says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Metadata {
    pub name: String,
    pub version: String,
    pub summary: String,
    /// The JSON Schema of its configuration; `None` when it takes none.
    pub config_schema: Option<serde_json::Value>,
    /// What it is configured with when the NodeClass says nothing.
    pub default_config: serde_json::Value,
    /// How often its answer may change with time; 0 when it does not.
    pub time_step_secs: u32,
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", if .path.is_empty() { "config" } else { .path })]
pub struct ConfigError {
    /// JSON Pointer into the configuration.
    pub path: String,
    pub message: String,
}

/// A compiled policy for one hook. Calls share nothing: each gets an instance of its own.
pub struct Policy {
    engine: Engine,
    digest: PolicyDigest,
    hook: Hook,
    metadata: Metadata,
    world: World,
    wasi: Wasi,
    is_from_cache: bool,
}

impl Policy {
    /// Checks, compiles and describes a component. Takes 50 to 200 ms for a Rust policy and seconds for an interpreter,
    /// so call it off the path of pods. `expected` is the digest pin of the NodeClass.
    pub fn load(
        engine: &Engine,
        bytes: &[u8],
        hook: Hook,
        expected: Option<PolicyDigest>,
    ) -> Result<Self, LoadError> {
        Self::load_with(engine, bytes, hook, expected, Wasi::None)
    }

    /// The same, for a component that may import what `wasi` grants.
    pub fn load_with(
        engine: &Engine,
        bytes: &[u8],
        hook: Hook,
        expected: Option<PolicyDigest>,
        wasi: Wasi,
    ) -> Result<Self, LoadError> {
        let digest = PolicyDigest::of(bytes);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(LoadError::DigestMismatch {
                expected,
                found: digest,
            });
        }
        let imports = inspect::check(bytes, hook, wasi)?;
        let Compiled {
            component,
            is_from_cache,
        } = compile::component(engine, bytes, digest)?;
        let wrong_types =
            |error: wasmtime::Error| LoadError::WrongTypes(shorten(&format!("{error:#}")));
        let pre = match wasi {
            Wasi::None => engine.linker().instantiate_pre(&component),
            Wasi::Inert => {
                let mut linker = engine.linker().clone();
                wasi::add_to_linker(&mut linker, &component, &imports)
                    .and_then(|()| linker.instantiate_pre(&component))
            }
        };
        let world = pre
            .and_then(|pre| World::new(hook, pre))
            .map_err(wrong_types)?;
        let inert = inert(wasi, digest, &"describe", 0);
        let metadata = describe(engine, &world, inert)?;
        Ok(Self {
            engine: engine.clone(),
            digest,
            hook,
            metadata,
            world,
            wasi,
            is_from_cache,
        })
    }

    pub fn digest(&self) -> PolicyDigest {
        self.digest
    }

    /// Whether its machine code was there already.
    pub fn is_from_cache(&self) -> bool {
        self.is_from_cache
    }

    pub fn hook(&self) -> Hook {
        self.hook
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Checks `config` against the policy's schema and then asks the policy itself. The outer error is a call that failed.
    pub fn validate_config(
        &self,
        config: &str,
        limits: &CallLimits,
    ) -> Result<Vec<ConfigError>, CallError> {
        if config.len() > CONFIG_BYTES_MAX {
            let message = format!(
                "is {} bytes long and the limit is {CONFIG_BYTES_MAX}",
                config.len()
            );
            return Ok(vec![ConfigError {
                path: String::new(),
                message,
            }]);
        }
        let errors = self.check_schema(config);
        if !errors.is_empty() {
            return Ok(errors);
        }
        let limits = limits.for_loading();
        let world = &self.world;
        let inert = self.inert(&config, 0);
        call::run(&self.engine, &limits, limits.fuel(0), inert, |store| {
            world.validate_config(store, config)
        })
        .result
    }

    fn check_schema(&self, config: &str) -> Vec<ConfigError> {
        let Some(schema) = &self.metadata.config_schema else {
            return Vec::new();
        };
        match serde_json::from_str(config) {
            Ok(config) => schema::check(schema, &config),
            Err(error) => vec![ConfigError {
                path: String::new(),
                message: format!("is not JSON: {error}"),
            }],
        }
    }

    /// Makes an instance, as each call does first, and drops it: what a call costs before it does anything.
    pub fn instantiate(&self, limits: &CallLimits) -> CallReport<()> {
        let world = &self.world;
        let inert = self.inert(&"instantiate", 0);
        call::run(&self.engine, limits, limits.fuel(0), inert, |store| {
            world.instantiate(store)
        })
    }

    /// Asks for a ranking. The result is checked: every index exists and no candidate is named twice.
    pub fn select(
        &self,
        config: &str,
        limits: &CallLimits,
        input: &SelectionInput,
    ) -> CallReport<Selection> {
        self.select_among(config, limits, &input.context, &input.candidates)
    }

    pub(crate) fn select_among(
        &self,
        config: &str,
        limits: &CallLimits,
        context: &Context,
        candidates: &[Candidate],
    ) -> CallReport<Selection> {
        let World::Selection(pre) = &self.world else {
            return self.wrong_hook(Hook::InstanceSelection);
        };
        let fuel = match fuel(limits, candidates.len()) {
            Ok(fuel) => fuel,
            Err(error) => return CallReport::failed(error),
        };
        let inert = self.inert(&(config, context, candidates), context.as_of_unix_s);
        let report = call::run(&self.engine, limits, fuel, inert, |store| {
            let plugin = pre.instantiate(&mut *store)?;
            plugin
                .kerf_policy_instance_selection()
                .call_select(store, config, context, candidates)
        });
        report.and_then(|answer| Selection::check(&answer.map_err(guest_error)?, candidates))
    }

    /// Asks for prices. The result is checked: every index exists once, and prices stay near the list price.
    pub fn adjust(
        &self,
        config: &str,
        limits: &CallLimits,
        input: &PricingInput,
    ) -> CallReport<Vec<Adjustment>> {
        let PricingInput {
            context,
            candidates,
        } = input;
        let World::Pricing(pre) = &self.world else {
            return self.wrong_hook(Hook::PricingPreference);
        };
        let fuel = match fuel(limits, candidates.len()) {
            Ok(fuel) => fuel,
            Err(error) => return CallReport::failed(error),
        };
        let inert = self.inert(&(config, input), context.as_of_unix_s);
        let report = call::run(&self.engine, limits, fuel, inert, |store| {
            let plugin = pre.instantiate(&mut *store)?;
            plugin
                .kerf_policy_pricing_preference()
                .call_adjust(store, config, context, candidates)
        });
        report.and_then(|answer| pricing::check(answer.map_err(guest_error)?, candidates))
    }

    /// Asks for user data. The result is checked: its size, its headers, and that the host's parts are as they were.
    pub fn render(
        &self,
        config: &str,
        limits: &CallLimits,
        input: &BootstrapInput,
    ) -> CallReport<Vec<Part>> {
        let World::Bootstrap(pre) = &self.world else {
            return self.wrong_hook(Hook::BootstrapUserData);
        };
        let inert = self.inert(&(config, input), 0);
        let report = call::run(&self.engine, limits, limits.fuel(0), inert, |store| {
            let plugin = pre.instantiate(&mut *store)?;
            plugin.kerf_policy_bootstrap_userdata().call_render(
                store,
                config,
                &input.node,
                &input.parts,
            )
        });
        report.and_then(|answer| bootstrap::check(answer.map_err(guest_error)?, input))
    }

    /// The clock and the random numbers of a call that is about `question`; a hash of that only where somebody looks.
    fn inert(&self, question: &impl Hash, unix_secs: u32) -> Option<Inert> {
        inert(self.wasi, self.digest, question, unix_secs)
    }

    fn wrong_hook<T>(&self, asked: Hook) -> CallReport<T> {
        CallReport::failed(CallError::Unsupported(format!(
            "it was loaded for {}, not {asked}",
            self.hook
        )))
    }
}

fn fuel(limits: &CallLimits, candidates: usize) -> Result<u64, CallError> {
    if candidates > CANDIDATES_MAX {
        return Err(CallError::InputTooLarge {
            len: candidates,
            max: CANDIDATES_MAX,
        });
    }
    Ok(limits.fuel(candidates))
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("digest", &self.digest)
            .field("hook", &self.hook)
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}

fn inert(wasi: Wasi, digest: PolicyDigest, question: &impl Hash, unix_secs: u32) -> Option<Inert> {
    (wasi == Wasi::Inert).then(|| {
        // The keys of this hasher are the same in every process: replicas give a policy the same numbers.
        let mut hasher = DefaultHasher::new();
        (digest, question).hash(&mut hasher);
        Inert::new(hasher.finish(), unix_secs)
    })
}

fn describe(engine: &Engine, world: &World, inert: Option<Inert>) -> Result<Metadata, LoadError> {
    let limits = CallLimits::default().for_loading();
    let report = call::run(engine, &limits, limits.fuel(0), inert, |store| {
        world.describe(store)
    });
    parse_metadata(report.result.map_err(LoadError::Describe)?)
}

fn parse_metadata(raw: RawMetadata) -> Result<Metadata, LoadError> {
    let RawMetadata {
        name,
        version,
        summary,
        config_schema,
        default_config,
        time_step_s,
    } = raw;
    if name.is_empty() || version.is_empty() {
        return Err(LoadError::BadMetadata(
            "name and version must not be empty".into(),
        ));
    }
    let parse = |what: &str, text: &str| {
        serde_json::from_str(text)
            .map_err(|e| LoadError::BadMetadata(format!("{what} is not JSON: {e}")))
    };
    let config_schema = if config_schema.is_empty() {
        None
    } else {
        Some(parse("config-schema", &config_schema)?)
    };
    let default_config = if default_config.is_empty() {
        "{}"
    } else {
        &default_config
    };
    Ok(Metadata {
        name: shorten(&name),
        version: shorten(&version),
        summary: shorten(&summary),
        config_schema,
        default_config: parse("default-config", default_config)?,
        time_step_secs: time_step_s,
    })
}

fn guest_error(error: types::PolicyError) -> CallError {
    match error {
        types::PolicyError::InvalidConfig(message) => CallError::InvalidConfig(shorten(&message)),
        types::PolicyError::Unsupported(message) => CallError::Unsupported(shorten(&message)),
        types::PolicyError::Internal(message) => CallError::Internal(shorten(&message)),
    }
}
