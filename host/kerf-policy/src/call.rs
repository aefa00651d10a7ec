//! One call: a fresh store with its limits, the log that the guest may write, and what became of it.

use crate::bindings::selection::kerf::policy::{log, types};
use crate::engine::Engine;
use crate::error::CallError;
use crate::limits::{
    CallLimits, HANDLES_MAX, INSTANCES_MAX, LOG_LINE_CHARS_MAX, LOG_LINES_MAX, MEMORIES_MAX,
    MESSAGE_CHARS_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX,
};
use crate::wasi::Inert;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use wasmtime::{ResourceLimiter, Store, Trap, UpdateDeadline, WasmBacktrace};

/// Function names that a crash shows; the innermost ones tell the most.
const FRAMES_MAX: usize = 6;

/// A line that a policy wrote.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LogLine {
    pub level: log::Level,
    /// The message, then its fields as ` key=value`.
    pub text: String,
}

/// The answer of a call and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReport<T> {
    pub result: Result<T, CallError>,
    pub fuel: u64,
    pub elapsed: Duration,
    pub memory_bytes_max: usize,
    pub log: Vec<LogLine>,
    /// Lines above the limit.
    pub log_lines_dropped: u32,
}

impl<T> CallReport<T> {
    pub(crate) fn failed(error: CallError) -> Self {
        Self {
            result: Err(error),
            fuel: 0,
            elapsed: Duration::ZERO,
            memory_bytes_max: 0,
            log: Vec::new(),
            log_lines_dropped: 0,
        }
    }

    /// An answer that cost nothing.
    pub(crate) fn remembered(answer: T) -> Self {
        Self {
            result: Ok(answer),
            fuel: 0,
            elapsed: Duration::ZERO,
            memory_bytes_max: 0,
            log: Vec::new(),
            log_lines_dropped: 0,
        }
    }

    pub(crate) fn and_then<U>(self, f: impl FnOnce(T) -> Result<U, CallError>) -> CallReport<U> {
        let Self {
            result,
            fuel,
            elapsed,
            memory_bytes_max,
            log,
            log_lines_dropped,
        } = self;
        CallReport {
            result: result.and_then(f),
            fuel,
            elapsed,
            memory_bytes_max,
            log,
            log_lines_dropped,
        }
    }
}

/// What lives in the store of one call.
#[derive(Debug)]
pub(crate) struct HostState {
    memory_bytes: usize,
    memory_bytes_max: usize,
    memory_refused: bool,
    log: Vec<LogLine>,
    log_lines_dropped: u32,
    /// For a policy with `wasi: Inert`.
    inert: Option<Inert>,
}

#[derive(Debug, thiserror::Error)]
#[error("the call is overdue")]
struct Overdue;

/// Runs `body` in a new store with `fuel` and `limits`, and with a clock and random numbers where the policy has them, and
/// drops the store.
pub(crate) fn run<T>(
    engine: &Engine,
    limits: &CallLimits,
    fuel: u64,
    inert: Option<Inert>,
    body: impl FnOnce(&mut Store<HostState>) -> wasmtime::Result<T>,
) -> CallReport<T> {
    let started = Instant::now();
    let _ticking = engine.during_call();
    let mut store = new_store(engine.wasmtime(), limits, fuel, started);
    store.data_mut().inert = inert;
    let outcome = body(&mut store);
    let fuel_left = store.get_fuel().unwrap_or(0);
    let result = outcome.map_err(|error| classify(&error, store.data(), limits, fuel));
    let HostState {
        memory_bytes_max,
        log,
        log_lines_dropped,
        ..
    } = store.into_data();
    let fuel = fuel.saturating_sub(fuel_left);
    CallReport {
        result,
        fuel,
        elapsed: started.elapsed(),
        memory_bytes_max,
        log,
        log_lines_dropped,
    }
}

fn new_store(
    engine: &wasmtime::Engine,
    limits: &CallLimits,
    fuel: u64,
    started: Instant,
) -> Store<HostState> {
    let state = HostState {
        memory_bytes: limits.memory_bytes,
        memory_bytes_max: 0,
        memory_refused: false,
        log: Vec::new(),
        log_lines_dropped: 0,
        inert: None,
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_hostcall_fuel(limits.output_bytes);
    store.set_max_component_handles(HANDLES_MAX);
    // Cannot fail: the engine is configured with fuel. Without fuel the first instruction would trap, which is safe too.
    let _ = store.set_fuel(fuel);
    let timeout = limits.timeout;
    // The clock decides, not the number of ticks: a machine that stalls the ticker must not lengthen the call,
    // and ticks that come in a burst must not shorten it.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if started.elapsed() >= timeout {
            Err(Overdue.into())
        } else {
            Ok(UpdateDeadline::Continue(1))
        }
    });
    store
}

