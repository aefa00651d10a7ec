//! The WebAssembly policy host: loads components that users wrote, asks them, and never trusts them.
//!
//! It knows nothing of Kubernetes or the cloud, and reads no clock but to end calls that are overdue.
//! Start at `registry` (what the controller talks to), then `policy` (one component), then `call` (one call).

mod bindings;
mod bootstrap;
mod call;
mod catalogs;
mod chain;
mod circuit;
mod code_pages;
mod compile;
mod digest;
mod engine;
mod error;
mod hook;
mod input;
mod inspect;
pub mod limits;
mod link;
mod listener;
mod memo;
mod pack;
mod policy;
mod pricing;
mod recorder;
mod registry;
mod schema;
mod seam;
mod selection;
mod signature;
mod smoke;
mod spec;
mod stage;
mod ticker;
mod view;
mod wasi;
mod world;

pub use bindings::selection::kerf::policy::log::Level as LogLevel;
pub use bootstrap::{BootstrapInput, Node, Part, Taint};
pub use call::{CallReport, LogLine};
pub use chain::{Chain, ChainError, Now, PolicyRun, PriceVerdict, RunResult, Verdict};
pub use code_pages::CodePages;
pub use compile::{
    Artifacts, CompileLimits, Compiler, OpenArtifactsError, compile, limit_this_process,
};
pub use digest::{ParseDigestError, PolicyDigest};
pub use engine::{Engine, EngineError};
pub use error::{CallError, LoadError};
pub use hook::{Hook, ParseHookError};
pub use inspect::{Interfaces, check, interfaces};
pub use limits::CallLimits;
pub use listener::Listener;
pub use pack::unpack;
pub use policy::{ConfigError, Metadata, Policy};
pub use pricing::{Adjustment, PricingContext, PricingInput};
pub use recorder::{Recorded, Recorder};
pub use registry::{Loaded, Registry};
pub use seam::{Consultation, Occasion, PriceConsultation, ROUNDS_MAX, consult, consult_prices};
pub use selection::{
    Candidate, Context, Demand, Exclusion, FleetEntry, Offering, Requirement, Resources, Selection,
    SelectionInput, Vocabulary,
};
pub use signature::{ParseKeyError, PolicyKey, verify as verify_signature};
pub use spec::{
    CallCounts, CircuitState, FailurePolicy, Mode, PolicySpec, PolicyState, PolicyStatus,
};
pub use stage::Stage;
pub use wasi::Wasi;
