//! Policies: from `spec.policies` and ConfigMaps into the host, and back into the status.
//!
//! Compiling happens on a thread that may block; whatever fails, the version that served goes on serving.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::policy::{self as api, POLICY_KEY_DEFAULT};
use kerf_api::ecsnodeclass::status::{self, PolicyCircuit};
use kerf_api::ecsnodeclass::{EcsNodeClass, Policy};
use kerf_api::names::{event, label};
use kerf_policy::{
    CallLimits, CircuitState, Engine, FailurePolicy, Hook, Mode, PolicySpec, PolicyState,
    PolicyStatus, Registry,
};
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::context::Context;

/// Bytes of a MiB and a KiB.
const MIB: usize = 1 << 20;
const KIB: usize = 1 << 10;

/// The policies of all classes of this process.
#[derive(Debug)]
pub struct Policies {
    registry: Arc<Registry>,
}

impl Policies {
    /// Starts the host.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly.
    pub fn start() -> Result<Self, String> {
        let engine = Engine::new().map_err(|error| crate::error::chain(&error))?;
        Ok(Self {
            registry: Arc::new(Registry::new(engine)),
        })
    }

    /// Where decisions find the policies.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Forgets the policies of a class that was deleted.
    pub fn remove(&self, class: &str) {
        self.registry.remove(class);
    }

    /// Brings the host to what the class declares; returns what to write into the status. Never fails: what does not
    /// load is in the answer.
    pub async fn sync(&self, class: &EcsNodeClass, context: &Context) -> Vec<status::PolicyStatus> {
        let name = class.name_any();
        let before = self.registry.statuses(&name, Instant::now());
        let wanted: Vec<(PolicySpec, Result<Vec<u8>, String>)> = class
            .spec
            .policies
            .iter()
            .map(|policy| declared(policy, context))
            .collect();
        let registry = Arc::clone(&self.registry);
        let class_name = name.clone();
        let synced =
            tokio::task::spawn_blocking(move || update(&registry, &class_name, wanted)).await;
        if let Err(error) = synced {
            tracing::error!(nodeclass = %name, %error, "the policy host died while it loaded a policy; what served before serves");
        }
        let after = self.registry.statuses(&name, Instant::now());
        announce(class, &before, &after, context).await;
        let served = class
            .status
            .as_ref()
            .map_or(&[][..], |status| &status.policies);
        after.iter().map(|it| to_status(it, served)).collect()
    }
}

