//! Every limit of the policy host, with the reason for its number. Measured use is in docs/policies.md.

use std::time::Duration;

/// The clock of the epoch ticker. A call is killed at the first tick after its time-out, so this is also the precision.
pub const TICK: Duration = Duration::from_millis(5);

/// A component as it was built. Python guests are 18.5 MB; nothing honest is larger.
pub const COMPONENT_BYTES_MAX: usize = 32 << 20;

/// The configuration of one policy, as JSON text. It travels with every call and lives in an ECSNodeClass.
pub const CONFIG_BYTES_MAX: usize = 256 << 10;

/// Candidates in one call; Alibaba has fewer than 1,000 instance types.
pub const CANDIDATES_MAX: usize = 5_000;

/// One reason or message from a guest, in characters; it ends in a condition or an event.
pub const MESSAGE_CHARS_MAX: usize = 512;

/// Log lines that one call may write; what comes after is counted.
pub const LOG_LINES_MAX: usize = 64;
/// Characters of one log line, fields included.
pub const LOG_LINE_CHARS_MAX: usize = 1_024;

/// QuickJS guests use 3 memories, so 1 would break them.
pub(crate) const MEMORIES_MAX: usize = 4;
/// Composed components have a table per module.
pub(crate) const TABLES_MAX: usize = 16;
/// Core and component instances in a store.
pub(crate) const INSTANCES_MAX: usize = 64;
/// StarlingMonkey needs 7,689 elements.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// kerf hands out no resources, so live handles are always a leak.
pub(crate) const HANDLES_MAX: usize = 1_024;
/// Random bytes that `wasi: Inert` gives at once: a runtime seeds its hash tables with 8 to 64.
pub(crate) const RANDOM_BYTES_MAX: u64 = 4_096;
/// The stack of a guest; the default of wasmtime, written down because it is part of the contract.
pub(crate) const STACK_BYTES_MAX: usize = 512 << 10;

/// What one call may use. `Default` is what a policy gets that asks for nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// Wall time; the safety net behind `fuel`, because it depends on the machine.
    pub timeout: Duration,
    /// Linear memory of all modules together.
    pub memory_bytes: usize,
    /// Instructions, roughly, before the part that grows with the input.
    pub fuel_base: u64,
    /// More instructions for each candidate.
    pub fuel_per_candidate: u64,
    /// Bytes that the guest may hand to the host: result and log lines.
    pub output_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            // A Rust policy takes 0.2 ms for 300 candidates, QuickJS 5 ms, Python 10 ms.
            timeout: Duration::from_millis(200),
            // Python starts at 12.4 MiB, Rust at 1.1.
            memory_bytes: 64 << 20,
            // At 1,000 candidates Rust uses 2 M, QuickJS and Python 215 M.
            fuel_base: 50_000_000,
            fuel_per_candidate: 200_000,
            // 1,000 candidates, all excluded offering by offering with a reason, are 0.6 MB.
            output_bytes: 4 << 20,
        }
    }
}

impl CallLimits {
    /// The most that a NodeClass may ask for.
    pub const MAX: Self = Self {
        timeout: Duration::from_secs(2),
        memory_bytes: 256 << 20,
        fuel_base: 4_000_000_000,
        fuel_per_candidate: 4_000_000,
        output_bytes: 16 << 20,
    };

    /// These limits, none of them above `MAX` and none of them zero.
    pub fn clamped(&self) -> Self {
        let max = Self::MAX;
        Self {
            timeout: self.timeout.clamp(TICK, max.timeout),
            memory_bytes: self.memory_bytes.clamp(64 << 10, max.memory_bytes),
            fuel_base: self.fuel_base.clamp(1, max.fuel_base),
            fuel_per_candidate: self.fuel_per_candidate.min(max.fuel_per_candidate),
            output_bytes: self.output_bytes.clamp(1 << 10, max.output_bytes),
        }
    }

    /// The fuel of a call with this many candidates.
    pub fn fuel(&self, candidates: usize) -> u64 {
        let candidates = u64::try_from(candidates).unwrap_or(u64::MAX);
        self.fuel_base
            .saturating_add(self.fuel_per_candidate.saturating_mul(candidates))
    }

    /// For `describe`, `validate-config` and the smoke call, which run once and off the path of pods.
    pub(crate) fn for_loading(&self) -> Self {
        // Interpreters start cold here: 80 to 1,000 microseconds to instantiate, more on a busy machine.
        const LOADING_TIMEOUT: Duration = Duration::from_secs(1);
        Self {
            timeout: self.timeout.max(LOADING_TIMEOUT),
            ..self.clone()
        }
    }
}
