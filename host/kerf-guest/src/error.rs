//! Why a policy was not built. Each message names the file or the tool and the next step.

use std::path::PathBuf;
use std::process::ExitStatus;

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {}", .path.display())]
    File {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The manifest cannot be used.
    #[error("{}: {problem}", .path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong and what to write.
        problem: String,
    },
    /// A program is not there.
    #[error("{tool} is not there; {hint}")]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// How to get it.
        hint: &'static str,
    },
    /// A program ended with an error.
    #[error("`{command}` failed ({status}):\n{output}")]
    ToolFailed {
        /// The whole command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// The core module uses something of WASI that a policy does not get.
    #[error(
        "the policy uses {function} of WASI: a policy has no files, network or processes; take what it needs from its \
         input or its config"
    )]
    Wasi {
        /// The function of wasi_snapshot_preview1.
        function: String,
    },
    /// The core module does not fit the contract.
    #[error(
        "cannot make a component: {0}; does it export the functions of its hook, and was it built with this SDK?"
    )]
    Encode(String),
}
