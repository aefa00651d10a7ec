//! The files that `kerf plugin new` writes: the examples and SDKs of plugins/, as this program was built with them.

use crate::manifest::{Hook, Language};

/// The files of a folder of plugins/, by their names in it.
macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../plugins/", $folder, "/", $name)))),*]
    };
}

/// The folder of the SDK in a new policy.
pub(super) const SDK_FOLDER: &str = "kerf-sdk";

/// A file's name and text.
pub(super) type File = (&'static str, &'static str);

/// The reference policy of a hook.
pub(super) fn example_name(hook: Hook) -> &'static str {
    match hook {
        Hook::InstanceSelection => "prefer-family",
        Hook::PricingPreference => "family-discount",
        Hook::BootstrapUserData => "node-tuning",
    }
}

/// A first test, which the reference policy passes.
pub(super) fn test(hook: Hook) -> &'static str {
    match hook {
        Hook::InstanceSelection => SELECTION_TEST,
        Hook::PricingPreference => PRICING_TEST,
        Hook::BootstrapUserData => BOOTSTRAP_TEST,
    }
}

const SELECTION_TEST: &str = r#"{
  "name": "a family that is liked comes first",
  "config": { "weights": { "ecs.g7": 1 } },
  "types": [["ecs.c7.large", "amd64", 300000], ["ecs.g7.large", "amd64", 400000]],
  "answer": { "order": ["ecs.g7.large", "ecs.c7.large"], "excluded": [] }
}
"#;

const PRICING_TEST: &str = r#"{
  "name": "a discount changes the price of its family",
  "config": { "percentOff": { "ecs.g7": 60 } },
  "types": [["ecs.c7.large", "amd64", 300000], ["ecs.g7.large", "amd64", 400000]],
  "answer": { "prices": { "ecs.g7.large": 160000 } }
}
"#;

const BOOTSTRAP_TEST: &str = r##"{
  "name": "a sysctl comes before the script that joins",
  "config": { "sysctls": { "vm.swappiness": "1" } },
  "answer": {
    "scripts": [
      "#!/bin/bash\nset -e\ncat > /etc/sysctl.d/90-kerf.conf <<'END'\nvm.swappiness = 1\nEND\nsysctl --system\n",
      "#!/bin/bash\n/bin/true --token __KERF_JOIN_TOKEN__\n"
    ]
  }
}
"##;

/// The sources of the reference policy.
pub(super) fn example(language: Language, hook: Hook) -> &'static [File] {
    match (language, hook) {
        (Language::Rust, Hook::InstanceSelection) => {
            files!("examples/rust/prefer-family": "src/lib.rs" "src/config-schema.json")
        }
        (Language::Rust, Hook::PricingPreference) => {
            files!("examples/rust/family-discount": "src/lib.rs" "src/config-schema.json")
        }
        (Language::Rust, Hook::BootstrapUserData) => {
            files!("examples/rust/node-tuning": "src/lib.rs" "src/config-schema.json")
        }
        (Language::JavaScript, Hook::InstanceSelection) => {
            files!("examples/js/prefer-family": "policy.js")
        }
        (Language::JavaScript, Hook::PricingPreference) => {
            files!("examples/js/family-discount": "policy.js")
        }
        (Language::JavaScript, Hook::BootstrapUserData) => {
            files!("examples/js/node-tuning": "policy.js")
        }
        (Language::Python, Hook::InstanceSelection) => {
            files!("examples/python/prefer-family": "policy.py")
        }
        (Language::Python, Hook::PricingPreference) => {
            files!("examples/python/family-discount": "policy.py")
        }
        (Language::Python, Hook::BootstrapUserData) => {
            files!("examples/python/node-tuning": "policy.py")
        }
        (Language::Go, Hook::InstanceSelection) => {
            files!("examples/go/prefer-family": "main.go" "go.mod" "go.sum" "config-schema.json")
        }
        (Language::Go, Hook::PricingPreference) => {
            files!("examples/go/family-discount": "main.go" "go.mod" "go.sum" "config-schema.json")
        }
        (Language::Go, Hook::BootstrapUserData) => {
            files!("examples/go/node-tuning": "main.go" "go.mod" "go.sum" "config-schema.json")
        }
        (Language::C, Hook::InstanceSelection) => {
            files!("examples/c/prefer-family": "policy.c" "config-schema.json")
        }
        (Language::C, Hook::PricingPreference) => {
            files!("examples/c/family-discount": "policy.c" "config-schema.json")
        }
        (Language::C, Hook::BootstrapUserData) => {
            files!("examples/c/node-tuning": "policy.c" "config-schema.json")
        }
    }
}

/// What a project of the language has besides. Rust's manifest names the example, as its sources do.
pub(super) fn project(language: Language, hook: Hook) -> Option<(&'static str, String)> {
    match language {
        Language::Rust => {
            let text = RUST_MANIFEST.replace("EXAMPLE", example_name(hook));
            Some(("Cargo.toml", text))
        }
        Language::JavaScript => Some((
            "package.json",
            include_str!("../../../../plugins/sdk/js/package.json").to_owned(),
        )),
        Language::Python | Language::Go | Language::C => None,
    }
}

