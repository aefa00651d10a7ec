//! User data as cloud-init understands it: what to write and what to run, decided before anything is done.
//!
//! Follows cloud-init: `#!` scripts, `#cloud-config` (write_files and runcmd) and MIME archives of both. Files are written
//! first; then scripts run in the order of their names, which is the order of the parts unless a part brings a name.

mod mime;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

use mime::Part;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BootPlan {
    pub(crate) files: Vec<PlannedFile>,
    pub(crate) scripts: Vec<Script>,
    /// What cloud-init would warn of and leave out.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) append: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CloudConfig {
    write_files: Vec<WriteFile>,
    runcmd: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct WriteFile {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: String,
    #[serde(default)]
    permissions: Option<Value>,
    #[serde(default)]
    append: bool,
}

impl BootPlan {
    pub(crate) fn read(user_data: &[u8]) -> Self {
        let mut plan = Self::default();
        let text = String::from_utf8_lossy(user_data);
        if user_data.starts_with(&[0x1f, 0x8b]) {
            plan.warn("compressed user data is not simulated");
        } else if text.trim().is_empty() {
            plan.warn("there is no user data");
        } else if let Some(parts) = mime::split(&text) {
            for (i, part) in parts.into_iter().enumerate() {
                plan.add(part, i + 1);
            }
        } else {
            plan.add(
                Part {
                    content_type: "text/plain".to_owned(),
                    file_name: None,
                    body: user_data.to_vec(),
                },
                1,
            );
        }
        plan.scripts.sort_by(|a, b| a.name.cmp(&b.name));
        plan
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    fn add(&mut self, part: Part, number: usize) {
        let content_type = match part.content_type.as_str() {
            "text/plain" | "text/x-not-multipart" => type_by_first_line(&part.body),
            declared => declared,
        };
        match content_type {
            "text/x-shellscript" => {
                let name = part
                    .file_name
                    .unwrap_or_else(|| format!("part-{number:03}"));
                self.scripts.push(Script {
                    name: name.replace('/', "_"),
                    body: part.body,
                });
            }
            "text/cloud-config" => self.add_config(&part.body),
            other => {
                let first_line: String = String::from_utf8_lossy(&part.body)
                    .chars()
                    .take_while(|c| *c != '\n')
                    .take(60)
                    .collect();
                self.warn(format!(
                    "unhandled part {number} of type {other}: {first_line:?}"
                ));
            }
        }
    }

    fn add_config(&mut self, body: &[u8]) {
        let config: CloudConfig = match serde_saphyr::from_str(&String::from_utf8_lossy(body)) {
            Ok(config) => config,
            Err(error) => return self.warn(format!("failed loading cloud-config: {error}")),
        };
        for file in config.write_files {
            match planned(file) {
                Ok(file) => self.files.push(file),
                Err(warning) => self.warn(warning),
            }
        }
        if !config.runcmd.is_empty() {
            self.scripts.push(Script {
                name: "runcmd".to_owned(),
                body: runcmd(&config.runcmd).into_bytes(),
            });
        }
    }
}

fn type_by_first_line(body: &[u8]) -> &'static str {
    if body.starts_with(b"#!") {
        "text/x-shellscript"
    } else if body.starts_with(b"#cloud-config") {
        "text/cloud-config"
    } else {
        "text/x-not-multipart"
    }
}

fn planned(file: WriteFile) -> Result<PlannedFile, String> {
    let content = match file.encoding.as_str() {
        "" | "text/plain" => file.content.into_bytes(),
        "b64" | "base64" => {
            let packed: String = file.content.split_whitespace().collect();
            STANDARD
                .decode(packed)
                .map_err(|_| format!("{}: content is not base64", file.path))?
        }
        other => return Err(format!("{}: encoding {other} is not simulated", file.path)),
    };
    let mode = match &file.permissions {
        None => 0o644,
        Some(Value::String(octal)) => {
            u32::from_str_radix(octal.trim_start_matches("0o"), 8).unwrap_or(0o644)
        }
        // An unquoted 0644 arrives as a number; its digits are the octal digits.
        Some(other) => u32::from_str_radix(&other.to_string(), 8).unwrap_or(0o644),
    };
    Ok(PlannedFile {
        path: file.path,
        content,
        mode,
        append: file.append,
    })
}

fn runcmd(commands: &[Value]) -> String {
    let line = |command: &Value| match command {
        Value::Array(words) => words
            .iter()
            .map(|word| quoted(&plain(word)))
            .collect::<Vec<_>>()
            .join(" "),
        other => plain(other),
    };
    let lines: Vec<_> = commands.iter().map(line).collect();
    format!("#!/bin/sh\n{}\n", lines.join("\n"))
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &BootPlan) -> Vec<&str> {
        plan.scripts
            .iter()
            .map(|script| script.name.as_str())
            .collect()
    }

    #[test]
    fn a_plain_script_is_one_part() {
        let plan = BootPlan::read(b"#!/bin/bash\necho hello\n");

        assert_eq!(names(&plan), ["part-001"]);
        assert_eq!(plan.scripts[0].body, b"#!/bin/bash\necho hello\n");
    }

    #[test]
    fn text_without_a_marker_is_left_out_with_a_warning() {
        let plan = BootPlan::read(b"echo hello\n");

        assert!(plan.scripts.is_empty());
        assert_eq!(
            plan.warnings,
            ["unhandled part 1 of type text/x-not-multipart: \"echo hello\""]
        );
    }

    #[test]
    fn a_mime_archive_has_scripts_and_files() {
        let archive = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=\"==B==\"\r\n\r\n--==B==\r\n\
            Content-Type: text/x-shellscript; charset=\"utf-8\"\r\n\r\n#!/bin/sh\necho one\n\r\n--==B==\r\n\
            Content-Type: text/cloud-config\r\nContent-Transfer-Encoding: base64\r\n\r\n\
            I2Nsb3VkLWNvbmZpZwp3cml0ZV9maWxlczoKLSBwYXRoOiAvZXRjL2EKICBjb250ZW50OiBiCiAg\r\ncGVybWlzc2lvbnM6ICcwNjAwJwo=\r\n\
            --==B==\r\nContent-Type: text/x-shellscript\r\n\r\n#!/bin/sh\necho two\n--==B==--\r\n";
        let plan = BootPlan::read(archive.as_bytes());

        assert_eq!(plan.warnings, Vec::<String>::new());
        assert_eq!(names(&plan), ["part-001", "part-003"]);
        assert_eq!(
            plan.files,
            [PlannedFile {
                path: "/etc/a".to_owned(),
                content: b"b".to_vec(),
                mode: 0o600,
                append: false
            }]
        );
        assert!(plan.scripts[0].body.starts_with(b"#!/bin/sh\necho one\n"));
    }

    #[test]
    fn commands_become_a_script() {
        let plan = BootPlan::read(b"#cloud-config\nruncmd:\n- echo a\n- [echo, \"it's\"]\n");

        assert_eq!(
            String::from_utf8_lossy(&plan.scripts[0].body),
            "#!/bin/sh\necho a\n'echo' 'it'\\''s'\n"
        );
    }
}
