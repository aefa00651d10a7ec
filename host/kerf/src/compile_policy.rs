//! `kerf compile-policy`: the process in which the controller compiles a component. Not for users.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use kerf_policy::{Artifacts, CompileLimits, Compiler};

use crate::exit;

const MIB: u64 = 1 << 20;

/// Arguments of `kerf compile-policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompilePolicy {
    /// Address space, in MiB.
    #[arg(long)]
    memory_mib: u64,
    /// Time on a processor, in seconds.
    #[arg(long)]
    cpu_secs: u64,
    /// Machine code, in MiB.
    #[arg(long)]
    code_mib: u64,
}

/// How this program compiles policies: by starting itself.
pub(crate) fn compiler(artifacts: Option<Artifacts>) -> Compiler {
    let limits = CompileLimits::default();
    let args = [
        "compile-policy".to_owned(),
        format!("--memory-mib={}", limits.memory_bytes / MIB),
        format!("--cpu-secs={}", limits.cpu.as_secs()),
        format!("--code-mib={}", limits.code_bytes / MIB),
    ];
    Compiler {
        // This very program, also when the file was replaced meanwhile.
        program: PathBuf::from("/proc/self/exe"),
        args: args.into(),
        limits,
        artifacts,
    }
}

/// Compiles what comes in. Its last words, without anything around them, are what users see in the status of the policy.
pub(crate) fn run(arguments: &CompilePolicy) -> ExitCode {
    match compile(arguments) {
        Ok(()) => ExitCode::from(exit::OK),
        Err(error) => {
            // Whoever does not listen sees the exit code.
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::from(exit::FAILED)
        }
    }
}

fn compile(arguments: &CompilePolicy) -> anyhow::Result<()> {
    let limits = CompileLimits {
        memory_bytes: arguments.memory_mib.saturating_mul(MIB),
        cpu: Duration::from_secs(arguments.cpu_secs),
        code_bytes: arguments.code_mib.saturating_mul(MIB),
        ..CompileLimits::default()
    };
    kerf_policy::limit_this_process(&limits).context("cannot set limits")?;
    let most = u64::try_from(kerf_policy::limits::COMPONENT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut component = Vec::new();
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut component)
        .context("cannot read the component")?;
    let code = kerf_policy::compile(&component).map_err(|error| anyhow!(error))?;
    std::io::stdout()
        .lock()
        .write_all(&code)
        .context("cannot write the machine code")
}
