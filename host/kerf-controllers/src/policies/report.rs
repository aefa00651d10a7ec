//! What policies did, in metrics, events and the log.

use std::sync::Arc;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::event;
use kerf_policy::{ChainError, PolicyRun, RunResult};
use kube::Resource;
use kube::runtime::events::EventType;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::context::Context;
use crate::events::Events;
use crate::metrics::{Metrics, PolicyLabels};

/// Where it is told. Nothing here waits, because policies are asked on threads that may block.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<Metrics>,
    events: Events,
    classes: Store<EcsNodeClass>,
}

impl Reporter {
    /// The one of this process.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        Self {
            metrics: Arc::clone(&context.metrics),
            events: context.events.clone(),
            classes: context.stores.node_classes.clone(),
        }
    }

    /// Counts one question to one policy of a class, says when it failed, and passes on what the policy logged.
    pub fn run(&self, run: &PolicyRun, class: &str) {
        self.count(class, &run.policy, run.result.class());
        if let RunResult::Failed(error) = &run.result {
            let elapsed_ms = run.elapsed.as_secs_f64() * 1e3;
            tracing::warn!(nodeclass = %class, policy = %run.policy, %error, elapsed_ms, "policy call failed");
            self.warn(
                class,
                &format!("policy {} gave no answer: {error}", run.policy),
            );
        }
        for line in &run.log {
            tracing::info!(nodeclass = %class, policy = %run.policy, level = ?line.level, text = %line.text, "policy log");
        }
    }

    /// Counts the failure of a policy that had to answer, and says it.
    pub fn stop(&self, error: &ChainError, class: &str) {
        self.count(class, &error.policy, error.class);
        self.warn(class, &error.to_string());
    }

    fn warn(&self, class: &str, note: &str) {
        if let Some(class) = self.classes.get(&ObjectRef::new(class)) {
            let object = class.object_ref(&());
            self.events
                .offer(EventType::Warning, &object, event::POLICY_CALL_FAILED, note);
        }
    }

    fn count(&self, class: &str, policy: &str, result: &str) {
        let labels = PolicyLabels {
            nodeclass: class.to_owned(),
            policy: policy.to_owned(),
            result: result.to_owned(),
        };
        self.metrics.policy_calls.get_or_create(&labels).inc();
    }
}
