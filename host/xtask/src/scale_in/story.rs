//! What the audit log tells of a scale-in. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

/// Claims that are deleted within that time went in one round: several commands of one decision, one after the other.
const ONE_ROUND_SECS: f64 = 2.0;

/// What happened after the scale-in was asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Story {
    from: Timestamp,
    /// When claims began to go, sorted.
    deletions: Vec<Timestamp>,
    /// When the last node or claim came or went.
    last: Timestamp,
    /// Claims that were made.
    pub(super) made: usize,
    /// Pods that waited for a node at the same time, at most.
    pub(super) pending_most: usize,
}

impl Story {
    pub(super) fn read(log: &str, from: Timestamp) -> Self {
        let mut told = Self {
            from,
            deletions: Vec::new(),
            last: from,
            made: 0,
            pending_most: 0,
        };
        let (mut gone, mut pods) = (BTreeSet::new(), Vec::new());
        for line in log.lines().filter(|line| is_about_us(line)) {
            let Ok(entry) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let Some(at) = at(&entry).filter(|at| *at >= from) else {
                continue;
            };
            let object = &entry["objectRef"];
            let subresource = object["subresource"].as_str();
            match (
                entry["verb"].as_str(),
                object["resource"].as_str(),
                subresource,
            ) {
                (Some("create"), Some("pods"), None) => pods.push((at, 1)),
                (Some("create"), Some("pods"), Some("binding")) => pods.push((at, -1)),
                (Some("create"), Some("nodeclaims"), None) => {
                    told.made += 1;
                    told.last = told.last.max(at);
                }
                (Some("delete"), Some("nodeclaims"), None) => {
                    if gone.insert(object["name"].to_string()) {
                        told.deletions.push(at);
                    }
                    told.last = told.last.max(at);
                }
                (Some("create" | "delete"), Some("nodes"), None) => told.last = told.last.max(at),
                _ => {}
            }
        }
        told.deletions.sort_unstable();
        told.pending_most = pending_most(pods);
        told
    }

    /// From the scale-in until the last node or claim came or went.
    pub(super) fn settled_secs(&self) -> f64 {
        secs(self.from, self.last)
    }

    /// The longest time from one round to the next, and from the scale-in to the first.
    pub(super) fn longest_round_secs(&self) -> f64 {
        let starts = [self.from]
            .into_iter()
            .chain(self.deletions.iter().copied());
        let gaps = starts.zip(&self.deletions).map(|(a, b)| secs(a, *b));
        gaps.fold(0.0, f64::max)
    }

    /// How many rounds there were.
    pub(super) fn rounds(&self) -> usize {
        let gaps = self.deletions.windows(2);
        let new = gaps.filter(|pair| secs(pair[0], pair[1]) > ONE_ROUND_SECS);
        usize::from(!self.deletions.is_empty()) + new.count()
    }
}

/// Most lines speak of other things, and decoding is slow.
fn is_about_us(line: &str) -> bool {
    ["pods", "nodes", "nodeclaims"]
        .iter()
        .any(|resource| line.contains(&format!(r#""resource":"{resource}""#)))
}

/// When the server answered, if it did what was asked; pods of other namespaces are none of ours.
fn at(entry: &Value) -> Option<Timestamp> {
    let code = entry["responseStatus"]["code"].as_u64()?;
    let namespace = entry["objectRef"]["namespace"].as_str();
    let is_ours = namespace.is_none_or(|name| name == "default");
    let is_done = (200..300).contains(&code);
    let at = entry["stageTimestamp"].as_str()?.parse().ok()?;
    (is_ours && is_done).then_some(at)
}

fn pending_most(mut changes: Vec<(Timestamp, i64)>) -> usize {
    // Of what has the same time, who is bound goes first.
    changes.sort_unstable();
    let (mut pending, mut most) = (0_i64, 0_i64);
    for (_, change) in changes {
        pending += change;
        most = most.max(pending);
    }
    usize::try_from(most).unwrap_or_default()
}

fn secs(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(second: u32, verb: &str, resource: &str, name: &str, subresource: &str) -> String {
        let subresource = match subresource {
            "" => String::new(),
            text => format!(r#","subresource":"{text}""#),
        };
        format!(
            r#"{{"verb":"{verb}","objectRef":{{"resource":"{resource}","name":"{name}"{subresource}}},"responseStatus":{{"code":200}},"stageTimestamp":"2026-01-01T00:00:{second:02}Z"}}"#
        )
    }

    #[test]
    fn rounds_waits_and_pods_without_a_node_are_counted_from_the_scale_in_on() {
        let log = [
            entry(0, "create", "pods", "early", ""),
            entry(11, "delete", "nodeclaims", "a", ""),
            entry(12, "delete", "nodeclaims", "b", ""),
            entry(12, "create", "pods", "", ""),
            entry(13, "create", "pods", "", ""),
            entry(14, "create", "pods", "x", "binding"),
            entry(15, "create", "nodeclaims", "c", ""),
            entry(25, "delete", "nodeclaims", "d", ""),
            entry(26, "delete", "nodeclaims", "d", ""),
            entry(27, "delete", "nodes", "d", ""),
            entry(40, "patch", "nodes", "e", ""),
        ]
        .join("\n");

        let story = Story::read(&log, "2026-01-01T00:00:05Z".parse().unwrap());

        assert_eq!((story.rounds(), story.made, story.pending_most), (2, 1, 2));
        assert!((story.settled_secs() - 22.0).abs() < 1e-9);
        assert!((story.longest_round_secs() - 13.0).abs() < 1e-9);
    }
}
