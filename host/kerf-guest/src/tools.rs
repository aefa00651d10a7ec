//! Finds the programs that build policies, and says how to get those that are missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::BuildError;
use crate::manifest::Language;

/// Folders of installed tools in the folder of a policy or above it, as npm and venv make them.
const LOCAL: [&str; 2] = ["node_modules/.bin", ".venv/bin"];
/// How far above a policy such folders are looked for.
const LEVELS_MAX: usize = 4;
/// The end of what a failing tool printed, in lines: compilers say the first error last or within this.
const OUTPUT_LINES_MAX: usize = 40;

/// Where to look for programs, before the folder of the policy and PATH.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// Looked at first.
    pub folders: Vec<PathBuf>,
    /// Set for each program, such as a cache folder.
    pub environment: Vec<(String, PathBuf)>,
}

/// A program that a language needs.
#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    /// What is needed, in words.
    pub tool: &'static str,
    /// Names of the program; one of them is enough.
    pub names: &'static [&'static str],
    /// How to get it.
    pub hint: &'static str,
}

/// What building in a language needs.
#[must_use]
pub fn requirements(language: Language) -> &'static [Requirement] {
    match language {
        Language::Rust => &[Requirement {
            tool: "cargo",
            names: &["cargo"],
            hint: "install Rust by https://rustup.rs, then `rustup target add wasm32-unknown-unknown`",
        }],
        Language::JavaScript => &[Requirement {
            tool: "componentize-qjs",
            names: &["componentize-qjs"],
            hint: "run `npm install` in the folder of the policy (Node.js 20 or newer)",
        }],
        Language::Python => &[Requirement {
            tool: "componentize-py",
            names: &["componentize-py"],
            hint: "run `python3 -m venv .venv && .venv/bin/pip install -r kerf-sdk/requirements.txt` in the folder of the policy",
        }],
        Language::Go => &[Requirement {
            tool: "go",
            names: &["go"],
            hint: "install Go 1.25 or newer by https://go.dev/dl",
        }],
        Language::C => &[Requirement {
            tool: "zig cc",
            names: &["python-zig", "zig"],
            hint: "run `python3 -m venv .venv && .venv/bin/pip install ziglang` in the folder of the policy, or install zig",
        }],
    }
}

impl Tools {
    /// Whether a program is there for a policy in `folder`.
    #[must_use]
    pub fn has(&self, tool: &Requirement, folder: &Path) -> bool {
        self.find(tool, folder).is_ok()
    }

    /// The path of a program for a policy in `folder`.
    pub(crate) fn find(&self, tool: &Requirement, folder: &Path) -> Result<PathBuf, BuildError> {
        let local = folder
            .ancestors()
            .take(LEVELS_MAX)
            .flat_map(|above| LOCAL.map(|it| above.join(it)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = self
            .folders
            .iter()
            .cloned()
            .chain(local)
            .chain(std::env::split_paths(&path))
            .collect();
        let found = folders
            .iter()
            .flat_map(|folder| tool.names.iter().map(|name| folder.join(name)))
            .find(|program| program.is_file());
        found.ok_or(BuildError::ToolMissing {
            tool: tool.tool,
            hint: tool.hint,
        })
    }

    /// Runs a program in a folder to its end and returns what it printed.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        folder: &Path,
        args: &[A],
        environment: &[(&str, &str)],
    ) -> Result<String, BuildError> {
        let mut command = Command::new(program);
        command.current_dir(folder).args(args);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command.envs(environment.iter().copied());
        let output = command.output().map_err(|source| BuildError::File {
            doing: "start",
            path: program.to_owned(),
            source,
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let mut command = program.display().to_string();
        for arg in args {
            command.push(' ');
            command.push_str(&arg.as_ref().to_string_lossy());
        }
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let lines: Vec<&str> = stdout.lines().chain(stderr.lines()).collect();
        let from = lines.len().saturating_sub(OUTPUT_LINES_MAX);
        Err(BuildError::ToolFailed {
            command,
            status: output.status,
            output: lines[from..].join("\n"),
        })
    }
}
