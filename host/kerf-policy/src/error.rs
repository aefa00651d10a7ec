//! What can be wrong with a policy: when it is loaded (`LoadError`) and when it is called (`CallError`).
//!
//! The messages end up in conditions and events of an ECSNodeClass, so each says what is wrong and what to do next.

use crate::digest::PolicyDigest;
use crate::hook::Hook;
use std::time::Duration;

/// Why bytes did not become a policy. Nothing of the earlier version is touched by any of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("the source is empty; put the component's bytes under the key that the policy names")]
    Empty,
    #[error(
        "the component has {bytes} bytes and the limit is {max}; strip it (wasm-tools strip) or use a smaller toolchain"
    )]
    TooLarge { bytes: usize, max: usize },
    #[error("this is not WebAssembly but {looks_like}; {next_step}")]
    NotWasm {
        looks_like: &'static str,
        next_step: &'static str,
    },
    #[error(
        "the packed component is damaged: {0}; pack it again, with `kerf plugin publish`, `zstd` or `gzip`"
    )]
    Packed(String),
    #[error(
        "this is a core WebAssembly module, not a component; run `cargo xtask plugins componentize` \
         or `wasm-tools component new` on it"
    )]
    CoreModule,
    #[error(
        "the component is damaged at byte {offset}: {detail}; copy the file again and compare its sha256"
    )]
    Malformed { offset: usize, detail: String },
    #[error(
        "the digest is {found}, but the policy demands {expected}; change spec.policies[].digest or restore the source"
    )]
    DigestMismatch {
        expected: PolicyDigest,
        found: PolicyDigest,
    },
    #[error("it imports {}, and a policy may import only kerf:policy/log; {next_step}", .imports.join(", "))]
    ForbiddenImports {
        imports: Vec<String>,
        next_step: &'static str,
    },
    #[error(
        "it was built for {found}, and this kerf speaks kerf:policy@0.1; rebuild it with the SDK of this release"
    )]
    UnknownVersion { found: String },
    #[error("it does not export {missing}, which hook {hook} calls; it exports {}", list_or_nothing(.exports))]
    MissingExport {
        hook: Hook,
        missing: &'static str,
        exports: Vec<String>,
    },
    #[error(
        "it could not be compiled: {0}; rebuild it, and report a bug if `wasm-tools validate` accepts it"
    )]
    Compile(String),
    #[error(
        "compiling it took more than {} s of a processor; split it, or build it with a smaller toolchain",
        .limit.as_secs()
    )]
    CompileCpu { limit: Duration },
    #[error("compiling it was not done after {} s; it is tried again", .limit.as_secs())]
    CompileSlow { limit: Duration },
    #[error(
        "compiling it took more than {} MiB of memory; split it, or build it with a smaller toolchain",
        .limit_bytes >> 20
    )]
    CompileMemory { limit_bytes: u64 },
    #[error(
        "its machine code has more than {} MiB; split it, or build it with a smaller toolchain",
        .limit_bytes >> 20
    )]
    CodeTooLarge { limit_bytes: u64 },
    #[error("the process that compiles it cannot be started: {0}; it is tried again")]
    StartCompiler(String),
    #[error("its machine code cannot be kept: {0}; give the folder --policy-cache-dir more room")]
    KeepCode(String),
    #[error(
        "its functions have other types than kerf:policy@0.1: {0}; rebuild it with wit/ of this release"
    )]
    WrongTypes(String),
    #[error(
        "it writes what runs as root on every node, so the NodeClass must name the version that was reviewed; \
         set spec.policies[].digest to {found} if that is this one, or sign it with a key that the controller was given"
    )]
    Unpinned { found: PolicyDigest },
    #[error(
        "its signature cannot be read: {0}; write it with `cosign sign-blob --key` or `openssl pkeyutl -sign -rawin`"
    )]
    BadSignature(&'static str),
    #[error(
        "its signature is not of {found} by any of the {keys} keys that the controller was given; sign the component as \
         it was built, before packing, or give the controller the key (--policy-key-dir)"
    )]
    UntrustedSignature { found: PolicyDigest, keys: usize },
    #[error("its describe function {0}")]
    Describe(#[source] CallError),
    #[error("its description cannot be used: {0}")]
    BadMetadata(String),
    #[error("its configuration is refused: {0}")]
    Config(String),
    #[error("its validate-config function {0}")]
    Validate(#[source] CallError),
    #[error("in a trial call it {0}")]
    Smoke(#[source] CallError),
}

/// Why one call of a policy gave no answer. The policy keeps being loaded; the failure policy says what follows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("used up its {limit} units of fuel; do less work per candidate or raise limits.fuel")]
    Fuel { limit: u64 },
    #[error("did not answer within {} ms; do less work or raise limits.timeout", .limit.as_millis())]
    Deadline { limit: Duration },
    #[error("needed more than {} KiB of memory; use less or raise limits.memoryMib", .limit_bytes / 1024)]
    Memory { limit_bytes: usize },
    #[error("crashed: {}{}", .message.as_deref().unwrap_or(.trap), frames_text(.frames))]
    Trap {
        /// What the machine saw, such as `wasm trap: wasm unreachable instruction executed`.
        trap: String,
        /// What the guest said at level error; SDKs put the panic message there.
        message: Option<String>,
        /// Function names, innermost first.
        frames: Vec<String>,
    },
    #[error("returned more than {limit_bytes} bytes; return fewer or shorter reasons")]
    OutputTooLarge { limit_bytes: usize },
    #[error("returned data that cannot be read: {0}")]
    BadOutput(String),
    #[error(
        "returned {what} {index}, but there are only {len}; results are indexes into the input"
    )]
    BadIndex {
        what: &'static str,
        index: u32,
        len: usize,
    },
    #[error("returned candidate {index} twice; rank or exclude each one once")]
    Duplicate { index: u32 },
    #[error("returned user data with {0}; change what the policy returns")]
    BadUserData(String),
    #[error("was asked about {len} candidates and the limit is {max}")]
    InputTooLarge { len: usize, max: usize },
    #[error("refuses its configuration: {0}")]
    InvalidConfig(String),
    #[error("does not support this: {0}")]
    Unsupported(String),
    #[error("reports an error: {0}")]
    Internal(String),
    #[error("could not be started: {0}")]
    Instantiate(String),
}

