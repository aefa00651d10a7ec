//! WebAssembly of strangers into the loader, up to the compiler, which runs in a process of its own.

use kerf_policy::{Hook, Wasi, check, interfaces, unpack};

use super::{Planted, Target};

pub(super) const TARGET: Target = Target {
    name: "policy",
    run,
    seeds: || {
        let whole = include_bytes!("../../../host/kerf-policy/tests/fixtures/prefer-family.wasm");
        let small = wat::parse_str("(component (core module (func (export \"a\"))))");
        let log = wat::parse_str(
            r#"(component (import "kerf:policy/log@0.1.0" (instance (export "log" (func (param "text" string))))))"#,
        );
        let mut seeds: Vec<Vec<u8>> = small.into_iter().chain(log).collect();
        seeds.push(whole.to_vec());
        seeds.push(b"\x28\xb5\x2f\xfd\x04\x00\x41\x00\x00\x61\x62\x63".to_vec());
        seeds.push(
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                .to_vec(),
        );
        seeds
    },
};

fn run(bytes: &[u8], planted: Planted) {
    let Ok(component) = unpack(bytes) else { return };
    for hook in [
        Hook::InstanceSelection,
        Hook::PricingPreference,
        Hook::BootstrapUserData,
    ] {
        let _ = check(&component, hook, Wasi::None);
    }
    let Ok(found) = interfaces(&component) else {
        return;
    };
    planted.at(found.imports.len() > 1);
}
