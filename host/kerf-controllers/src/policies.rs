//! Policies: from `spec.policies` and ConfigMaps into the host, and back into the status.
//!
//! Compiling happens on a thread that may block; whatever fails, the version that served goes on serving.

mod declared;
pub mod report;
mod source;
mod user_data;

pub use declared::spec;

use std::sync::Arc;
use std::time::Instant;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::status::{self, PolicyCircuit};
use kerf_api::names::event;
use kerf_policy::{
    CircuitState, Compiler, Engine, Listener, PolicyKey, PolicySpec, PolicyState, PolicyStatus,
    Registry,
};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::OnceCell;

use crate::context::Context;
use crate::reconciler::Trigger;

/// The policies of all classes of this process.
#[derive(Debug)]
pub struct Policies {
    registry: Arc<Registry>,
    /// Of the API server, such as 1.36; asked for when the first user data is written.
    kubernetes_version: Arc<OnceCell<String>>,
}

impl Policies {
    /// Starts the host. What one of the `keys` signed needs no digest. `trigger` is where to ask for a look at a class, one of whose policies begins to fail or answers again.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly.
    pub fn start(
        compiler: Option<Arc<Compiler>>,
        keys: Vec<PolicyKey>,
        trigger: Trigger<EcsNodeClass>,
    ) -> Result<Self, String> {
        let engine =
            Engine::with_compiler(compiler).map_err(|error| crate::error::chain(&error))?;
        let listener = Listener::new(move |class| trigger.send(ObjectRef::new(class)));
        Ok(Self {
            registry: Arc::new(Registry::new(engine).telling(listener).trusting(keys)),
            kubernetes_version: Arc::default(),
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
        let wanted = class.spec.policies.iter().map(|policy| {
            let (mut spec, problem) = declared::spec(policy);
            spec.signature = source::signature(policy, context);
            let bytes = match problem {
                Some(problem) => Err(problem),
                None => source::bytes(policy, context),
            };
            (spec, bytes)
        });
        let wanted: Vec<(PolicySpec, Result<Vec<u8>, String>)> = wanted.collect();
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
