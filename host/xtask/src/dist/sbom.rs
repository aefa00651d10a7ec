//! What the program is made of: a CycloneDX list of its packages, and the licences under which they are given.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::image::TARGET;
use crate::source::{self, VERSION};
use crate::{process, workspace};

/// All that a package's licence may ask for: to be named, and no more. Another word here is a question for a lawyer first.
const ACCEPTED: [&str; 13] = [
    // Not even to be named.
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // Only as one of several to choose from, none of which is this one.
    "LGPL-2.1-or-later",
];

/// A package that is linked into the program or runs while it is built.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    licence: String,
    repository: String,
    /// Of the archive that the registry gave.
    checksum: Option<String>,
    folder: PathBuf,
    is_ours: bool,
    /// By their reference.
    uses: BTreeSet<String>,
}

impl Package {
    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The list, in the form of CycloneDX 1.5.
pub(super) fn sbom(time: i64) -> Result<Vec<u8>> {
    let packages = packages()?;
    let of = |package: &Package, kind: &str| {
        let mut component = json!({
            "type": kind, "bom-ref": package.reference(), "name": package.name, "version": package.version,
            "purl": package.reference(), "licenses": [{"expression": package.licence}],
        });
        if let Some(checksum) = &package.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let own = packages
        .get(&format!("pkg:cargo/kerf@{VERSION}"))
        .context("kerf is not among its own packages")?;
    let others = packages
        .values()
        .filter(|it| it.reference() != own.reference());
    let components: Vec<Value> = others.map(|it| of(it, "library")).collect();
    let uses = packages
        .values()
        .map(|it| json!({"ref": it.reference(), "dependsOn": it.uses}));
    let list = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": source::timestamp(time)?, "component": of(own, "application")},
        "components": components, "dependencies": uses.collect::<Vec<_>>(),
    });
    Ok(format!("{list:#}\n").into_bytes())
}

/// Every package of others with its licence, and the texts that come with them, each text once.
pub(crate) fn licences() -> Result<Vec<u8>> {
    let packages = packages()?;
    let mut text = "kerf contains the packages below, under the licences that stand behind them. Their texts follow.\n\n".to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages.values().filter(|it| !it.is_ours) {
        let Package {
            name,
            version,
            licence,
            repository,
            ..
        } = package;
        text += &format!("{name} {version}: {licence} {repository}\n");
        for path in licence_files(&package.folder)? {
            let found =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let found = String::from_utf8_lossy(&found).replace('\r', "");
            texts
                .entry(found.trim().to_owned())
                .or_default()
                .push(format!("{name} {version}"));
        }
    }
    let mut texts: Vec<_> = texts
        .into_iter()
        .map(|(text, users)| (users, text))
        .collect();
    texts.sort();
    for (users, licence) in texts {
        text += &format!("\n{}\n{}\n\n{licence}\n", "=".repeat(80), users.join(", "));
    }
    Ok(text.into_bytes())
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];
        if path.is_file() && is_licence.iter().any(|it| name.starts_with(it)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// By reference.
fn packages() -> Result<BTreeMap<String, Package>> {
    let mut cargo = process::cargo();
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        TARGET,
    ]);
    let metadata: Value =
        serde_json::from_str(&process::output(&mut cargo)?).context("cargo metadata")?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))
        .context("cannot read Cargo.lock")?;
    let checksums = checksums(&lock);
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().cloned().unwrap_or_default();
        list.into_iter()
            .filter_map(|it| Some((it["id"].as_str()?.to_owned(), it)))
            .collect()
    };
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let known = by_id(&metadata["packages"]);
    let mut found = BTreeMap::new();
    let mut open: Vec<String> = known
        .iter()
        .filter(|(_, it)| it["name"] == "kerf")
        .map(|(id, _)| id.clone())
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let uses = dependencies(&nodes[&id]);
        let mut package = package(&known[&id], &checksums)?;
        package.uses = uses.iter().map(|id| reference(&known[id])).collect();
        found.insert(package.reference(), package);
        open.extend(uses);
    }
    Ok(found)
}

/// Ids of what a package needs to run or to be built; what only its tests need is not shipped.
fn dependencies(node: &Value) -> Vec<String> {
    let list = node["deps"].as_array().cloned().unwrap_or_default();
    let is_shipped = |it: &&Value| {
        let kinds = it["dep_kinds"].as_array();
        kinds
            .into_iter()
            .flatten()
            .any(|kind| kind["kind"] != "dev")
    };
    list.iter()
        .filter(is_shipped)
        .filter_map(|it| Some(it["pkg"].as_str()?.to_owned()))
        .collect()
}

fn reference(package: &Value) -> String {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn package(meta: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Package> {
    let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    // The older way to write a choice.
    let licence = text("license").replace(" / ", " OR ").replace('/', " OR ");
    accept(&name, &licence)?;
    let manifest = PathBuf::from(text("manifest_path"));
    Ok(Package {
        checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
        repository: text("repository"),
        is_ours: meta["source"].is_null(),
        folder: manifest.parent().unwrap_or(&manifest).to_owned(),
        uses: BTreeSet::new(),
        licence,
        name,
        version,
    })
}

fn accept(name: &str, licence: &str) -> Result<()> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let words = licence
        .split(|c: char| !is_part(c))
        .filter(|it| !it.is_empty());
    let mut words = words
        .filter(|it| !["OR", "AND", "WITH"].contains(it))
        .peekable();
    if words.peek().is_none() {
        bail!("the package {name} names no licence");
    }
    if let Some(word) = words.find(|it| !ACCEPTED.contains(it)) {
        bail!(
            "the package {name} is under {licence}, and nobody has said yet whether {word} is fine (dist/sbom.rs)"
        );
    }
    if licence == "LGPL-2.1-or-later" || licence.contains("AND LGPL") {
        bail!("the package {name} can be had under {licence} only");
    }
    Ok(())
}

/// By name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for part in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = part
                .lines()
                .find_map(|it| it.strip_prefix(&format!("{name} = \"")))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_that_nobody_looked_at_stops_the_release() {
        assert!(accept("a", "MIT OR Apache-2.0 WITH LLVM-exception").is_ok());
        assert!(accept("b", "MIT OR LGPL-2.1-or-later").is_ok());
        for licence in [
            "",
            "GPL-3.0-only",
            "MIT AND LGPL-2.1-or-later",
            "LGPL-2.1-or-later",
        ] {
            assert!(accept("c", licence).is_err(), "{licence}");
        }
    }

    #[test]
    fn the_list_names_what_is_linked_and_nothing_of_the_tests() {
        let list: Value = serde_json::from_slice(&sbom(1_700_000_000).unwrap()).unwrap();

        let names: Vec<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        for name in ["kerf-core", "wasmtime", "rustls", "ring"] {
            assert!(names.contains(&name), "{name}");
        }
        for name in ["ecs-sim", "xtask", "proptest"] {
            assert!(!names.contains(&name), "{name}");
        }
        assert_eq!(list["metadata"]["component"]["name"], "kerf");
        let licences = String::from_utf8(licences().unwrap()).unwrap();
        assert!(
            licences.contains("wasmtime ") && !licences.contains("\nkerf-core "),
            "{licences}"
        );
    }
}
