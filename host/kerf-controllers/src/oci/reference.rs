//! `<host>[:port]/<repository>[:tag][@sha256:…]`: which artifact of which registry.

use std::fmt;
use std::str::FromStr;

use super::OciError;

/// Longer ones are refused by registries (distribution specification: 255 characters with the host).
const REPOSITORY_CHARS_MAX: usize = 255;
/// Distribution specification, "Pulling manifests".
const TAG_CHARS_MAX: usize = 128;
const SHA256: &str = "sha256:";
const SHA256_HEX_CHARS: usize = 64;

/// Names an artifact. The host is always written out: there is no registry that everybody means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// With the port, where one is named.
    pub host: String,
    /// Such as `team/policies/cheap`.
    pub repository: String,
    /// What a push moves; a pull never follows it.
    pub tag: Option<String>,
    /// Of the manifest, with its `sha256:`.
    pub digest: Option<String>,
}

impl FromStr for Reference {
    type Err = OciError;

    fn from_str(text: &str) -> Result<Self, OciError> {
        let refuse = |why: &'static str| OciError::Reference {
            text: text.chars().take(REPOSITORY_CHARS_MAX).collect(),
            why,
        };
        let rest = text.strip_prefix("oci://").unwrap_or(text);
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (rest, None),
        };
        if digest.as_deref().is_some_and(|it| !is_digest(it)) {
            return Err(refuse(
                "what follows the @ is not sha256: and 64 hex digits",
            ));
        }
        let (host, path) = rest
            .split_once('/')
            .filter(|(host, _)| is_host(host))
            .ok_or_else(|| refuse("it does not begin with a registry's host, as in registry.example.com/team/policy"))?;
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        if !is_repository(repository) {
            return Err(refuse(
                "the repository has other characters than a-z, 0-9 and single separators . _ - /",
            ));
        }
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(refuse(
                "the tag has other characters than letters, digits and . _ -",
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag,
            digest,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix(SHA256)
        .is_some_and(|hex| hex.len() == SHA256_HEX_CHARS && hex.bytes().all(is_lower_hex))
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// A name with a dot, a port, or localhost: anything else is a repository of a registry that was not named.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    is_name
        && port.is_none_or(is_port)
        && (name.contains('.') || port.is_some() || name == "localhost")
}

fn is_repository(text: &str) -> bool {
    let is_component = |part: &str| {
        let is_word = |byte: Option<&u8>| {
            byte.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        };
        let bytes = part.as_bytes();
        is_word(bytes.first())
            && is_word(bytes.last())
            && bytes
                .iter()
                .all(|it| is_word(Some(it)) || b"._-".contains(it))
            && !part.contains("..")
    };
    text.len() <= REPOSITORY_CHARS_MAX && text.split('/').all(is_component)
}

fn is_tag(text: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.len() <= TAG_CHARS_MAX
        && text.as_bytes().first().is_some_and(is_first)
        && text
            .bytes()
            .all(|byte| is_first(&byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, Option<String>, Option<String>) {
        let it: Reference = text.parse().unwrap();
        assert_eq!(it.to_string(), text.trim_start_matches("oci://"));
        (it.host, it.repository, it.tag, it.digest)
    }

    #[test]
    fn hosts_ports_tags_and_digests_are_told_apart() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let own = str::to_owned;

        assert_eq!(
            parts("oci://registry.example.com:5000/team/cheap:v1"),
            (
                own("registry.example.com:5000"),
                own("team/cheap"),
                Some(own("v1")),
                None
            )
        );
        assert_eq!(
            parts(&format!("localhost/cheap@{digest}")),
            (own("localhost"), own("cheap"), None, Some(digest))
        );
    }

    #[test]
    fn what_names_no_registry_or_no_artifact_is_refused_with_the_reason() {
        let cases = [
            ("cheap:v1", "registry's host"),
            ("team/cheap", "registry's host"),
            ("registry.example.com:0/cheap", "registry's host"),
            ("registry.example.com/Team/cheap", "the repository"),
            ("registry.example.com/team/../secret", "the repository"),
            ("registry.example.com/", "the repository"),
            ("registry.example.com/cheap:v 1", "the tag"),
            ("registry.example.com/cheap@sha256:short", "64 hex digits"),
            ("registry.example.com/cheap?x=1", "the repository"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
