//! Who may depend on whom (docs/architecture.md, "Code map"), checked on what cargo really resolves.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, workspace};

/// What one crate may see of this workspace, and what it must never pull in, not even through another crate.
#[derive(Debug)]
struct Rule {
    krate: &'static str,
    may_use: &'static [&'static str],
    never: &'static [&'static str],
}

/// An edge that is not here is a change of architecture: change docs/architecture.md in the same commit.
const RULES: &[Rule] = &[
    Rule {
        krate: "kerf-core",
        may_use: &[],
        never: &[
            "kube",
            "kube-client",
            "k8s-openapi",
            "tokio",
            "serde_json",
            "wasmtime",
            "reqwest",
            "ureq",
        ],
    },
    Rule {
        krate: "kerf-api",
        may_use: &["kerf-core"],
        never: &["wasmtime", "reqwest", "ureq"],
    },
    Rule {
        krate: "kerf-state",
        may_use: &["kerf-core", "kerf-api"],
        never: &["wasmtime", "reqwest", "ureq"],
    },
    Rule {
        krate: "kerf-policy",
        may_use: &["kerf-core"],
        never: &["kube", "kube-client", "k8s-openapi", "reqwest", "ureq"],
    },
    Rule {
        krate: "kerf-cloud",
        may_use: &["kerf-core"],
        never: &["kube", "kube-client", "k8s-openapi", "wasmtime"],
    },
    Rule {
        krate: "kerf-controllers",
        may_use: &[
            "kerf-core",
            "kerf-api",
            "kerf-state",
            "kerf-policy",
            "kerf-cloud",
        ],
        never: &["ecs-sim", "control-plane"],
    },
    Rule {
        krate: "kerf",
        may_use: &[
            "kerf-core",
            "kerf-api",
            "kerf-state",
            "kerf-policy",
            "kerf-cloud",
            "kerf-controllers",
            "kerf-guest",
        ],
        never: &["ecs-sim", "control-plane"],
    },
    // Runs compilers; the controller's process never does.
    Rule {
        krate: "kerf-guest",
        may_use: &[],
        never: &["wasmtime", "kube", "tokio", "ureq"],
    },
    // The simulator shares no code with the client, so that an encoding error cannot cancel itself out.
    Rule {
        krate: "ecs-sim",
        may_use: &[],
        never: &["kerf-cloud", "kerf-core", "kerf-api"],
    },
    Rule {
        krate: "control-plane",
        may_use: &[],
        never: &["kube", "kube-client", "k8s-openapi", "tokio"],
    },
    Rule {
        krate: "xtask",
        may_use: &[
            "kerf-core",
            "kerf-guest",
            "kerf-api",
            "kerf-state",
            "control-plane",
        ],
        never: &["wasmtime", "kerf-cloud"],
    },
    // Built for release before each measurement, so it must stay small.
    Rule {
        krate: "xtask-bench",
        may_use: &["kerf-core"],
        never: &["kube", "k8s-openapi", "tokio", "ureq", "wasmtime"],
    },
];

/// Every package costs build time, review and trust; a new one says in its commit what it replaces. About 400 is what
/// kube, wasmtime and an HTTP client come to, and 16 are those of CEL, so that `kerf validate` tries the rules of the
/// definitions themselves; the rest is room for what other systems than Linux would build.
const PACKAGES_MAX: usize = 426;

pub(crate) fn run() -> Result<()> {
    let mut problems = Vec::new();
    let members = members()?;
    for member in &members {
        if let Some(rule) = RULES.iter().find(|rule| rule.krate == member.name) {
            problems.extend(forbidden_edges(rule, member));
            problems.extend(forbidden_packages(rule)?);
        } else if member.name != "kerf-tests" {
            problems.push(format!(
                "{} has no rule in host/xtask/src/deps.rs",
                member.name
            ));
        }
        problems.extend(own_versions(member)?);
    }
    let packages = locked_packages()?;
    if packages > PACKAGES_MAX {
        problems.push(format!(
            "Cargo.lock has {packages} packages, the limit is {PACKAGES_MAX}"
        ));
    }
    problems.extend(fuzz_lock());
    for problem in &problems {
        println!("deps: {problem}");
    }
    if !problems.is_empty() {
        bail!("deps: {} problems", problems.len());
    }
    println!("deps: {} crates, {packages} packages", members.len());
    Ok(())
}

