//! `WWW-Authenticate`: how a registry wants its clients to log in.

/// What a registry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token from another server.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Challenge {
    /// The challenge in one header; none when it is of another kind.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let find = |key: &str| {
            let found = parameters
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(key));
            found.map(|(_, value)| value.clone())
        };
        Some(Self::Bearer {
            realm: find("realm")?,
            service: find("service"),
            scope: find("scope"),
        })
    }
}

/// `key="value",…`; commas in quotes belong to the value.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = value(after);
        found.push((key.trim().to_owned(), value));
        rest = after.trim_start_matches([',', ' ']);
    }
    found
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, character)) = chars.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_challenges_are_read() {
        let bearer = r#"Bearer realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull,push""#;

        assert_eq!(
            Challenge::parse(bearer),
            Some(Challenge::Bearer {
                realm: "https://auth.example.com/token".to_owned(),
                service: Some("registry".to_owned()),
                scope: Some("repository:a/b:pull,push".to_owned()),
            })
        );
        assert_eq!(
            Challenge::parse(r#"basic realm="x""#),
            Some(Challenge::Basic)
        );
    }

    #[test]
    fn what_cannot_be_read_is_no_challenge_and_harms_nobody() {
        for text in [
            "",
            "Negotiate",
            "Bearer",
            "Bearer realm",
            r#"Bearer service="x""#,
        ] {
            assert_eq!(Challenge::parse(text), None, "{text:?}");
        }
        let open = Challenge::parse(r#"Bearer realm="never closed\"#);
        assert!(matches!(open, Some(Challenge::Bearer { .. })));
    }
}