fn update(registry: &Registry, class: &str, wanted: Vec<(PolicySpec, Result<Vec<u8>, String>)>) {
    let names: Vec<String> = wanted.iter().map(|(spec, _)| spec.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    registry.retain(class, &names);
    for (spec, source) in wanted {
        match source {
            // The error is in the registry's status, where the caller reads it.
            Ok(bytes) => drop(registry.update(class, spec, &bytes)),
            Err(reason) => registry.fail(class, spec, &reason),
        }
    }
}

/// A declared policy with its bytes, or why there are none.
fn declared(policy: &Policy, context: &Context) -> (PolicySpec, Result<Vec<u8>, String>) {
    match spec(policy) {
        Ok(spec) => (spec, source(policy, context)),
        Err(message) => (
            PolicySpec::new(&policy.name, Hook::InstanceSelection),
            Err(message),
        ),
    }
}

/// What a declared policy asks of the host. Pure.
///
/// # Errors
/// When a field means nothing, or the hook is not served by this version.
pub fn spec(policy: &Policy) -> Result<PolicySpec, String> {
    let hook: Hook = policy
        .hook
        .as_str()
        .parse()
        .map_err(|error: kerf_policy::ParseHookError| error.to_string())?;
    if hook == Hook::BootstrapUserData {
        // Better refused than silently without effect.
        return Err(
            "hook BootstrapUserData is not served by this version yet; remove the policy"
                .to_owned(),
        );
    }
    let digest = policy.digest.as_deref().map(str::parse).transpose();
    let digest =
        digest.map_err(|error: kerf_policy::ParseDigestError| format!("digest: {error}"))?;
    Ok(PolicySpec {
        digest,
        order: policy.order,
        config: policy.config.clone(),
        failure_policy: match policy.effective_failure_policy() {
            api::FailurePolicy::Fail => FailurePolicy::Fail,
            api::FailurePolicy::Ignore | api::FailurePolicy::Other(_) => FailurePolicy::Ignore,
        },
        mode: match policy.mode {
            api::PolicyMode::Monitor => Mode::Monitor,
            api::PolicyMode::Enforce | api::PolicyMode::Other(_) => Mode::Enforce,
        },
        limits: policy.limits.as_ref().map(limits).unwrap_or_default(),
        node_pools: policy.node_pools.iter().cloned().collect::<BTreeSet<_>>(),
        ..PolicySpec::new(&policy.name, hook)
    })
}

fn limits(limits: &api::PolicyLimits) -> CallLimits {
    let mut wanted = CallLimits::default();
    let timeout = limits
        .timeout
        .as_ref()
        .and_then(|timeout| timeout.parse().ok().flatten());
    wanted.timeout = timeout
        .and_then(|it| Duration::try_from(it).ok())
        .unwrap_or(wanted.timeout);
    let size = |value: Option<i32>, unit: usize, default: usize| {
        value
            .and_then(|it| usize::try_from(it).ok())
            .map_or(default, |it| it.saturating_mul(unit))
    };
    wanted.memory_bytes = size(limits.memory_mib, MIB, wanted.memory_bytes);
    wanted.output_bytes = size(limits.output_kib, KIB, wanted.output_bytes);
    wanted.fuel_base = limits
        .fuel
        .and_then(|it| u64::try_from(it).ok())
        .unwrap_or(wanted.fuel_base);
    wanted.clamped()
}

/// The component's bytes.
fn source(policy: &Policy, context: &Context) -> Result<Vec<u8>, String> {
    if let Some(path) = &policy.source.path {
        return read_file(path, context.settings.policy_folder.as_deref());
    }
    let (config_maps, namespace) = (
        &context.stores.config_maps,
        context.settings.namespace.as_str(),
    );
    let Some(source) = &policy.source.config_map else {
        return Err("source: only configMap and path can be loaded by this version".to_owned());
    };
    if let Some(shards) = &source.shards {
        let mut joined = Vec::new();
        for shard in shards {
            joined.extend(read_key(&shard.name, &shard.key, config_maps, namespace)?);
        }
        return Ok(joined);
    }
    let name = source.name.as_deref().unwrap_or_default();
    read_key(
        name,
        source.key.as_deref().unwrap_or(POLICY_KEY_DEFAULT),
        config_maps,
        namespace,
    )
}

/// Only what lies in the operator's folder is read: who may edit an ECSNodeClass must not see our other files.
fn read_file(path: &str, folder: Option<&Path>) -> Result<Vec<u8>, String> {
    let Some(folder) = folder else {
        return Err(
            "source.path needs a controller that was started with --policy-folder".to_owned(),
        );
    };
    let inside = || {
        let (path, folder) = (
            Path::new(path).canonicalize().ok()?,
            folder.canonicalize().ok()?,
        );
        path.starts_with(folder).then_some(path)
    };
    let Some(inside) = inside() else {
        return Err(format!(
            "source.path {path} is no file in the policy folder {}",
            folder.display()
        ));
    };
    std::fs::read(&inside).map_err(|error| format!("cannot read {path}: {error}"))
}

fn read_key(
    name: &str,
    key: &str,
    config_maps: &Store<ConfigMap>,
    namespace: &str,
) -> Result<Vec<u8>, String> {
    let Some(config_map) = config_maps.get(&ObjectRef::new(name).within(namespace)) else {
        return Err(format!(
            "ConfigMap {namespace}/{name} is not there or lacks the label {}=true",
            label::POLICY
        ));
    };
    let bytes = config_map
        .binary_data
        .as_ref()
        .and_then(|data| data.get(key));
    bytes.map(|bytes| bytes.0.clone()).ok_or_else(|| {
        let keys: Vec<&str> = config_map
            .binary_data
            .iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .collect();
        format!("ConfigMap {namespace}/{name} has no binaryData key {key}; it has {keys:?}")
    })
}

/// One event when a version takes over or a load error is new.
async fn announce(
    class: &EcsNodeClass,
    before: &[PolicyStatus],
    after: &[PolicyStatus],
    context: &Context,
) {
    let mut is_changed = before.len() != after.len();
    for now in after {
        let then = before.iter().find(|it| it.name == now.name);
        if now.digest.is_some() && then.and_then(|it| it.digest) != now.digest {
            tell_loaded(class, &serves_note(now), context).await;
            is_changed = true;
        }
        if let Some(note) = failure_note(then, now) {
            tell_failed(class, &note, context).await;
        }
    }
    if is_changed {
        context.cluster.demand_changed();
    }
}

async fn tell_loaded(class: &EcsNodeClass, note: &str, context: &Context) {
    tracing::info!(nodeclass = %class.name_any(), "{note}");
    context
        .events
        .normal(class, event::POLICY_LOADED, note)
        .await;
}

async fn tell_failed(class: &EcsNodeClass, note: &str, context: &Context) {
    tracing::warn!(nodeclass = %class.name_any(), "{note}");
    context
        .events
        .warning(class, event::POLICY_LOAD_FAILED, note)
        .await;
}

fn serves_note(policy: &PolicyStatus) -> String {
    let version = policy.version.as_deref().unwrap_or_default();
    let digest = policy.digest.map(|it| it.to_string()).unwrap_or_default();
    format!("policy {} version {version} ({digest}) serves", policy.name)
}

/// What is wrong with a policy that does not serve as declared, if that is news.
fn failure_note(then: Option<&PolicyStatus>, now: &PolicyStatus) -> Option<String> {
    let is_news = then.is_none_or(|it| it.last_error != now.last_error);
    let error = now
        .last_error
        .as_ref()
        .filter(|_| is_news && now.state != PolicyState::Ready)?;
    let goes_on = if now.digest.is_some() {
        "; the version before goes on serving"
    } else {
        ""
    };
    Some(format!("policy {}: {error}{goes_on}", now.name))
}

fn to_status(policy: &PolicyStatus, before: &[status::PolicyStatus]) -> status::PolicyStatus {
    let digest = policy.digest.map(|it| it.to_string());
    let then = before
        .iter()
        .find(|it| it.name == policy.name && it.digest == digest);
    let loaded_at = then
        .and_then(|it| it.loaded_at)
        .unwrap_or_else(crate::clock::now);
    status::PolicyStatus {
        name: policy.name.clone(),
        loaded_at: digest
            .is_some()
            .then(|| kerf_api::time::whole_seconds(loaded_at)),
        digest,
        version: policy.version.clone(),
        state: status::PolicyState::from(policy.state.as_str()),
        last_error: policy.last_error.clone(),
        circuit: Some(match policy.circuit {
            CircuitState::Closed => PolicyCircuit::Closed,
            CircuitState::Open => PolicyCircuit::Open,
            CircuitState::HalfOpen => PolicyCircuit::HalfOpen,
        }),
    }
}
