//! The part that makes an instance a node: ACK's attach script with our arguments, or the class's join template.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kerf_core::taint::Taint;

use crate::provider::bootstrap::{BootstrapError, JoinSettings};

/// Flags of the attach script whose values are secrets.
const SECRET_FLAGS: [&str; 2] = ["--token", "--openapi-token"];
const SHEBANG: &str = "#!/bin/bash";

/// A join part with its secrets apart.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinScript {
    text: String,
    secrets: Vec<(String, String)>,
}

impl fmt::Debug for JoinScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinScript")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl JoinScript {
    /// From ACK's attach script.
    ///
    /// # Errors
    /// When a label or taint cannot be written into a shell command.
    pub fn from_attach_script(
        script: &str,
        settings: &JoinSettings<'_>,
    ) -> Result<Self, BootstrapError> {
        let mut command = Command::find(script);
        let mut labels = labels(settings)?;
        labels.splice(0..0, valid_labels(&command.take_flag("--labels")));
        let mut taints: Vec<_> = command
            .take_flag("--taints")
            .split(',')
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect();
        taints.extend(self::taints(settings)?);
        // Given twice, the script would take one of the two, and which is not documented.
        command.take_flag("--node-config");
        command.append(&format!("--labels {}", labels.join(",")));
        command.append(&format!("--taints {}", unique(taints).join(",")));
        command.append(&format!("--node-config {}", node_config(settings)?));
        Ok(Self::hide_secrets(&command.into_script()))
    }

    /// From the class's own template, in which `{{labels}}`, `{{taints}}`, `{{nodeConfig}}`, `{{maxPods}}`,
    /// `{{clusterName}}` and `{{clusterEndpoint}}` are replaced.
    ///
    /// # Errors
    /// When the template has no place for the taints, or as above.
    pub fn from_template(
        template: &str,
        settings: &JoinSettings<'_>,
    ) -> Result<Self, BootstrapError> {
        if !template.contains("{{taints}}") {
            return Err(BootstrapError::TemplateWithoutTaints);
        }
        let max_pods = settings.kubelet.max_pods.unwrap_or_default();
        let text = template
            .replace('\r', "")
            .replace("{{labels}}", &labels(settings)?.join(","))
            .replace("{{taints}}", &unique(taints(settings)?).join(","))
            .replace("{{nodeConfig}}", &node_config(settings)?)
            .replace("{{maxPods}}", &max_pods.to_string())
            .replace(
                "{{clusterName}}",
                word("clusterName", settings.cluster_name)?,
            )
            .replace(
                "{{clusterEndpoint}}",
                word("clusterEndpoint", settings.cluster_endpoint)?,
            );
        Ok(Self {
            text: with_shebang(&text),
            secrets: Vec::new(),
        })
    }

    /// The script with placeholders where secrets go.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Puts the secrets into a text that was made from this script.
    pub(super) fn fill(&self, text: &str) -> String {
        let fill = |text: String, (place, secret): &(String, String)| text.replace(place, secret);
        self.secrets.iter().fold(text.to_owned(), fill)
    }

    /// By how many bytes the secrets are longer than their placeholders.
    pub(crate) fn secret_growth(&self) -> usize {
        self.fill(&self.text).len().saturating_sub(self.text.len())
    }

    fn hide_secrets(script: &str) -> Self {
        let mut text = with_shebang(script);
        let mut secrets = Vec::new();
        for flag in SECRET_FLAGS {
            if let Some(value) = flag_value(&text, flag).filter(|value| !value.is_empty()) {
                let place = format!("{{{{kerf:secret{flag}}}}}");
                text = text.replace(&value, &place);
                secrets.push((place, value));
            }
        }
        Self { text, secrets }
    }
}

/// The command in a script that arguments are added to.
struct Command {
    before: String,
    command: String,
    after: String,
}

impl Command {
    /// The logical line that runs the attach script; the whole text if there is none to be seen.
    fn find(script: &str) -> Self {
        let mark = ["attach_node.sh", "bash -s"]
            .into_iter()
            .find_map(|mark| script.find(mark));
        let (start, end) = match mark {
            Some(at) => {
                let start = script[..at].rfind('\n').map_or(0, |line| line + 1);
                (start, start + logical_line_length(&script[start..]))
            }
            None => (0, script.len()),
        };
        Self {
            before: script[..start].to_owned(),
            command: script[start..end]
                .trim_end()
                .trim_end_matches('\\')
                .trim_end()
                .to_owned(),
            after: script[end..].to_owned(),
        }
    }

    /// Removes a flag with its value and gives the value.
    fn take_flag(&mut self, flag: &str) -> String {
        let Some(value) = flag_value(&self.command, flag) else {
            return String::new();
        };
        let Some(at) = flag_at(&self.command, flag) else {
            return String::new();
        };
        let rest = &self.command[at + flag.len()..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '=', '\t']).len();
        let end = at + flag.len() + skipped + value.len();
        self.command.replace_range(at..end, "");
        value.trim_matches(['\'', '"']).to_owned()
    }

    fn append(&mut self, arguments: &str) {
        self.command.push(' ');
        self.command.push_str(arguments);
    }

    fn into_script(self) -> String {
        format!("{}{}{}", self.before, self.command, self.after)
    }
}