/// The fuzzer has a lock file of its own, and `make test` does not build it: a dependency more of ours made it fall behind
/// without a word.
fn fuzz_lock() -> Option<String> {
    let manifest = workspace::root().join("fuzz/Cargo.toml");
    let mut cargo = process::cargo();
    cargo.args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--manifest-path",
    ]);
    let told = process::output(cargo.arg(&manifest));
    told.err().map(|error| {
        format!("fuzz/Cargo.lock is behind: {error:#}; hint: cargo metadata --manifest-path fuzz/Cargo.toml")
    })
}

#[derive(Debug)]
struct Member {
    name: String,
    manifest: String,
    /// Crates of this workspace that it names, tests' dependencies left out.
    uses: BTreeSet<String>,
}

fn members() -> Result<Vec<Member>> {
    let text =
        process::output(process::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cannot read cargo metadata")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?;
    Ok(packages.iter().map(member).collect())
}

fn member(package: &Value) -> Member {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependencies = package["dependencies"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let is_ours =
        |dependency: &&Value| dependency["path"].is_string() && dependency["kind"] != "dev";
    Member {
        name: text(&package["name"]),
        manifest: text(&package["manifest_path"]),
        uses: dependencies
            .iter()
            .filter(is_ours)
            .map(|dependency| text(&dependency["name"]))
            .collect(),
    }
}

fn forbidden_edges(rule: &Rule, member: &Member) -> Vec<String> {
    let extra = member
        .uses
        .iter()
        .filter(|used| !rule.may_use.contains(&used.as_str()));
    extra
        .map(|used| {
            format!(
                "{} must not depend on {used}: see docs/architecture.md, \"Code map\"",
                rule.krate
            )
        })
        .collect()
}

fn forbidden_packages(rule: &Rule) -> Result<Vec<String>> {
    let tree = process::output(process::cargo().args([
        "tree",
        "--quiet",
        "--package",
        rule.krate,
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?;
    let seen: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let found = rule.never.iter().filter(|never| seen.contains(*never));
    Ok(found
        .map(|never| {
            let krate = rule.krate;
            format!("{krate} must never see {never}; `cargo tree -p {krate} -i {never}` shows the way in")
        })
        .collect())
}

/// Versions stand in the workspace's Cargo.toml and nowhere else.
fn own_versions(member: &Member) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(&member.manifest)
        .with_context(|| format!("cannot read {}", member.manifest))?;
    let mut section = "";
    let mut problems = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.contains("dependencies") && names_a_version(line) {
            problems.push(format!(
                "{} gives a version itself: `{line}`; use `.workspace = true`",
                member.name
            ));
        }
    }
    Ok(problems)
}

fn names_a_version(line: &str) -> bool {
    let Some((_, value)) = line.split_once('=') else {
        return false;
    };
    let value = value.trim();
    value.starts_with('"') || value.contains("version")
}

fn locked_packages() -> Result<usize> {
    let path = workspace::root().join("Cargo.lock");
    let lock = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(lock.lines().filter(|line| *line == "[[package]]").count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_against_the_direction_is_named() {
        let member = Member {
            name: "kerf-core".to_owned(),
            manifest: String::new(),
            uses: BTreeSet::from(["kerf-api".to_owned()]),
        };

        let found = forbidden_edges(&RULES[0], &member);

        assert_eq!(
            found,
            ["kerf-core must not depend on kerf-api: see docs/architecture.md, \"Code map\""]
        );
    }

    #[test]
    fn a_version_in_a_member_is_found() {
        assert!(names_a_version("serde = \"1\""));
        assert!(names_a_version(
            "serde = { version = \"1\", features = [] }"
        ));
        assert!(!names_a_version("serde.workspace = true"));
        assert!(!names_a_version(
            "serde = { workspace = true, features = [\"derive\"] }"
        ));
    }
}
