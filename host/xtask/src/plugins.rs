//! `cargo xtask plugins`: builds the guests of plugins/ in all languages and makes components of them.
//!
//! What was built is kept by the hash of its sources, so that a second run costs nothing.

mod sources;
mod tools;

use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail};
use kerf_guest::{Language, MANIFEST, Manifest, Tools};
use sha2::{Digest as _, Sha256};

use crate::{process, workspace};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// Copies that the tests of the policy host use, so that they need no guest toolchain.
const FIXTURES: &str = "host/kerf-policy/tests/fixtures";
/// The hash of wit/ that the committed bindings of C and Go were made from.
const BINDINGS_OF: &str = "plugins/sdk/WIT_SHA256";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Build all examples into plugins/target/components/LANGUAGE/.
    Build {
        /// Also replace the copies that the policy host's tests use.
        #[arg(long)]
        fixtures: bool,
    },
    /// Write the bindings of the C and Go SDKs anew, after a change of wit/.
    Bindings,
    /// Make a component of a core module that an SDK or wit-bindgen built.
    Componentize {
        /// The core module.
        module: PathBuf,
        /// Where the component goes.
        component: PathBuf,
    },
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Build { fixtures } => {
            let components = build()?;
            components.iter().try_for_each(|path| print_size(path))?;
            if *fixtures {
                replace_fixtures(&components)?;
            }
            Ok(())
        }
        Command::Bindings => bindings(),
        Command::Componentize { module, component } => {
            let bytes =
                fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
            write(component, &kerf_guest::componentize(&bytes, None)?)?;
            print_size(component)
        }
    }
}

/// A policy of plugins/.
struct Guest {
    folder: PathBuf,
    manifest: Manifest,
}

/// Builds every example and every guest of tests, and returns the components, sorted. What else lies in their folder is
/// removed, so that an SDK that is gone is missed.
pub(crate) fn build() -> Result<Vec<PathBuf>> {
    check_bindings()?;
    let guests = guests()?;
    let components = workspace::root().join("plugins/target/components");
    let _ = fs::remove_dir_all(&components);
    let by_language = |language: Language| {
        let (guests, components) = (&guests, &components);
        move || -> Result<Vec<PathBuf>> {
            let of_language = guests.iter().filter(|it| it.manifest.language == language);
            let guests: Vec<&Guest> = of_language.collect();
            build_language(language, &guests, &components.join(language.as_str()))
        }
    };
    // Each language keeps one core busy for the most part, and the tools of one do not wait for another's.
    let mut built = thread::scope(|scope| {
        let threads: Vec<_> = Language::ALL
            .map(|language| scope.spawn(by_language(language)))
            .into();
        let mut built = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(components) => built.extend(components?),
                Err(_) => bail!("the build of a language died"),
            }
        }
        Ok(built)
    })?;
    built.sort();
    Ok(built)
}

fn build_language(language: Language, guests: &[&Guest], out: &Path) -> Result<Vec<PathBuf>> {
    let cache = workspace::root().join("plugins/target/guests");
    let mut tools = None;
    let mut built = Vec::new();
    for guest in guests {
        let name = &guest.manifest.name;
        let hash = sources::hash(&guest.folder, language)?;
        let kept = cache.join(format!("{}-{name}-{hash}.wasm", language.as_str()));
        if !kept.is_file() {
            let bytes = match language {
                Language::Rust => build_rust(name)?,
                Language::JavaScript | Language::Python | Language::Go | Language::C => {
                    let tools = match &tools {
                        Some(tools) => tools,
                        None => tools.insert(tools::install(language)?),
                    };
                    build_other(guest, tools)?
                }
            };
            write(&kept, &bytes)?;
        }
        let component = out.join(format!("{name}.wasm"));
        write(&component, &fs::read(&kept)?)?;
        built.push(component);
    }
    Ok(built)
}