fn classify(
    error: &wasmtime::Error,
    state: &HostState,
    limits: &CallLimits,
    fuel: u64,
) -> CallError {
    if error.downcast_ref::<Overdue>().is_some() {
        return CallError::Deadline {
            limit: limits.timeout,
        };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => CallError::Fuel { limit: fuel },
        Some(_) if state.memory_refused => CallError::Memory {
            limit_bytes: limits.memory_bytes,
        },
        Some(trap) => CallError::Trap {
            trap: trap.to_string(),
            message: state.error_text(),
            frames: frames(error),
        },
        None if state.memory_refused => CallError::Memory {
            limit_bytes: limits.memory_bytes,
        },
        None if let Some(name) = missing_of_wasi(error) => CallError::Trap {
            trap: format!("it called {name}, and `wasi: Inert` has no files and no network"),
            message: state.error_text(),
            frames: frames(error),
        },
        None if is_output_limit(error) => CallError::OutputTooLarge {
            limit_bytes: limits.output_bytes,
        },
        None => CallError::BadOutput(shorten(&error.root_cause().to_string())),
    }
}

/// wasmtime 48 keeps this error's type to itself, so its name is all there is; a test fails when it changes.
fn is_output_limit(error: &wasmtime::Error) -> bool {
    format!("{:?}", error.root_cause()).contains("HostcallFuelExhausted")
        || error
            .root_cause()
            .to_string()
            .contains("fuel allocated for hostcalls")
}

/// The function that was called although nothing is behind it. wasmtime has no type for it either.
fn missing_of_wasi(error: &wasmtime::Error) -> Option<String> {
    let text = error.root_cause().to_string();
    let (name, _) = text.strip_prefix("unknown import: `")?.split_once('`')?;
    name.starts_with("wasi:").then(|| shorten(name))
}

fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return Vec::new();
    };
    backtrace
        .frames()
        .iter()
        .filter_map(|frame| frame.func_name())
        .take(FRAMES_MAX)
        .map(shorten)
        .collect()
}

/// At most `MESSAGE_CHARS_MAX` characters, on one line.
pub(crate) fn shorten(text: &str) -> String {
    clip(text, MESSAGE_CHARS_MAX)
}

fn clip(text: &str, chars_max: usize) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut chars = text.chars();
    let mut clipped: String = chars.by_ref().take(chars_max).map(printable).collect();
    if chars.next().is_some() {
        clipped.push('…');
    }
    clipped
}

impl HostState {
    pub(crate) fn inert(&mut self) -> wasmtime::Result<&mut Inert> {
        let inert = self.inert.as_mut();
        inert.ok_or_else(|| wasmtime::format_err!("the policy has no `wasi: Inert`"))
    }

    /// What the guest said at level error. A language runtime says it in many small pieces, so all of them count.
    fn error_text(&self) -> Option<String> {
        let is_error = |line: &&LogLine| line.level == log::Level::Error;
        let lines = self.log.iter().filter(is_error);
        let words: Vec<&str> = lines.flat_map(|it| it.text.split_whitespace()).collect();
        (!words.is_empty()).then(|| shorten(&words.join(" ")))
    }
}

impl types::Host for HostState {}

impl log::Host for HostState {
    fn enabled(&mut self, level: log::Level) -> wasmtime::Result<bool> {
        Ok(!matches!(level, log::Level::Trace) && self.log.len() < LOG_LINES_MAX)
    }

    fn emit(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        if self.log.len() >= LOG_LINES_MAX {
            self.log_lines_dropped = self.log_lines_dropped.saturating_add(1);
            return Ok(());
        }
        let mut text = message;
        for (key, value) in &fields {
            // Writing to a String cannot fail.
            let _ = write!(text, " {key}={value}");
        }
        self.log.push(LogLine {
            level,
            text: clip(&text, LOG_LINE_CHARS_MAX),
        });
        Ok(())
    }
}

impl ResourceLimiter for HostState {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let total = self.memory_bytes_max.saturating_add(more);
        let fits = total <= self.memory_bytes;
        if fits {
            self.memory_bytes_max = total;
        } else {
            self.memory_refused = true;
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}
