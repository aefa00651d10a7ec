//! What policies did, in metrics and in the log.

use kerf_policy::{ChainError, PolicyRun, RunResult};

use crate::metrics::{Metrics, PolicyLabels};

/// Counts one question to one policy of a class, and passes on what the policy logged.
pub fn run(run: &PolicyRun, class: &str, metrics: &Metrics) {
    count(class, &run.policy, run.result.class(), metrics);
    if let RunResult::Failed(error) = &run.result {
        let elapsed_ms = run.elapsed.as_secs_f64() * 1e3;
        tracing::warn!(nodeclass = %class, policy = %run.policy, %error, elapsed_ms, "policy call failed");
    }
    for line in &run.log {
        tracing::info!(nodeclass = %class, policy = %run.policy, level = ?line.level, text = %line.text, "policy log");
    }
}

/// Counts the failure of a policy that had to answer.
pub fn stop(error: &ChainError, class: &str, metrics: &Metrics) {
    count(class, &error.policy, error.class, metrics);
}

fn count(class: &str, policy: &str, result: &str, metrics: &Metrics) {
    let labels = PolicyLabels {
        nodeclass: class.to_owned(),
        policy: policy.to_owned(),
        result: result.to_owned(),
    };
    metrics.policy_calls.get_or_create(&labels).inc();
}
