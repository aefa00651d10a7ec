//! How a NodeClass uses a policy, and what became of it.

use crate::digest::PolicyDigest;
use crate::hook::Hook;
use crate::limits::CallLimits;
use crate::stage::Stage;
use crate::wasi::Wasi;
use std::collections::BTreeSet;

/// What a policy that gives no answer means for the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Decide without it. The default where a policy is a preference: capacity must not stop because of one.
    Ignore,
    /// Do not decide.
    Fail,
}

/// Whether an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It counts.
    Enforce,
    /// It is asked and compared, and nothing changes.
    Monitor,
}

/// One entry of `spec.policies` of a NodeClass, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySpec {
    pub name: String,
    pub hook: Hook,
    /// The only version that may be loaded, when there is a pin.
    pub digest: Option<PolicyDigest>,
    /// The source names its content by digest, as an artifact of a registry does: no other version can come of it.
    pub has_pinned_source: bool,
    /// Lower ones are asked earlier; equal ones by name.
    pub order: i32,
    /// `None` means the policy's own default.
    pub config: Option<serde_json::Value>,
    pub failure_policy: FailurePolicy,
    pub mode: Mode,
    pub limits: CallLimits,
    /// Empty means all.
    pub node_pools: BTreeSet<String>,
    pub wasi: Wasi,
    /// What came with the component: of its bytes before packing, as [`crate::PolicyKey`] reads it.
    pub signature: Option<Vec<u8>>,
}

impl PolicySpec {
    /// An entry that says no more than it must.
    pub fn new(name: &str, hook: Hook) -> Self {
        let failure_policy = match hook {
            Hook::InstanceSelection | Hook::PricingPreference => FailurePolicy::Ignore,
            Hook::BootstrapUserData => FailurePolicy::Fail,
        };
        Self {
            name: name.to_owned(),
            hook,
            digest: None,
            has_pinned_source: false,
            order: 0,
            config: None,
            failure_policy,
            mode: Mode::Enforce,
            limits: CallLimits::default(),
            node_pools: BTreeSet::new(),
            wasi: Wasi::None,
            signature: None,
        }
    }

    pub(crate) fn applies_to(&self, node_pool: &str) -> bool {
        self.node_pools.is_empty() || self.node_pools.contains(node_pool)
    }
}

/// Whether a version of the policy serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyState {
    /// The version that the NodeClass asks for is on its way; an older one may serve.
    Loading,
    /// The version that the NodeClass asks for serves.
    Ready,
    /// A newer version or configuration did not load; an older one serves.
    Stale,
    /// Nothing serves.
    Failed,
}

impl PolicyState {
    /// The name in the status of an ECSNodeClass.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loading => "Loading",
            Self::Ready => "Ready",
            Self::Stale => "Stale",
            Self::Failed => "Failed",
        }
    }
}

/// Whether a policy is asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// It is asked.
    Closed,
    /// It failed too often in a row and is left alone for a while.
    Open,
    /// The next question decides.
    HalfOpen,
}

impl CircuitState {
    /// The name in the status of an ECSNodeClass.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "Closed",
            Self::Open => "Open",
            Self::HalfOpen => "HalfOpen",
        }
    }
}

/// What one policy of a NodeClass is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyStatus {
    pub name: String,
    pub hook: Hook,
    /// Of the component that serves.
    pub digest: Option<PolicyDigest>,
    /// What the component calls its version.
    pub version: Option<String>,
    pub state: PolicyState,
    /// What the version that the NodeClass asks for does not reach; none when it serves.
    pub misses: Option<Stage>,
    /// Why it is not `Ready`, or how the last call failed; gone with the next success.
    pub last_error: Option<String>,
    pub circuit: CircuitState,
    pub counts: CallCounts,
}

/// How often a policy was asked, since its version took over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Questions that ran the component.
    pub calls: u64,
    /// Questions answered from memory.
    pub memo_hits: u64,
    /// Calls that gave no answer.
    pub failures: u64,
    /// Questions skipped because the circuit was open.
    pub skipped: u64,
    /// Answers in Monitor mode that would have changed something.
    pub would_change: u64,
}
