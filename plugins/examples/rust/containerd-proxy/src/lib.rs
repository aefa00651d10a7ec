//! Lets containerd pull images through a proxy, before the node joins.

use kerf_policy_sdk::{
    About, BootstrapPolicy, ConfigError, Node, Part, PolicyError, export_bootstrap,
};
use serde::Deserialize;

struct ContainerdProxy;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    proxy: String,
    no_proxy: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            proxy: "http://proxy.internal:3128".into(),
            no_proxy: Vec::new(),
        }
    }
}

impl BootstrapPolicy for ContainerdProxy {
    type Config = Config;

    fn about() -> About {
        About {
            name: "containerd-proxy",
            version: env!("CARGO_PKG_VERSION"),
            summary: "lets containerd pull images through a proxy",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"proxy":"http://proxy.internal:3128","noProxy":["10.0.0.0/8","169.254.0.0/16",".svc",".cluster.local"]}"#,
            time_step_secs: 0,
        }
    }

    /// What goes into a script that root runs is checked letter by letter.
    fn check(config: &Config) -> Vec<ConfigError> {
        let is_plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-_:/[]*".contains(c))
        };
        let is_address =
            config.proxy.starts_with("http://") || config.proxy.starts_with("https://");
        let mut errors = Vec::new();
        if !is_address || !is_plain(&config.proxy) {
            let message = "must be an address such as http://proxy.internal:3128".into();
            errors.push(ConfigError {
                path: "/proxy".into(),
                message,
            });
        }
        for (place, name) in config
            .no_proxy
            .iter()
            .enumerate()
            .filter(|(_, name)| !is_plain(name))
        {
            let message = format!("{name:?} is no host, domain or network");
            errors.push(ConfigError {
                path: format!("/noProxy/{place}"),
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
        if let Some(error) = Self::check(config).first() {
            return Err(PolicyError::InvalidConfig(format!(
                "{} {}",
                error.path, error.message
            )));
        }
        let part = Part {
            content_type: "text/x-shellscript".into(),
            name: None,
            body: script(config),
        };
        // Before the part that joins.
        parts.insert(0, part);
        Ok(parts)
    }
}

fn script(config: &Config) -> String {
    let (proxy, direct) = (&config.proxy, config.no_proxy.join(","));
    format!(
        "#!/bin/bash\nset -e\nmkdir -p /etc/systemd/system/containerd.service.d\n\
         cat > /etc/systemd/system/containerd.service.d/90-kerf-proxy.conf <<'END'\n[Service]\n\
         Environment=HTTP_PROXY={proxy}\nEnvironment=HTTPS_PROXY={proxy}\nEnvironment=NO_PROXY={direct}\nEND\n\
         systemctl daemon-reload\nsystemctl try-restart containerd\n"
    )
}

export_bootstrap!(ContainerdProxy);
