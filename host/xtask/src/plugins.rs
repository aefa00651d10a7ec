//! `cargo xtask plugins`: builds the guests of plugins/ and makes components of them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};
use wit_component::ComponentEncoder;

use crate::{process, workspace};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// Copies that the tests of the policy host use, so that they need no guest toolchain.
const FIXTURES: &str = "host/kerf-policy/tests/fixtures";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Build the Rust examples into plugins/target/components/.
    Build {
        /// Also replace the copies that the policy host's tests use.
        #[arg(long)]
        fixtures: bool,
    },
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
        Command::Componentize { module, component } => {
            componentize(module, component)?;
            print_size(component)
        }
    }
}

/// Builds every Rust example and returns the components, sorted by name.
pub(crate) fn build() -> Result<Vec<PathBuf>> {
    let plugins = workspace::root().join("plugins");
    let mut cargo = process::cargo();
    cargo
        .current_dir(&plugins)
        .args(["build", "--release", "--locked", "--target", TARGET]);
    // The toolchain of the host's build would otherwise leak into the guest's.
    cargo
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", remap_flags());
    process::run(&mut cargo)
        .with_context(|| format!("hint: `rustup target add {TARGET}` if the target is missing"))?;

    let built = plugins.join("target").join(TARGET).join("release");
    let folder = plugins.join("target/components");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut components = Vec::new();
    for name in rust_examples(&plugins)? {
        let module = built.join(format!("{}.wasm", name.replace('-', "_")));
        let component = folder.join(format!("{name}.wasm"));
        componentize(&module, &component)?;
        components.push(component);
    }
    Ok(components)
}

fn rust_examples(plugins: &Path) -> Result<Vec<String>> {
    let folder = plugins.join("examples/rust");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            names.extend(
                path.file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
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

fn componentize(module: &Path, component: &Path) -> Result<()> {
    let bytes = fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    let encoded = ComponentEncoder::default()
        .module(&bytes)
        .and_then(|encoder| encoder.validate(true).encode());
    let encoded = match encoded {
        Ok(encoded) => encoded,
        // Not anyhow's own chain: the encoder may use another version of it.
        Err(error) => bail!("cannot make a component of {}: {error:#}", module.display()),
    };
    fs::write(component, encoded).with_context(|| format!("cannot write {}", component.display()))
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
    for component in components {
        let name = component.file_name().unwrap_or_default();
        let bytes =
            fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
        sums.push_str(&format!("{} {}\n", digest(&bytes), name.to_string_lossy()));
        fs::write(folder.join(name), bytes)
            .with_context(|| format!("cannot write to {}", folder.display()))?;
    }
    fs::write(folder.join("DIGESTS"), sums)
        .with_context(|| format!("cannot write to {}", folder.display()))
}

fn digest(bytes: &[u8]) -> String {
    let hex = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("sha256:{hex}")
}
