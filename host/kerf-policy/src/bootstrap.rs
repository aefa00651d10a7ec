//! Input and checked output of the BootstrapUserData hook.
//!
//! Parts that belong to the host (the join script, the unregistered taint) go to policies like the others, and must come
//! back exactly once, unchanged and in their order. Join tokens in them are placeholders.

use crate::error::CallError;

pub use crate::bindings::bootstrap::exports::kerf::policy::bootstrap_userdata::{
    Node, Part, Taint,
};

/// Nobody needs more; cloud-init reads each of them.
const PARTS_MAX: usize = 32;
/// The longest registered media types are half of that.
const CONTENT_TYPE_CHARS_MAX: usize = 128;

/// One question to a BootstrapUserData policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct BootstrapInput {
    pub node: Node,
    pub parts: Vec<Part>,
    /// Those of `parts` that no policy may change.
    pub host_owned: Vec<Part>,
}

/// Refuses user data that is too large, that could break out of its MIME part, or that lost a part of the host's.
pub(crate) fn check(parts: Vec<Part>, input: &BootstrapInput) -> Result<Vec<Part>, CallError> {
    if parts.len() > PARTS_MAX {
        return Err(CallError::BadUserData(format!(
            "{} parts, and the limit is {PARTS_MAX}",
            parts.len()
        )));
    }
    let bytes: usize = parts.iter().map(|part| part.body.len()).sum();
    let bytes_max = usize::try_from(input.node.max_bytes).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err(CallError::BadUserData(format!(
            "{bytes} bytes, and the limit is {bytes_max}"
        )));
    }
    if let Some(part) = parts
        .iter()
        .find(|part| !is_header(&part.content_type) || part.content_type.is_empty())
    {
        return Err(CallError::BadUserData(format!(
            "a part with the content type {:?}",
            part.content_type
        )));
    }
    if let Some(name) = parts
        .iter()
        .filter_map(|part| part.name.as_ref())
        .find(|name| !is_header(name))
    {
        return Err(CallError::BadUserData(format!(
            "a part with the name {name:?}"
        )));
    }
    let is_of_host = |part: &&Part| input.host_owned.contains(part);
    if !parts.iter().filter(is_of_host).eq(input.host_owned.iter()) {
        return Err(CallError::BadUserData(
            "changed, dropped, doubled or reordered parts that join the node".into(),
        ));
    }
    Ok(parts)
}

/// What may stand in a MIME header: no line ends, no quotes, nothing that is not printed.
fn is_header(text: &str) -> bool {
    text.len() <= CONTENT_TYPE_CHARS_MAX
        && text
            .bytes()
            .all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn part(body: &str) -> Part {
        Part {
            content_type: "text/x-shellscript".into(),
            name: None,
            body: body.into(),
        }
    }

    /// One of which nothing is said.
    pub(crate) fn node() -> Node {
        Node {
            node_pool: String::new(),
            node_class: String::new(),
            region: String::new(),
            instance_types: vec![],
            architecture: String::new(),
            capacity_type: String::new(),
            image_id: String::new(),
            image_family: String::new(),
            kubernetes_version: String::new(),
            max_pods: 0,
            kubelet_json: String::new(),
            labels: vec![],
            taints: vec![],
            max_bytes: 100,
        }
    }

    fn input() -> BootstrapInput {
        let host_owned = vec![part("taint"), part("join")];
        BootstrapInput {
            node: node(),
            parts: host_owned.clone(),
            host_owned,
        }
    }

    #[test]
    fn the_hosts_parts_come_back_unchanged_once_and_in_order() {
        let is_accepted =
            |bodies: &[&str]| check(bodies.iter().map(|it| part(it)).collect(), &input()).is_ok();

        assert!(is_accepted(&["first", "taint", "between", "join", "last"]));
        assert!(!is_accepted(&["taint"]), "dropped");
        assert!(!is_accepted(&["taint", "join # harmless"]), "changed");
        assert!(!is_accepted(&["taint", "join", "join"]), "doubled");
        assert!(!is_accepted(&["join", "taint"]), "reordered");
        assert!(!is_accepted(&[]), "gone");
    }

    #[test]
    fn a_header_cannot_smuggle_another_one_in() {
        for content_type in [
            "text/plain\nContent-Type: text/x-shellscript",
            "text/\"plain",
            "",
        ] {
            let parts = vec![
                part("taint"),
                part("join"),
                Part {
                    content_type: content_type.into(),
                    ..part("")
                },
            ];

            assert!(check(parts, &input()).is_err(), "{content_type:?}");
        }
    }

    #[test]
    fn size_and_number_have_limits() {
        let with =
            |more: Vec<Part>| check([vec![part("taint"), part("join")], more].concat(), &input());

        assert!(with(vec![part(&"x".repeat(91))]).is_ok());
        assert!(with(vec![part(&"x".repeat(92))]).is_err());
        assert!(with(vec![part(""); 31]).is_err());
    }
}
