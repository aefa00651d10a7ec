//! The recorded requests, as they are kept beside the tests of kerf-cloud.

use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::workspace;

const FOLDER: &str = "host/kerf-cloud/tests/fixtures";

/// A recorded call.
#[derive(Debug, Deserialize)]
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) requests: Vec<Recorded>,
}

/// One request of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Recorded {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Recorded {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter();
        found
            .find(|(it, _)| it.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// The recordings of each SDK.
pub(super) fn all() -> Result<Vec<Recording>> {
    let mut all = Vec::new();
    for name in ["python-sdk-wire.json", "python-sdk-wire-more.json"] {
        let text = read(name)?;
        let found: Vec<Recording> =
            serde_json::from_str(&text).with_context(|| format!("{name} holds no recordings"))?;
        all.extend(found);
    }
    all.extend(go(&read("go-sdk-wire.txt")?));
    Ok(all)
}

fn read(name: &str) -> Result<String> {
    let path = workspace::root().join(FOLDER).join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The Go recordings are text: a line with method and target, `    Name : [value]` for each header, `    body: …`.
fn go(text: &str) -> Vec<Recording> {
    let mut all: Vec<Recorded> = Vec::new();
    for line in text.lines() {
        let indented = line.strip_prefix("    ");
        match (indented, all.last_mut()) {
            (Some(line), Some(request)) => {
                if let Some(body) = line.strip_prefix("body:") {
                    request.body = body.trim().to_owned();
                } else if let Some((name, value)) = line.split_once(" : [") {
                    let value = value.trim_end_matches(']').to_owned();
                    request.headers.push((name.to_owned(), value));
                }
            }
            (None, _) => {
                if let Some((method, target)) = line.split_once(' ')
                    && target.starts_with('/')
                {
                    all.push(Recorded {
                        method: method.to_owned(),
                        target: target.to_owned(),
                        ..Recorded::default()
                    });
                }
            }
            (Some(_), None) => {}
        }
    }
    let named = all.into_iter().enumerate();
    let named = named.map(|(idx, request)| Recording {
        name: format!("Go SDK {}", idx + 1),
        requests: vec![request],
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_go_recordings_is_read() {
        let text = "POST /?A=1 2\n    Accept : [application/json]\n    body: x\nerr <nil>\nGET /b\n    body: \n";

        let found = go(text);

        let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].requests[0].headers, headers);
        assert_eq!(found[0].requests[0].body, "x");
        assert_eq!(found[1].requests[0].target, "/b");
    }
}