impl LoadError {
    /// Whether the same bytes may load another time, because the machine had a part in the failure.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::CompileSlow { .. } | Self::StartCompiler(_) | Self::KeepCode(_) => true,
            Self::Describe(error) | Self::Validate(error) | Self::Smoke(error) => {
                matches!(error, CallError::Deadline { .. })
            }
            _ => false,
        }
    }
}

impl CallError {
    /// The name of the kind, for metrics; never the message.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fuel { .. } => "fuel",
            Self::Deadline { .. } => "timeout",
            Self::Memory { .. } => "memory",
            Self::Trap { .. } => "trap",
            Self::OutputTooLarge { .. }
            | Self::BadOutput(_)
            | Self::BadIndex { .. }
            | Self::BadUserData(_)
            | Self::Duplicate { .. } => "bad_output",
            Self::InputTooLarge { .. } => "input",
            Self::InvalidConfig(_) => "config",
            Self::Unsupported(_) => "unsupported",
            Self::Internal(_) => "guest_error",
            Self::Instantiate(_) => "instantiate",
        }
    }
}

fn list_or_nothing(names: &[String]) -> String {
    if names.is_empty() {
        "nothing".into()
    } else {
        names.join(", ")
    }
}

fn frames_text(frames: &[String]) -> String {
    if frames.is_empty() {
        String::new()
    } else {
        format!(" (in {})", frames.join(" < "))
    }
}