fn build_other(guest: &Guest, tools: &Tools) -> Result<Vec<u8>> {
    let language = guest.manifest.language.as_str();
    let scratch = format!("plugins/target/scratch/{language}-{}", guest.manifest.name);
    kerf_guest::build(&guest.folder, &workspace::root().join(scratch), tools)
        .with_context(|| format!("cannot build {}", guest.folder.display()))
}

/// Cargo builds all of the workspace at once; from the second package on this only copies.
fn build_rust(name: &str) -> Result<Vec<u8>> {
    let plugins = workspace::root().join("plugins");
    let target = plugins.join("target");
    let mut cargo = process::cargo();
    cargo
        .current_dir(&plugins)
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target);
    // The toolchain of the host's build would otherwise leak into the guest's.
    cargo
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", remap_flags());
    process::run(&mut cargo)
        .with_context(|| format!("hint: `rustup target add {TARGET}` if the target is missing"))?;
    let module = format!("{TARGET}/release/{}.wasm", name.replace('-', "_"));
    let module = target.join(module);
    let bytes = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    Ok(kerf_guest::componentize(&bytes, None)?)
}

/// Every folder below plugins/examples and plugins/tests with a manifest, sorted.
fn guests() -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for path in workspace::files()? {
        if path.starts_with("plugins") && path.file_name().is_some_and(|name| name == MANIFEST) {
            let folder = workspace::root().join(path.parent().unwrap_or(Path::new("")));
            let manifest = Manifest::read(&folder)?;
            guests.push(Guest { folder, manifest });
        }
    }
    Ok(guests)
}

/// Paths of this machine must not get into components: they are shipped, and equal sources should give equal bytes.
fn remap_flags() -> String {
    let home = env::home_dir().unwrap_or_default();
    let cargo_home = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let root = workspace::root().display();
    format!(
        "--remap-path-prefix={}=/cargo --remap-path-prefix={root}=/kerf",
        cargo_home.display()
    )
}

fn bindings() -> Result<()> {
    let plugins = workspace::root().join("plugins");
    let mut cargo = process::cargo();
    cargo
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(plugins.join("tools/bindings/Cargo.toml"))
        .arg("--target-dir")
        .arg(plugins.join("target/bindings"))
        .arg("--")
        .arg(&plugins);
    process::run(&mut cargo)?;
    write(
        &workspace::root().join(BINDINGS_OF),
        format!("{}\n", contract_hash()?).as_bytes(),
    )
}

fn check_bindings() -> Result<()> {
    let recorded = fs::read_to_string(workspace::root().join(BINDINGS_OF)).unwrap_or_default();
    if recorded.trim() == contract_hash()? {
        return Ok(());
    }
    bail!(
        "wit/ changed after the bindings of C and Go were made: run `cargo xtask plugins bindings`"
    )
}

fn contract_hash() -> Result<String> {
    sources::hash_of(
        &[
            "wit/host.wit",
            "wit/plugin.wit",
            "wit/types.wit",
            "wit/worlds.wit",
        ]
        .map(PathBuf::from),
    )
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn print_size(component: &Path) -> Result<()> {
    let bytes =
        fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
    println!(
        "{}  {} KiB  {}",
        component.display(),
        bytes.len().div_ceil(1024),
        digest(&bytes)
    );
    Ok(())
}

fn replace_fixtures(components: &[PathBuf]) -> Result<()> {
    let folder = workspace::root().join(FIXTURES);
    let mut sums = String::new();
    let is_fixture = |path: &&PathBuf| {
        let parent = path.parent().and_then(Path::file_name);
        parent.is_some_and(|it| it == "rust") && !path.ends_with("crash.wasm")
    };
    for component in components.iter().filter(is_fixture) {
        let name = component.file_name().unwrap_or_default();
        let bytes =
            fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
        sums.push_str(&format!("{} {}\n", digest(&bytes), name.to_string_lossy()));
        write(&folder.join(name), &bytes)?;
    }
    write(&folder.join("DIGESTS"), sums.as_bytes())
}

fn digest(bytes: &[u8]) -> String {
    let hex = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("sha256:{hex}")
}
