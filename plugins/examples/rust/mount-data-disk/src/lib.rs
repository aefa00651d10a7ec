//! Mounts the data disk of a new node before it joins, and gives it a file system where it has none.

use kerf_policy_sdk::{
    About, BootstrapPolicy, ConfigError, Node, Part, PolicyError, export_bootstrap,
};
use serde::Deserialize;

struct MountDataDisk;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    device: String,
    mount_point: String,
    file_system: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            device: "/dev/vdb".into(),
            mount_point: "/var/lib/containerd".into(),
            file_system: "ext4".into(),
        }
    }
}

impl BootstrapPolicy for MountDataDisk {
    type Config = Config;

    fn about() -> About {
        About {
            name: "mount-data-disk",
            version: env!("CARGO_PKG_VERSION"),
            summary: "mounts the data disk of a new node",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"device":"/dev/vdb","mountPoint":"/var/lib/containerd","fileSystem":"ext4"}"#,
            time_step_secs: 0,
        }
    }

    /// What goes into a script that root runs is checked letter by letter.
    fn check(config: &Config) -> Vec<ConfigError> {
        let is_path = |text: &str| {
            text.len() > 1
                && text.starts_with('/')
                && !text.contains("..")
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        };
        let is_bad = [
            (
                "/device",
                !is_path(&config.device) || !config.device.starts_with("/dev/"),
                "must be a device, such as /dev/vdb",
            ),
            (
                "/mountPoint",
                !is_path(&config.mount_point),
                "must be an absolute path, and not the root",
            ),
            (
                "/fileSystem",
                !["ext4", "xfs"].contains(&&*config.file_system),
                "must be ext4 or xfs",
            ),
        ];
        let bad = is_bad.into_iter().filter(|(_, is_bad, _)| *is_bad);
        bad.map(|(path, _, message)| ConfigError {
            path: path.into(),
            message: message.into(),
        })
        .collect()
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
    let Config {
        device,
        mount_point,
        file_system,
    } = config;
    format!(
        "#!/bin/bash\nset -e\n# A disk with a file system keeps it.\n\
         blkid {device} > /dev/null || mkfs -t {file_system} {device}\nmkdir -p {mount_point}\n\
         grep -q '^{device} ' /etc/fstab || echo '{device} {mount_point} {file_system} defaults,nofail 0 2' >> /etc/fstab\n\
         mountpoint -q {mount_point} || mount {mount_point}\n"
    )
}

export_bootstrap!(MountDataDisk);
