//! Adds a script to the user data that sets sysctls and points containerd at a registry mirror, before the node joins.

use kerf_policy_sdk::{
    About, BootstrapPolicy, ConfigError, Node, Part, PolicyError, export_bootstrap,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

struct NodeTuning;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    sysctls: BTreeMap<String, String>,
    registry_mirror: Option<String>,
}

impl BootstrapPolicy for NodeTuning {
    type Config = Config;

    fn about() -> About {
        About {
            name: "node-tuning",
            version: env!("CARGO_PKG_VERSION"),
            summary: "sets sysctls and a registry mirror on new nodes",
            config_schema: include_str!("config-schema.json"),
            default_config: "{}",
            time_step_secs: 0,
        }
    }

    /// What goes into a script that root runs is checked letter by letter.
    fn check(config: &Config) -> Vec<ConfigError> {
        let is_plain = |text: &str, more: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let mut errors = Vec::new();
        for (name, value) in &config.sysctls {
            if !is_plain(name, "._-/") || !is_plain(value, "._- ") {
                let message = "has characters that a sysctl does not have".into();
                errors.push(ConfigError {
                    path: format!("/sysctls/{name}"),
                    message,
                });
            }
        }
        if let Some(mirror) = &config.registry_mirror
            && !(mirror.starts_with("https://") && is_plain(&mirror[8..], ".-:/_"))
        {
            let message = "must be an https address, such as https://mirror.example.com".into();
            errors.push(ConfigError {
                path: "/registryMirror".into(),
                message,
            });
        }
        errors
    }

    fn render(
        config: &Config,
        _node: &Node,
        mut parts: Vec<Part>,
    ) -> Result<Vec<Part>, PolicyError> {
        if Self::check(config).is_empty() {
            parts.insert(
                0,
                Part {
                    content_type: "text/x-shellscript".into(),
                    name: None,
                    body: script(config),
                },
            );
            return Ok(parts);
        }
        Err(PolicyError::InvalidConfig("see validate-config".into()))
    }
}

fn script(config: &Config) -> String {
    let mut body = String::from("#!/bin/bash\nset -e\n");
    if !config.sysctls.is_empty() {
        body.push_str("cat > /etc/sysctl.d/90-kerf.conf <<'END'\n");
        for (name, value) in &config.sysctls {
            // Writing to a String cannot fail.
            let _ = writeln!(body, "{name} = {value}");
        }
        body.push_str("END\nsysctl --system\n");
    }
    if let Some(mirror) = &config.registry_mirror {
        body.push_str("mkdir -p /etc/containerd/certs.d/docker.io\n");
        body.push_str("cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'\n");
        let _ = writeln!(
            body,
            "server = \"https://registry-1.docker.io\"\n[host.\"{mirror}\"]"
        );
        body.push_str("capabilities = [\"pull\", \"resolve\"]\nEND\n");
    }
    body
}

export_bootstrap!(NodeTuning);
