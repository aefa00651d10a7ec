//! The static program: linked with musl, so that it needs nothing of the system it runs on, and without a path of the
//! machine that built it, so that the same sources give the same bytes anywhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, rig, workspace};

pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";
/// The program header of an ELF file that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Builds it, as users run it; where it is.
pub(crate) fn program() -> Result<PathBuf> {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        bail!(
            "musl-gcc is missing; hint: apt-get install musl-tools && rustup target add {TARGET}"
        );
    }
    let mut cargo = process::cargo();
    cargo
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "kerf",
            "--target",
            TARGET,
        ])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", flags("--remap-path-prefix="))
        .env(
            format!("CFLAGS_{}", TARGET.replace('-', "_")),
            flags("-ffile-prefix-map="),
        );
    process::run(&mut cargo)
        .with_context(|| format!("hint: `rustup target add {TARGET}` if the target is missing"))?;
    Ok(target_folder().join(TARGET).join("release/kerf"))
}

/// This very program is in its `debug`, or one deeper.
fn target_folder() -> PathBuf {
    let own = rig::binary("kerf");
    own.parent()
        .and_then(Path::parent)
        .unwrap_or(&own)
        .to_owned()
}

/// One flag for each folder of this machine, with what stands for it.
fn flags(flag: &str) -> String {
    let home = std::env::home_dir().unwrap_or_default();
    let cargo_home =
        std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let folders = [
        (cargo_home, "/cargo"),
        (workspace::root().to_owned(), "/kerf"),
        (target_folder(), "/target"),
    ];
    let flags = folders.map(|(folder, name)| format!("{flag}{}={name}", folder.display()));
    flags.join(" ")
}

/// An image without a C library can run nothing else.
pub(super) fn require_static(program: &Path) -> Result<()> {
    let bytes =
        std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    match has_loader(&bytes) {
        None => bail!("{} is no 64-bit ELF program", program.display()),
        Some(true) => bail!("{} is not linked statically", program.display()),
        Some(false) => Ok(()),
    }
}

/// Whether an ELF program asks for a dynamic loader. Pure.
fn has_loader(bytes: &[u8]) -> Option<bool> {
    let number = |at: usize, length: usize| -> Option<u64> {
        let field = bytes.get(at..at + length)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
        )
    };
    if bytes.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut kinds = (0..count).map(|idx| {
        let at = usize::try_from(start + idx * size).ok()?;
        number(at, 4)
    });
    Some(kinds.any(|kind| kind == Some(u64::from(PT_INTERP))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_asks_for_a_loader_is_told_from_others() {
        // This very test is linked dynamically.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut without = own.clone();
        without[56..58].copy_from_slice(&[0, 0]);

        assert_eq!(has_loader(&own), Some(true));
        assert_eq!(has_loader(&without), Some(false));
        assert_eq!(has_loader(b"#!/bin/sh"), None);
    }
}
