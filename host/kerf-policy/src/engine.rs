//! The one wasmtime engine of the process.

use crate::bindings::selection;
use crate::call::HostState;
use crate::compile::Compiler;
use crate::limits::STACK_BYTES_MAX;
use crate::ticker::{Ticker, Ticking};
use std::fmt;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker};

/// Compiles and runs policies. Cheap to clone; make one per process.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wasmtime: wasmtime::Engine,
    /// Offers `kerf:policy/log` and nothing else: what is not here cannot be called.
    linker: Linker<HostState>,
    compiler: Option<Arc<Compiler>>,
    ticker: Ticker,
}

/// The engine could not be made: our fault or the machine's, never a policy's.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration on this machine.
    #[error("configure the WebAssembly engine")]
    Configure(#[source] wasmtime::Error),
    /// The ticker thread could not be started.
    #[error("start the thread that ends overdue policy calls")]
    StartTicker(#[source] std::io::Error),
}

impl Engine {
    /// Makes the engine and starts its ticker thread, which ends when the last clone is dropped. It compiles in this process.
    pub fn new() -> Result<Self, EngineError> {
        Self::with_compiler(None)
    }

    /// The same, with a process of its own for compiling where there is a compiler.
    pub fn with_compiler(compiler: Option<Arc<Compiler>>) -> Result<Self, EngineError> {
        let wasmtime = wasmtime::Engine::new(&config()).map_err(EngineError::Configure)?;
        let mut linker = Linker::new(&wasmtime);
        selection::SelectionPlugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)
            .map_err(EngineError::Configure)?;
        let ticked = wasmtime.weak();
        let tick = move || {
            if let Some(engine) = ticked.upgrade() {
                engine.increment_epoch();
            }
        };
        let ticker = Ticker::start(tick).map_err(EngineError::StartTicker)?;
        Ok(Self {
            inner: Arc::new(Inner {
                wasmtime,
                linker,
                compiler,
                ticker,
            }),
        })
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    pub(crate) fn compiler(&self) -> Option<&Compiler> {
        self.inner.compiler.as_deref()
    }

    /// Overdue calls are ended from here to the end of the guard.
    pub(crate) fn during_call(&self) -> Ticking<'_> {
        self.inner.ticker.during_call()
    }

    pub(crate) fn linker(&self) -> &Linker<HostState> {
        &self.inner.linker
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// What machine code depends on, so it is the same in the process that compiles.
pub(crate) fn config() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        // Equal input, equal output on every machine.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // All of the contract's functions are synchronous.
        .concurrency_support(false);
    config
}