/// The SDK, below [`SDK_FOLDER`].
pub(super) fn sdk(language: Language, hook: Hook) -> &'static [File] {
    match (language, hook) {
        (Language::Rust, _) => RUST,
        (Language::JavaScript, _) => files!("sdk/js": "kerf-policy.js"),
        (Language::Python, _) => files!("sdk/python": "kerf_policy.py" "requirements.txt"),
        (Language::Go, Hook::InstanceSelection) => GO_SELECTION,
        (Language::Go, Hook::PricingPreference) => GO_PRICING,
        (Language::Go, Hook::BootstrapUserData) => GO_BOOTSTRAP,
        (Language::C, Hook::InstanceSelection) => C_SELECTION,
        (Language::C, Hook::PricingPreference) => C_PRICING,
        (Language::C, Hook::BootstrapUserData) => C_BOOTSTRAP,
    }
}

const RUST: &[File] = files!("sdk/rust":
    "Cargo.toml" "bindings/bootstrap/Cargo.toml" "bindings/bootstrap/src/lib.rs" "bindings/pricing/Cargo.toml"
    "bindings/pricing/src/lib.rs" "bindings/selection/Cargo.toml" "bindings/selection/src/lib.rs"
    "src/export.rs" "src/lib.rs" "src/policy.rs");
const GO_SELECTION: &[File] = files!("sdk/go":
    "go.mod" "go.sum" "policy.go" "selection/export_kerf_policy_instance_selection/export.go"
    "selection/export_kerf_policy_lifecycle/export.go" "selection/kerf_policy_instance_selection/empty.s"
    "selection/kerf_policy_instance_selection/wit_bindings.go" "selection/kerf_policy_lifecycle/empty.s"
    "selection/kerf_policy_lifecycle/wit_bindings.go" "selection/kerf_policy_log/empty.s"
    "selection/kerf_policy_log/wit_bindings.go" "selection/kerf_policy_types/empty.s"
    "selection/kerf_policy_types/wit_bindings.go" "selection/selection.go"
    "selection/wit_exports/wit_exports.go");
const GO_PRICING: &[File] = files!("sdk/go":
    "go.mod" "go.sum" "policy.go" "pricing/export_kerf_policy_lifecycle/export.go"
    "pricing/export_kerf_policy_pricing_preference/export.go" "pricing/kerf_policy_lifecycle/empty.s"
    "pricing/kerf_policy_lifecycle/wit_bindings.go" "pricing/kerf_policy_log/empty.s"
    "pricing/kerf_policy_log/wit_bindings.go" "pricing/kerf_policy_pricing_preference/empty.s"
    "pricing/kerf_policy_pricing_preference/wit_bindings.go" "pricing/kerf_policy_types/empty.s"
    "pricing/kerf_policy_types/wit_bindings.go" "pricing/pricing.go" "pricing/wit_exports/wit_exports.go");
const GO_BOOTSTRAP: &[File] = files!("sdk/go":
    "go.mod" "go.sum" "policy.go" "bootstrap/bootstrap.go"
    "bootstrap/export_kerf_policy_bootstrap_userdata/export.go"
    "bootstrap/export_kerf_policy_lifecycle/export.go" "bootstrap/kerf_policy_bootstrap_userdata/empty.s"
    "bootstrap/kerf_policy_bootstrap_userdata/wit_bindings.go" "bootstrap/kerf_policy_lifecycle/empty.s"
    "bootstrap/kerf_policy_lifecycle/wit_bindings.go" "bootstrap/kerf_policy_log/empty.s"
    "bootstrap/kerf_policy_log/wit_bindings.go" "bootstrap/kerf_policy_types/empty.s"
    "bootstrap/kerf_policy_types/wit_bindings.go" "bootstrap/wit_exports/wit_exports.go");
const C_SELECTION: &[File] = files!("sdk/c":
    "kerf_common.h" "kerf_json.h" "kerf_selection.h" "bindings/selection_plugin.h"
    "bindings/selection_plugin.c");
const C_PRICING: &[File] = files!("sdk/c":
    "kerf_common.h" "kerf_json.h" "kerf_pricing.h" "bindings/pricing_plugin.h" "bindings/pricing_plugin.c");
const C_BOOTSTRAP: &[File] = files!("sdk/c":
    "kerf_common.h" "kerf_json.h" "kerf_bootstrap.h" "bindings/bootstrap_plugin.h"
    "bindings/bootstrap_plugin.c");

const RUST_MANIFEST: &str = r#"[package]
name = "EXAMPLE"
version = "0.1.0"
edition = "2024"
publish = false

[lib]
crate-type = ["cdylib"]

[dependencies]
kerf-policy-sdk = { path = "kerf-sdk" }
serde = { version = "1.0.229", default-features = false, features = ["std", "derive"] }

[workspace]
members = ["kerf-sdk", "kerf-sdk/bindings/*"]

[workspace.package]
version = "0.1.0"
edition = "2024"
rust-version = "1.95"
license = "Apache-2.0"
publish = false

[workspace.dependencies]
kerf-policy-bindings-bootstrap = { path = "kerf-sdk/bindings/bootstrap" }
kerf-policy-bindings-pricing = { path = "kerf-sdk/bindings/pricing" }
kerf-policy-bindings-selection = { path = "kerf-sdk/bindings/selection" }
serde = { version = "1.0.229", default-features = false, features = ["std", "derive"] }
serde_json = { version = "1.0.154", default-features = false, features = ["std"] }
wit-bindgen = { version = "0.61.1", default-features = false, features = ["macros", "realloc"] }

[profile.release]
opt-level = "s"
lto = true
codegen-units = 1
panic = "abort"
strip = "debuginfo"
"#;
