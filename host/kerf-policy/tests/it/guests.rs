//! The committed components behave as what plugins/ builds now.

use crate::guest::{CHEAPEST_ARM, ENGINE, PREFER_FAMILY, question};
use kerf_policy::{CallLimits, Hook, Policy};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static BUILT: LazyLock<PathBuf> = LazyLock::new(|| build("wasm32-unknown-unknown", &[]));

/// `prefer-family` as the toolchain makes it for WASI: a component already, with imports of WASI.
pub(crate) fn for_wasi() -> Vec<u8> {
    let folder = build("wasm32-wasip2", &["--package", "prefer-family"]);
    std::fs::read(folder.join("prefer_family.wasm")).unwrap()
}

/// A Rust example, built from its source and made a component.
pub(crate) fn example(file: &str) -> Vec<u8> {
    let module = std::fs::read(BUILT.join(file)).unwrap();
    let encoder = wit_component::ComponentEncoder::default()
        .module(&module)
        .unwrap();
    encoder.validate(true).encode().unwrap()
}

/// Builds the Rust examples into a folder of their own, because cargo's lock on plugins/target may be held by a person.
fn build(triple: &str, packages: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--target",
            triple,
            "--target-dir",
        ])
        .arg(&target)
        .args(packages)
        .current_dir(root.join("plugins"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(
        status.success(),
        "plugins/ does not build; is the target {triple} installed?"
    );
    target.join(triple).join("release")
}

#[test]
fn committed_components_behave_as_their_sources() {
    let input = question(&[
        ("ecs.t6.large", "amd64", 10),
        ("ecs.c8y.large", "arm64", 11),
        ("ecs.g7.large", "amd64", 40),
    ]);
    for (file, committed, config) in [
        (
            "prefer_family.wasm",
            PREFER_FAMILY,
            r#"{"weights":{"ecs.g7":7},"exclude":["ecs.t6"]}"#,
        ),
        (
            "cheapest_arm.wasm",
            CHEAPEST_ARM,
            r#"{"maxPremiumPercent":50}"#,
        ),
    ] {
        let fresh = example(file);
        let load =
            |bytes: &[u8]| Policy::load(&ENGINE, bytes, Hook::InstanceSelection, None).unwrap();
        let (fresh, committed) = (load(&fresh), load(committed));

        assert_eq!(
            fresh.metadata(),
            committed.metadata(),
            "run `cargo xtask plugins build --fixtures`"
        );
        let ask = |policy: &Policy| {
            policy
                .select(config, &CallLimits::default(), &input)
                .result
                .unwrap()
        };
        assert_eq!(
            ask(&fresh),
            ask(&committed),
            "run `cargo xtask plugins build --fixtures`"
        );
    }
}