/// Up to the first line end that no backslash continues.
fn logical_line_length(text: &str) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    let is_end = |at: &usize| !text[..*at].trim_end_matches([' ', '\t']).ends_with('\\');
    ends.into_iter().find(is_end).unwrap_or(text.len())
}

fn flag_at(text: &str, flag: &str) -> Option<usize> {
    let is_flag = |at: &usize| {
        let before = text[..*at].chars().next_back();
        let after = text[at + flag.len()..].chars().next();
        before.is_none_or(char::is_whitespace)
            && after.is_none_or(|c| c.is_whitespace() || c == '=')
    };
    text.match_indices(flag).map(|(at, _)| at).find(is_flag)
}

/// The word after a flag; empty if another flag follows at once.
fn flag_value(text: &str, flag: &str) -> Option<String> {
    let rest = &text[flag_at(text, flag)? + flag.len()..];
    let rest = rest.trim_start_matches([' ', '=', '\t']);
    let word: String = rest.chars().take_while(|c| !c.is_whitespace()).collect();
    Some(if word.starts_with("--") || word == "\\" {
        String::new()
    } else {
        word
    })
}

fn with_shebang(script: &str) -> String {
    let script = script.trim();
    if script.starts_with("#!") {
        format!("{script}\n")
    } else {
        format!("{SHEBANG}\n{script}\n")
    }
}

/// The pairs of the script's own labels that Kubernetes accepts; ACK has put others in.
fn valid_labels(text: &str) -> Vec<String> {
    let is_valid = |pair: &&str| {
        pair.split_once('=')
            .is_some_and(|(key, value)| is_name(key) && !key.is_empty() && is_name(value))
    };
    text.split(',')
        .filter(is_valid)
        .map(str::to_owned)
        .collect()
}

fn labels(settings: &JoinSettings<'_>) -> Result<Vec<String>, BootstrapError> {
    let mut all = Vec::new();
    if !settings.cluster_id.is_empty() {
        // By these ACK's own components know a node of theirs.
        all.push("k8s.aliyun.com=true".to_owned());
        all.push(format!("ack.aliyun.com={}", settings.cluster_id));
    }
    for (key, value) in &settings.node.labels {
        let pair = format!("{key}={value}");
        if !(is_name(key) && is_name(value)) {
            return Err(BootstrapError::Unsafe {
                what: "label",
                value: pair,
            });
        }
        if may_kubelet_set(key) {
            all.push(pair);
        }
    }
    Ok(all)
}

/// The kubelet refuses to start with labels of Kubernetes' own domains other than these; the controller sets the rest
/// when the node registers.
fn may_kubelet_set(key: &str) -> bool {
    const ALLOWED: [&str; 11] = [
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    ];
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_of = |parent: &str| {
        domain == parent
            || domain
                .strip_suffix(parent)
                .is_some_and(|rest| rest.ends_with('.'))
    };
    let is_kubernetes = is_of("kubernetes.io") || is_of("k8s.io");
    !is_kubernetes
        || ALLOWED.contains(&key)
        || is_of("node.kubernetes.io")
        || is_of("kubelet.kubernetes.io")
}

fn taints(settings: &JoinSettings<'_>) -> Result<Vec<String>, BootstrapError> {
    let node = settings.node;
    let unregistered = Taint::unregistered();
    let all = node
        .taints
        .iter()
        .chain(&node.startup_taints)
        .chain([&unregistered]);
    let texts = all.map(|taint| {
        if is_name(&taint.key) && is_name(&taint.value) {
            Ok(taint.to_string())
        } else {
            Err(BootstrapError::Unsafe {
                what: "taint",
                value: taint.to_string(),
            })
        }
    });
    texts.collect()
}

fn unique(mut texts: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

/// Characters of label keys and values, all harmless in a shell.
fn is_name(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
}

/// A value of the class that goes into the script as it is.
fn word<'a>(what: &'static str, value: &'a str) -> Result<&'a str, BootstrapError> {
    let is_harmless =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '[' | ']');
    if value.chars().all(is_harmless) {
        Ok(value)
    } else {
        Err(BootstrapError::Unsafe {
            what,
            value: value.to_owned(),
        })
    }
}

fn node_config(settings: &JoinSettings<'_>) -> Result<String, BootstrapError> {
    let config = serde_json::json!({ "kubelet_config": settings.kubelet });
    let text = serde_json::to_string(&config).map_err(|error| BootstrapError::Kubelet {
        detail: error.to_string(),
    })?;
    Ok(STANDARD.encode(text))
}

#[cfg(test)]
mod tests;
