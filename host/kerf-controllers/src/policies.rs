//! Policies: from `spec.policies` and ConfigMaps into the host, and back into the status.
//!
//! Compiling happens on a thread that may block; whatever fails, the version that served goes on serving.

mod declared;
mod pulls;
pub mod report;
mod source;
mod user_data;

pub use declared::spec;

use std::sync::Arc;
use std::time::Instant;

use kerf_api::ecsnodeclass::status::{self, PolicyCircuit};
use kerf_api::ecsnodeclass::{EcsNodeClass, Policy};
use kerf_api::names::event;
use kerf_policy::{
    CircuitState, Engine, Listener, PolicySpec, PolicyState, PolicyStatus, Recorder, Registry,
    Stage,
};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::OnceCell;

use crate::context::Context;
use crate::reconciler::Trigger;
use crate::settings::Settings;
use pulls::{Found, Pulls};

/// The policies of all classes of this process.
#[derive(Debug)]
pub struct Policies {
    registry: Arc<Registry>,
    pulls: Pulls,
    /// Of the API server, such as 1.36; asked for when the first user data is written.
    kubernetes_version: Arc<OnceCell<String>>,
}

impl Policies {
    /// Starts the host. `trigger` is where to ask for a look at a class, one of whose policies begins to fail, answers again
    /// or has come from its registry.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly.
    pub fn start(settings: &Settings, trigger: Trigger<EcsNodeClass>) -> Result<Self, String> {
        let engine = Engine::with_compiler(settings.policy_compiler.clone())
            .map_err(|error| crate::error::chain(&error))?;
        let roots = settings.registry_roots.clone();
        let pulls = Pulls::new(roots, trigger.clone());
        let listener = Listener::new(move |class| trigger.send(&ObjectRef::new(class)));
        let mut registry = Registry::new(engine)
            .telling(listener)
            .trusting(settings.policy_keys.clone());
        if let Some(every) = settings.policy_record_every {
            registry = registry.recording(Arc::new(Recorder::new(every)));
        }
        Ok(Self {
            pulls,
            registry: Arc::new(registry),
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
        self.pulls.retain(class, &[]);
    }

    fn wanted(&self, class: &str, policy: &Policy, context: &Context) -> (PolicySpec, Source) {
        let (mut spec, problem) = declared::spec(policy);
        spec.signature = source::signature(policy, context);
        let source = match (problem, &policy.source.oci) {
            (Some(problem), _) => Source::Failed(problem),
            (None, Some(oci)) => {
                let name = (class, policy.name.as_str());
                Source::Pulled(self.pulls.look(name, oci, context, Instant::now()))
            }
            (None, None) => {
                source::bytes(policy, context).map_or_else(Source::Failed, Source::Bytes)
            }
        };
        (spec, source)
    }

    /// Brings the host to what the class declares; returns what to write into the status. Never fails: what does not
    /// load is in the answer.
    pub async fn sync(&self, class: &EcsNodeClass, context: &Context) -> Vec<status::PolicyStatus> {
        let name = class.name_any();
        let before = self.registry.statuses(&name, Instant::now());
        let wanted = class.spec.policies.iter();
        let wanted: Vec<(PolicySpec, Source)> = wanted
            .map(|policy| self.wanted(&name, policy, context))
            .collect();
        let pulled = wanted
            .iter()
            .filter(|(_, source)| matches!(source, Source::Pulled(_)));
        let pulled: Vec<&str> = pulled.map(|(spec, _)| spec.name.as_str()).collect();
        self.pulls.retain(&name, &pulled);
        let (registry, pulls) = (Arc::clone(&self.registry), self.pulls.clone());
        let class_name = name.clone();
        let update = move || update(&registry, &pulls, &class_name, wanted);
        let synced = tokio::task::spawn_blocking(update).await;
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

/// What there is of a component.
#[derive(Debug)]
enum Source {
    Bytes(Vec<u8>),
    Pulled(Found),
    Failed(String),
}

fn update(registry: &Registry, pulls: &Pulls, class: &str, wanted: Vec<(PolicySpec, Source)>) {
    let names: Vec<String> = wanted.iter().map(|(spec, _)| spec.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    registry.retain(class, &names);
    for (spec, source) in wanted {
        match source {
            // The error is in the registry's status, where the caller reads it.
            Source::Bytes(bytes) => drop(registry.update(class, spec, &bytes)),
            Source::Pulled(found) => take(registry, pulls, class, spec, found),
            Source::Failed(reason) => registry.fail(class, spec, &reason),
        }
    }
}

fn take(registry: &Registry, pulls: &Pulls, class: &str, spec: PolicySpec, found: Found) {
    match found {
        Found::Bytes(bytes) => {
            let name = spec.name.clone();
            let outcome = registry.update(class, spec, &bytes);
            // What a busy machine could not compile is tried again with the same bytes.
            if !outcome.is_err_and(|error| error.is_transient()) {
                pulls.taken(class, &name);
            }
        }
        Found::Known(source) if registry.renew(class, &spec, source) => {}
        Found::Known(_) => {
            pulls.forget(class, &spec.name);
            registry.wait(
                class,
                spec,
                "it is pulled again for what the entry asks now",
            );
        }
        Found::Coming(reason) => registry.wait(class, spec, &reason),
        Found::Failed(reason) => registry.fail(class, spec, &reason),
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
        .filter(|_| is_news && matches!(now.state, PolicyState::Stale | PolicyState::Failed))?;
    let goes_on = if now.digest.is_some() {
        "; the version before goes on serving"
    } else {
        ""
    };
    Some(format!("policy {}: {error}{goes_on}", now.name))
}

/// How far the declared version came.
fn stage(policy: &PolicyStatus) -> Option<Stage> {
    match policy.misses {
        Some(misses) => misses.before(),
        None => Some(Stage::Active),
    }
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
        stage: stage(policy).map(|it| status::PolicyStage::from(it.as_str())),
        last_error: policy.last_error.clone(),
        circuit: Some(match policy.circuit {
            CircuitState::Closed => PolicyCircuit::Closed,
            CircuitState::Open => PolicyCircuit::Open,
            CircuitState::HalfOpen => PolicyCircuit::HalfOpen,
        }),
    }
}
