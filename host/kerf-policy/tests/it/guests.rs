//! The committed components behave as what plugins/ builds now.

use crate::guest::{CHEAPEST_ARM, ENGINE, PREFER_FAMILY, question};
use kerf_policy::{CallLimits, Hook, Policy};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the Rust examples into a folder of their own, because cargo's lock on plugins/target may be held by a person.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--target",
            "wasm32-unknown-unknown",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(root.join("plugins"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(
        status.success(),
        "plugins/ does not build; is the target wasm32-unknown-unknown installed?"
    );
    target.join("wasm32-unknown-unknown/release")
}

#[test]
fn committed_components_behave_as_their_sources() {
    let built = build();
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
        let module = std::fs::read(built.join(file)).unwrap();
        let encoder = wit_component::ComponentEncoder::default()
            .module(&module)
            .unwrap();
        let fresh = encoder.validate(true).encode().unwrap();
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
