//! What is known about an object and about those that it depends on, and how that is shown.

use std::fmt::Write as _;

use jiff::Timestamp;
use kerf_api::explanation::PodExplanation;
use serde::Serialize;

use crate::simulate::table::{BOLD, wrap};
use crate::simulate::terminal::Terminal;

/// Columns that what belongs to an object is indented by.
const INDENT: usize = 2;

/// What is known about one object.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Story {
    /// Kind, namespace and name.
    pub(crate) object: String,
    /// Where it stands, in one line.
    pub(crate) state: String,
    /// What was decided about it, as `kerf_api::explanation` has it; only of manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<PodExplanation>,
    /// The reasons, most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<String>,
    /// Its conditions, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Said>,
    /// What the controller said about it, latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<Said>,
    /// What it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) related: Vec<Self>,
}

/// One thing that was said.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Said {
    /// A condition with its status, or an event's reason.
    pub(crate) what: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// When, or since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Timestamp>,
    /// How long before now that was, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) ago: String,
}

impl Story {
    /// For people at a terminal. Writing to a `String` cannot fail, so those results are dropped.
    pub(crate) fn text(&self, terminal: &Terminal) -> String {
        let mut out = format!("{}: {}\n", terminal.paint(&self.object, BOLD), self.state);
        let mut line = |text: &str| {
            let _ = writeln!(out, "{}", wrap(text, INDENT, terminal.width));
        };
        self.reasons.iter().for_each(|reason| line(reason));
        for said in self.conditions.iter().chain(&self.events) {
            let mut text = said.what.clone();
            if !said.ago.is_empty() {
                let _ = write!(text, " ({})", said.ago);
            }
            if !said.message.is_empty() {
                let _ = write!(text, ": {}", said.message);
            }
            line(&text);
        }
        for story in &self.related {
            out.push_str(&story.text(terminal));
        }
        out
    }
}

/// `12s ago`: seconds, minutes, hours or days, whichever says enough.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let secs = now.duration_since(at).as_secs().max(0);
    match secs {
        0..120 => format!("{secs}s ago"),
        120..7200 => format!("{}m ago", secs / 60),
        7200..172_800 => format!("{}h ago", secs / 3600),
        _ => format!("{}d ago", secs / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_says_enough() {
        let told = |secs: i64| {
            let at = Timestamp::from_second(1_000_000).unwrap();
            ago(at, Timestamp::from_second(1_000_000 + secs).unwrap())
        };

        assert_eq!(
            [-3_i64, 59, 600, 10_000, 300_000].map(told),
            ["0s ago", "59s ago", "10m ago", "2h ago", "3d ago"]
        );
    }
}
