//! What is refused before it runs, and what the user reads then.

use crate::guest::{ENGINE, Guest, PREFER_FAMILY};
use expect_test::{Expect, expect};
use kerf_policy::{Hook, Policy, PolicyDigest, interfaces};

fn check(bytes: &[u8], expect: Expect) {
    let error = Policy::load(&ENGINE, bytes, Hook::InstanceSelection, None).unwrap_err();

    expect.assert_eq(&error.to_string());
}

#[test]
fn an_empty_source() {
    check(
        b"",
        expect![
            "the source is empty; put the component's bytes under the key that the policy names"
        ],
    );
}

#[test]
fn something_that_is_not_webassembly() {
    check(
        b"apiVersion: v1",
        expect![
            "this is not WebAssembly but something else; upload the .wasm file that the build printed"
        ],
    );
    check(
        b"(component)",
        expect![
            "this is not WebAssembly but WebAssembly text; run `wasm-tools parse` on it and upload the result"
        ],
    );
    check(
        &[0x1f, 0x8b, 8, 0],
        expect![
            "this is not WebAssembly but gzip; a component may be packed with zstd only: run `gunzip`, then `kerf plugin publish`"
        ],
    );
    check(
        b"AGFzbQ0AAQA=",
        expect!["this is not WebAssembly but base64 text; put it under binaryData, not under data"],
    );
}

#[test]
fn a_core_module() {
    check(
        &wat::parse_str("(module)").unwrap(),
        expect![
            "this is a core WebAssembly module, not a component; run `cargo xtask plugins componentize` or `wasm-tools component new` on it"
        ],
    );
}

#[test]
fn a_cut_download() {
    let good = Guest::default().component();
    for bytes in [
        &b"\0asm"[..],
        &good[..good.len() / 2],
        &PREFER_FAMILY[..PREFER_FAMILY.len() - 1],
    ] {
        let error = Policy::load(&ENGINE, bytes, Hook::InstanceSelection, None)
            .unwrap_err()
            .to_string();

        assert!(
            error.starts_with("the component is damaged at byte "),
            "{error}"
        );
        assert!(
            error.ends_with("copy the file again and compare its sha256"),
            "{error}"
        );
    }
}

#[test]
fn damaged_bytes_never_bring_the_host_down() {
    let good = Guest::default().component();
    let mut refused = 0;
    for at in (8..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        refused +=
            usize::from(Policy::load(&ENGINE, &bytes, Hook::InstanceSelection, None).is_err());
    }
    assert!(refused > 0);
}

#[test]
fn an_import_of_the_network() {
    let bytes = wat::parse_str(
        r#"(component (import "kerf:policy/log@0.1.0" (instance)) (import "wasi:sockets/tcp@0.2.0" (instance)))"#,
    );
    check(
        &bytes.unwrap(),
        expect![
            "it imports wasi:sockets/tcp@0.2.0, and a policy may import only kerf:policy/log; set spec.policies[].wasi to Inert (a clock that stands, no files, no network), or build Rust for wasm32-unknown-unknown instead of wasm32-wasip2, Python with --stub-wasi, JavaScript with --backend-qjs-stub-wasi"
        ],
    );
}

#[test]
fn an_import_of_something_unknown() {
    check(
        &wat::parse_str(r#"(component (import "acme:db/query" (func)))"#).unwrap(),
        expect![
            "it imports acme:db/query, and a policy may import only kerf:policy/log; a policy has no files, network, clock or other services; take what it needs from its input or its config"
        ],
    );
}

#[test]
fn another_version_of_the_contract() {
    let bytes = wat::parse_str(r#"(component (import "kerf:policy/log@0.2.0" (instance)))"#);
    check(
        &bytes.unwrap(),
        expect![
            "it was built for kerf:policy/log@0.2.0, and this kerf speaks kerf:policy@0.1; rebuild it with the SDK of this release"
        ],
    );
}

#[test]
fn another_world() {
    check(
        &wat::parse_str("(component)").unwrap(),
        expect![
            "it does not export kerf:policy/lifecycle, which hook InstanceSelection calls; it exports nothing"
        ],
    );
    let error = Policy::load(&ENGINE, PREFER_FAMILY, Hook::BootstrapUserData, None).unwrap_err();
    expect!["it does not export kerf:policy/bootstrap-userdata, which hook BootstrapUserData calls; it exports kerf:policy/lifecycle@0.1.0, kerf:policy/instance-selection@0.1.0"].assert_eq(&error.to_string());
}

#[test]
fn the_right_names_with_the_wrong_types() {
    let bytes = wat::parse_str(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            (func $f (result u32) (canon lift (core func $i "f")))
            (instance $l (export "describe" (func $f)))
            (export "kerf:policy/lifecycle@0.1.0" (instance $l))
            (export "kerf:policy/instance-selection@0.1.0" (instance $l)))"#,
    );
    check(
        &bytes.unwrap(),
        expect![
            "its functions have other types than kerf:policy@0.1: instance export `kerf:policy/lifecycle@0.1.0` does not have export `validate-config`; rebuild it with wit/ of this release"
        ],
    );
}

#[test]
fn a_description_that_fails_or_says_nothing() {
    check(
        &Guest {
            describe: "unreachable",
            ..Guest::default()
        }
        .component(),
        expect![
            "its describe function crashed: wasm trap: wasm `unreachable` instruction executed (in describe)"
        ],
    );
    check(
        &Guest {
            describe: "(i32.const 2048)",
            ..Guest::default()
        }
        .component(),
        expect!["its description cannot be used: name and version must not be empty"],
    );
}

#[test]
fn another_digest_than_the_pin() {
    let pin = PolicyDigest::of(b"what was reviewed");
    let error =
        Policy::load(&ENGINE, PREFER_FAMILY, Hook::InstanceSelection, Some(pin)).unwrap_err();
    assert!(error.to_string().contains(&pin.to_string()), "{error}");
    assert!(
        error.to_string().contains("spec.policies[].digest"),
        "{error}"
    );
}

#[test]
fn a_rust_policy_imports_the_log_and_nothing_else() {
    let found = interfaces(PREFER_FAMILY).unwrap();

    expect![[r#"
        Interfaces {
            imports: [
                "kerf:policy/log@0.1.0",
                "kerf:policy/types@0.1.0",
            ],
            exports: [
                "kerf:policy/lifecycle@0.1.0",
                "kerf:policy/instance-selection@0.1.0",
            ],
        }
    "#]]
    .assert_debug_eq(&found);
}
