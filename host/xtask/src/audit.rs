//! The API server's audit log as it grows: what happened to pods, and when, to the microsecond.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

/// Follows one audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    file: PathBuf,
    read_bytes: u64,
    rest: String,
}

/// What was done to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Created,
    Bound,
}

impl Audit {
    /// Reads from what is written after this moment on.
    pub(crate) fn from_now(file: PathBuf) -> Result<Self> {
        let read_bytes = std::fs::metadata(&file)
            .with_context(|| format!("cannot read {}", file.display()))?
            .len();
        Ok(Self {
            file,
            read_bytes,
            rest: String::new(),
        })
    }

    /// What has been done since the last call.
    pub(crate) fn news(&mut self) -> Result<Vec<(Act, Timestamp)>> {
        let mut file = File::open(&self.file).context("cannot open the audit log")?;
        file.seek(SeekFrom::Start(self.read_bytes))
            .context("cannot read on in the audit log")?;
        let mut bytes = Vec::new();
        let read = file
            .read_to_end(&mut bytes)
            .context("cannot read the audit log")?;
        self.read_bytes += read as u64;
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.rest.drain(..whole).collect();
        Ok(lines.lines().filter_map(act).collect())
    }
}

fn act(line: &str) -> Option<(Act, Timestamp)> {
    // Most lines speak of other things, and decoding is slow.
    if !line.contains(r#""resource":"pods""#) {
        return None;
    }
    let entry: Value = serde_json::from_str(line).ok()?;
    let object = &entry["objectRef"];
    let is_done = entry["verb"] == "create" && entry["responseStatus"]["code"] == 201;
    if !is_done || object["namespace"] != "default" {
        return None;
    }
    let act = match object["subresource"].as_str() {
        None => Act::Created,
        Some("binding") => Act::Bound,
        Some(_) => return None,
    };
    Some((act, entry["stageTimestamp"].as_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creations_and_bindings_that_succeeded_are_found() {
        let line = |subresource: &str, code: u16| {
            format!(
                r#"{{"verb":"create","objectRef":{{"resource":"pods","namespace":"default"{subresource}}},"responseStatus":{{"code":{code}}},"stageTimestamp":"2026-01-01T00:00:00.5Z"}}"#
            )
        };

        assert_eq!(act(&line("", 201)).unwrap().0, Act::Created);
        let binding = r#","subresource":"binding""#;
        assert_eq!(act(&line(binding, 201)).unwrap().0, Act::Bound);
        assert_eq!(act(&line(binding, 409)), None);
        assert_eq!(act(&line(r#","subresource":"eviction""#, 201)), None);
    }
}
