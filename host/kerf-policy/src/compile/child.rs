//! The process that compiles: its limits, what it is given, and what is said when it does not come back well.

use super::Compiler;
use crate::call::shorten;
use crate::error::LoadError;
use nix::sys::resource::{Resource, setrlimit};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Of what the process says, as much as a message can show.
const WORDS_MAX: u64 = 8 << 10;
/// Signals, by the number that Linux gives them everywhere.
const SIGABRT: i32 = 6;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// How the allocator of Rust says that it got no memory, before the process aborts.
const NO_MEMORY: &str = "memory allocation of";

/// What compiling one component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Of the address space of the process.
    pub memory_bytes: u64,
    /// Time on a processor.
    pub cpu: Duration,
    /// Of the machine code.
    pub code_bytes: u64,
    /// Until it is killed, however little it did.
    pub wall: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            // Python, the largest guest there is, takes 600 MiB.
            memory_bytes: 1 << 30,
            // Python takes 15 s of a slow core.
            cpu: Duration::from_secs(60),
            // Python becomes 60 MB.
            code_bytes: 96 << 20,
            wall: Duration::from_secs(180),
        }
    }
}

/// Gives this process the limits, for good. For the process that compiles, before it reads anything.
pub fn limit_this_process(limits: &CompileLimits) -> io::Result<()> {
    let cpu_secs = limits.cpu.as_secs().max(1);
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_AS, limits.memory_bytes),
        (Resource::RLIMIT_FSIZE, limits.code_bytes),
        (Resource::RLIMIT_CPU, cpu_secs),
    ] {
        setrlimit(resource, most, most)?;
    }
    // Where memory runs out all the same, this process goes and not the one that started it. Some kernels forbid it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// Compiles into a file.
pub(super) fn into_file(
    compiler: &Compiler,
    component: &[u8],
    file: File,
) -> Result<(), LoadError> {
    run(compiler, component, file.into()).map(drop)
}

/// Compiles, and takes the machine code from a pipe.
pub(super) fn into_memory(compiler: &Compiler, component: &[u8]) -> Result<Vec<u8>, LoadError> {
    run(compiler, component, Stdio::piped())
}

fn run(compiler: &Compiler, component: &[u8], output: Stdio) -> Result<Vec<u8>, LoadError> {
    let mut child = Command::new(&compiler.program)
        .args(&compiler.args)
        // Credentials are in the environment of the controller.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(&error))?;
    let limits = &compiler.limits;
    let (input, output, words) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        // A process that does not read all of it says why itself.
        scope.spawn(move || input.map(|mut input| input.write_all(component)));
        let code = scope.spawn(move || read(output, limits.code_bytes));
        let words = scope.spawn(move || {
            let words = read(words, WORDS_MAX);
            drop(done);
            words
        });
        // The error output closes when the process ends, in whatever way.
        let is_late = is_done.recv_timeout(limits.wall) == Err(RecvTimeoutError::Timeout);
        let status = end(&mut child, is_late).map_err(|error| cannot_start(&error))?;
        let words = words.join().unwrap_or_default();
        let code = code.join().unwrap_or_default();
        if is_late {
            return Err(LoadError::CompileSlow { limit: limits.wall });
        }
        problem(status, &String::from_utf8_lossy(&words), limits).map_or(Ok(code), Err)
    })
}

fn end(child: &mut Child, is_late: bool) -> io::Result<ExitStatus> {
    if is_late {
        child.kill()?;
    }
    child.wait()
}

fn read(from: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What is cut off is no machine code, and loading finds that.
        let _ = from.take(most).read_to_end(&mut bytes);
    }
    bytes
}

fn problem(status: ExitStatus, words: &str, limits: &CompileLimits) -> Option<LoadError> {
    if status.success() {
        return None;
    }
    let words = words.trim();
    let is_out_of_memory = words.contains(NO_MEMORY);
    Some(match status.signal() {
        Some(SIGXCPU) => LoadError::CompileCpu { limit: limits.cpu },
        Some(SIGXFSZ) => LoadError::CodeTooLarge {
            limit_bytes: limits.code_bytes,
        },
        Some(SIGABRT) if is_out_of_memory => LoadError::CompileMemory {
            limit_bytes: limits.memory_bytes,
        },
        Some(signal) => {
            let message = format!("the compiler was ended by signal {signal}: {words}");
            LoadError::Compile(shorten(&message))
        }
        None => LoadError::Compile(shorten(words)),
    })
}

fn cannot_start(error: &io::Error) -> LoadError {
    LoadError::StartCompiler(error.to_string())
}
