//! Putting the parts together: a plain script when the join is all there is, else a MIME archive in which it is last.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::provider::bootstrap::{BootstrapError, JoinScript, USER_DATA_BYTES_MAX, UserDataPart};
use crate::rpc::sign::sha256_hex;

/// User data with placeholders where the secrets go.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData {
    text: String,
    join: JoinScript,
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserData")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl UserData {
    /// Without secrets: safe to show and to hash.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// With secrets, as the API takes it.
    ///
    /// # Errors
    /// When it is larger than an instance takes.
    pub fn encode(&self) -> Result<String, BootstrapError> {
        let text = self.join.fill(&self.text);
        let bytes = text.len();
        if bytes > USER_DATA_BYTES_MAX {
            return Err(BootstrapError::TooLarge { bytes });
        }
        Ok(STANDARD.encode(text))
    }
}

/// The user's part first, then the other parts, the join last.
#[must_use]
pub fn compose(user: &str, parts: &[UserDataPart], join: JoinScript) -> UserData {
    let user = user.trim();
    if user.is_empty() && parts.is_empty() {
        return UserData {
            text: join.text().to_owned(),
            join,
        };
    }
    let mut bodies = Vec::new();
    if !user.is_empty() {
        bodies.push(user_body(user));
    }
    bodies.extend(
        parts
            .iter()
            .map(|part| body(&part.content_type, &part.content)),
    );
    bodies.push(body("text/x-shellscript", join.text()));
    UserData {
        text: archive(&bodies),
        join,
    }
}

/// The user's text as a part: an archive of its own is nested as it is, anything else by its first line.
fn user_body(user: &str) -> String {
    let first = user.lines().next().unwrap_or("");
    let has_headers = ["content-type:", "mime-version:"]
        .iter()
        .any(|header| first.to_lowercase().starts_with(header));
    if has_headers {
        return format!("{}\n", user.replace('\r', ""));
    }
    let content_type = if first.starts_with("#cloud-config") {
        "text/cloud-config"
    } else {
        "text/x-shellscript"
    };
    let is_script = content_type == "text/x-shellscript";
    if is_script && !first.starts_with("#!") {
        return body(content_type, &format!("#!/bin/bash\n{user}"));
    }
    body(content_type, user)
}

fn body(content_type: &str, content: &str) -> String {
    let content = content.replace('\r', "");
    let content = content.trim_end();
    format!("Content-Type: {content_type}; charset=\"utf-8\"\nMIME-Version: 1.0\n\n{content}\n")
}

fn archive(bodies: &[String]) -> String {
    // Of the content, so that the same parts give the same text, and so that no part can hold it.
    let boundary = format!("kerf-{}", &sha256_hex(bodies.concat().as_bytes())[..24]);
    let parts: String = bodies
        .iter()
        .map(|body| format!("--{boundary}\n{body}\n"))
        .collect();
    format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n{parts}--{boundary}--\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::bootstrap::{JoinSettings, NodeSettings};
    use crate::provider::class::KubeletSettings;

    fn join() -> JoinScript {
        let node = NodeSettings::default();
        let kubelet = KubeletSettings::default();
        let settings = JoinSettings {
            cluster_id: "",
            node: &node,
            kubelet: &kubelet,
        };
        let script = "curl http://x/attach_node.sh | bash -s -- --token s3cr3t";
        JoinScript::from_attach_script(script, &settings).unwrap()
    }

    /// The content types of the parts, in order.
    fn kinds(text: &str) -> Vec<&str> {
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("Content-Type: "));
        lines.map(|line| line.split(';').next().unwrap()).collect()
    }

    #[test]
    fn the_join_alone_is_a_plain_script() {
        let data = compose("  \n", &[], join());

        assert!(data.text().starts_with("#!/bin/bash\ncurl "));
        let sent = String::from_utf8(STANDARD.decode(data.encode().unwrap()).unwrap()).unwrap();
        assert!(sent.contains("--token s3cr3t"));
        assert!(!data.text().contains("s3cr3t"));
        assert!(!format!("{data:?}").contains("s3cr3t"));
    }

    #[test]
    fn the_users_part_is_first_and_the_join_is_last() {
        let policy = UserDataPart {
            content_type: "text/cloud-config".to_owned(),
            content: "#cloud-config\n{}".to_owned(),
        };

        let data = compose("echo hello\r\n", &[policy], join());

        let shell = "text/x-shellscript";
        assert_eq!(
            kinds(data.text()),
            ["multipart/mixed", shell, "text/cloud-config", shell]
        );
        let hello = data.text().find("#!/bin/bash\necho hello\n").unwrap();
        assert!(hello < data.text().find("attach_node.sh").unwrap());
        assert!(!data.text().contains('\r'));
    }

    #[test]
    fn an_archive_of_the_user_is_nested_as_it_is() {
        let user = "Content-Type: multipart/mixed; boundary=\"B\"\nMIME-Version: 1.0\n\n--B\nContent-Type: text/cloud-config\n\n#cloud-config\n--B--";

        let data = compose(user, &[], join());

        let expected = [
            "multipart/mixed",
            "multipart/mixed",
            "text/cloud-config",
            "text/x-shellscript",
        ];
        assert_eq!(kinds(data.text()), expected);
    }

    #[test]
    fn more_than_an_instance_takes_is_refused_before_the_call() {
        let data = compose(&"#".repeat(USER_DATA_BYTES_MAX), &[], join());

        assert!(matches!(
            data.encode(),
            Err(BootstrapError::TooLarge { .. })
        ));
    }
}
