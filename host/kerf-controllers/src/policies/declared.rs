//! From an entry of `spec.policies` to the host's words.

use std::collections::BTreeSet;
use std::time::Duration;

use kerf_api::ecsnodeclass::Policy;
use kerf_api::ecsnodeclass::policy as api;
use kerf_policy::{CallLimits, FailurePolicy, Hook, Mode, PolicySpec, Wasi};

/// Bytes of a MiB and a KiB.
const MIB: usize = 1 << 20;
const KIB: usize = 1 << 10;

/// The entry, and what is wrong with it. What is readable counts even then: a policy that must not be passed over
/// (failurePolicy Fail) is not passed over because its digest cannot be read.
#[must_use]
pub fn spec(policy: &Policy) -> (PolicySpec, Option<String>) {
    let hook: Result<Hook, _> = policy.hook.as_str().parse();
    let digest = policy.digest.as_deref().map(str::parse).transpose();
    let problem = match (&hook, &digest) {
        (Err(error), _) => Some(error.to_string()),
        (Ok(_), Err(error)) => Some(format!("digest: {error}")),
        (Ok(_), Ok(_)) => None,
    };
    let hook = hook.unwrap_or(Hook::InstanceSelection);
    let spec = PolicySpec {
        digest: digest.ok().flatten(),
        // A registry is only asked for what a digest names.
        has_pinned_source: policy.source.oci.is_some(),
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
        wasi: match policy.wasi {
            api::PolicyWasi::Inert => Wasi::Inert,
            api::PolicyWasi::None | api::PolicyWasi::Other(_) => Wasi::None,
        },
        node_pools: policy.node_pools.iter().cloned().collect::<BTreeSet<_>>(),
        ..PolicySpec::new(&policy.name, hook)
    };
    (spec, problem)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_must_answer_is_not_passed_over_because_its_digest_cannot_be_read() {
        let policy: Policy = serde_json::from_value(serde_json::json!({
            "name": "tuning",
            "hook": "BootstrapUserData",
            "source": {"path": "/policies/tuning.wasm"},
            "digest": "sha256:short",
        }))
        .unwrap();

        let (spec, problem) = spec(&policy);

        assert_eq!(spec.hook, Hook::BootstrapUserData);
        assert_eq!(spec.failure_policy, FailurePolicy::Fail);
        assert!(problem.unwrap().contains("sha256: and 64 hex digits"));
    }
}
