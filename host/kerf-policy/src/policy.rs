//! A policy that was checked and compiled, and the functions of its contract.

use crate::bindings::selection::exports::kerf::policy::instance_selection::Selection as RawSelection;
use crate::bindings::selection::exports::kerf::policy::lifecycle;
use crate::bindings::selection::kerf::policy::types;
use crate::bindings::selection::{SelectionPlugin, SelectionPluginPre};
use crate::call::{self, CallReport, HostState, shorten};
use crate::digest::PolicyDigest;
use crate::engine::Engine;
use crate::error::{CallError, LoadError};
use crate::hook::Hook;
use crate::inspect;
use crate::limits::{CANDIDATES_MAX, CONFIG_BYTES_MAX, CallLimits};
use crate::schema;
use crate::selection::{Selection, SelectionInput};
use std::fmt;
use wasmtime::Store;
use wasmtime::component::Component;

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
    pre: SelectionPluginPre<HostState>,
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
        let digest = PolicyDigest::of(bytes);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(LoadError::DigestMismatch {
                expected,
                found: digest,
            });
        }
        inspect::check(bytes, hook)?;
        let component = Component::from_binary(engine.wasmtime(), bytes)
            .map_err(|error| LoadError::Compile(shorten(&format!("{error:#}"))))?;
        let wrong_types =
            |error: wasmtime::Error| LoadError::WrongTypes(shorten(&format!("{error:#}")));
        let pre = engine
            .linker()
            .instantiate_pre(&component)
            .map_err(wrong_types)?;
        let pre = SelectionPluginPre::new(pre).map_err(wrong_types)?;
        let metadata = describe(engine, &pre)?;
        Ok(Self {
            engine: engine.clone(),
            digest,
            hook,
            metadata,
            pre,
        })
    }

    pub fn digest(&self) -> PolicyDigest {
        self.digest
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
        let report = self.call(&limits, limits.fuel(0), |plugin, store| {
            plugin
                .kerf_policy_lifecycle()
                .call_validate_config(store, config)
        });
        let errors = report.result?.err().unwrap_or_default();
        Ok(errors
            .into_iter()
            .map(|e| ConfigError {
                path: shorten(&e.path),
                message: shorten(&e.message),
            })
            .collect())
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

    /// Asks for a ranking. The result is checked: every index exists and no candidate is named twice.
    pub fn select(
        &self,
        config: &str,
        limits: &CallLimits,
        input: &SelectionInput,
    ) -> CallReport<Selection> {
        let len = input.candidates.len();
        if len > CANDIDATES_MAX {
            return CallReport::failed(CallError::InputTooLarge {
                len,
                max: CANDIDATES_MAX,
            });
        }
        let report = self.call(limits, limits.fuel(len), |plugin, store| {
            plugin.kerf_policy_instance_selection().call_select(
                store,
                config,
                &input.context,
                &input.candidates,
            )
        });
        report.and_then(|result: Result<RawSelection, types::PolicyError>| {
            Selection::check(&result.map_err(guest_error)?, &input.candidates)
        })
    }

    fn call<T>(
        &self,
        limits: &CallLimits,
        fuel: u64,
        body: impl FnOnce(&SelectionPlugin, &mut Store<HostState>) -> wasmtime::Result<T>,
    ) -> CallReport<T> {
        call_pre(&self.engine, &self.pre, limits, fuel, body)
    }
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

fn call_pre<T>(
    engine: &Engine,
    pre: &SelectionPluginPre<HostState>,
    limits: &CallLimits,
    fuel: u64,
    body: impl FnOnce(&SelectionPlugin, &mut Store<HostState>) -> wasmtime::Result<T>,
) -> CallReport<T> {
    call::run(engine.wasmtime(), limits, fuel, |store| {
        let plugin = pre.instantiate(&mut *store)?;
        body(&plugin, store)
    })
}

fn describe(engine: &Engine, pre: &SelectionPluginPre<HostState>) -> Result<Metadata, LoadError> {
    let limits = CallLimits::default().for_loading();
    let report = call_pre(engine, pre, &limits, limits.fuel(0), |plugin, store| {
        plugin.kerf_policy_lifecycle().call_describe(store)
    });
    parse_metadata(report.result.map_err(LoadError::Describe)?)
}

fn parse_metadata(raw: lifecycle::Metadata) -> Result<Metadata, LoadError> {
    let lifecycle::Metadata {
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
