//! Builds the test binaries and finds the suites in them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// The module whose tests take too long for every change.
const LONG_TIER: &str = "long_tier::";

/// Some tests of one binary.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) binary: Binary,
    pub(super) tests: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Binary {
    /// The crate for unit tests, the test target for integration tests.
    name: String,
    is_integration: bool,
    pub(super) executable: PathBuf,
    /// Where cargo would run it.
    pub(super) package: PathBuf,
}

/// Builds what `cargo test` would run; unit tests come first, then integration tests.
pub(super) fn suites(long: bool) -> Result<Vec<Suite>> {
    let mut binaries = binaries(&process::build_all()?)?;
    binaries.sort_by(|a, b| (a.is_integration, &a.name).cmp(&(b.is_integration, &b.name)));
    let mut suites = Vec::new();
    for binary in binaries {
        let tests = tests_of(&binary)?;
        suites.extend(split(
            &binary,
            tests
                .into_iter()
                .filter(|test| long || !test.contains(LONG_TIER)),
        ));
    }
    Ok(suites)
}

fn binaries(messages: &str) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value =
            serde_json::from_str(line).context("cannot read a message of cargo")?;
        let Some(executable) = message["executable"].as_str() else {
            continue;
        };
        // A measurement has no tests, though cargo builds it like one.
        let is_bench = message["target"]["kind"][0] == "bench";
        if message["profile"]["test"] != true || is_bench {
            continue;
        }
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
        let package = manifest
            .parent()
            .context("a manifest without a folder")?
            .to_owned();
        let is_integration = message["target"]["kind"][0] == "test";
        let target = message["target"]["name"].as_str().unwrap_or_default();
        binaries.push(Binary {
            name: if is_integration {
                integration_name(&package, target)
            } else {
                target.replace('_', "-")
            },
            is_integration,
            executable: PathBuf::from(executable),
            package,
        });
    }
    Ok(binaries)
}

/// The workspace's own test crate is `it`; a test target of another crate carries that crate's name.
fn integration_name(package: &std::path::Path, target: &str) -> String {
    let folder = package.file_name().unwrap_or_default().to_string_lossy();
    if folder == "tests" {
        target.to_owned()
    } else {
        format!("{folder}::{target}")
    }
}

fn tests_of(binary: &Binary) -> Result<Vec<String>> {
    let mut list = Command::new(&binary.executable);
    list.args(["--list", "--format", "terse"])
        .current_dir(&binary.package)
        .stdin(Stdio::null());
    let listed = process::output(&mut list)?;
    Ok(listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

/// Unit tests stay one suite; the one big integration binary is split by its top modules.
fn split(binary: &Binary, tests: impl Iterator<Item = String>) -> Vec<Suite> {
    let mut by_suite: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in tests {
        let module = test.split_once("::").map(|(module, _)| module);
        let name = match module {
            Some(module) if binary.name == "it" => format!("it::{module}"),
            _ => binary.name.clone(),
        };
        by_suite.entry(name).or_default().push(test);
    }
    by_suite
        .into_iter()
        .map(|(name, tests)| Suite {
            name,
            binary: binary.clone(),
            tests,
        })
        .collect()
}

/// The command that runs exactly these tests.
pub(super) fn command(suite: &Suite) -> Result<Command> {
    if suite.tests.is_empty() {
        bail!("{} has no tests", suite.name);
    }
    let mut command = Command::new(&suite.binary.executable);
    command
        .arg("--exact")
        .args(&suite.tests)
        .current_dir(&suite.binary.package)
        .stdin(Stdio::null());
    command.env("CARGO_MANIFEST_DIR", &suite.binary.package);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(name: &str) -> Binary {
        let executable = PathBuf::from("x");
        Binary {
            name: name.to_owned(),
            is_integration: true,
            executable,
            package: PathBuf::from("tests"),
        }
    }

    #[test]
    fn the_integration_binary_is_split_by_module() {
        let tests = ["wire::a", "wire::b::c", "cli::d"].map(str::to_owned);

        let suites = split(&binary("it"), tests.into_iter());

        let names: Vec<_> = suites
            .iter()
            .map(|suite| (suite.name.as_str(), suite.tests.len()))
            .collect();
        assert_eq!(names, [("it::cli", 1), ("it::wire", 2)]);
    }

    #[test]
    fn only_test_executables_are_taken_from_the_messages_of_cargo() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/r/tests/Cargo.toml","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/t/it"}
{"reason":"compiler-artifact","manifest_path":"/r/host/kerf-core/Cargo.toml","target":{"kind":["lib"],"name":"kerf_core"},"profile":{"test":true},"executable":"/t/core"}
{"reason":"compiler-artifact","manifest_path":"/r/host/kerf/Cargo.toml","target":{"kind":["bin"],"name":"kerf"},"profile":{"test":false},"executable":"/t/kerf"}
{"reason":"compiler-artifact","manifest_path":"/r/host/kerf-state/Cargo.toml","target":{"kind":["bench"],"name":"scale"},"profile":{"test":true},"executable":"/t/scale"}
{"reason":"build-finished","success":true}"#;

        let names: Vec<_> = binaries(messages)
            .unwrap()
            .into_iter()
            .map(|binary| binary.name)
            .collect();

        assert_eq!(names, ["it", "kerf-core"]);
    }
}
