//! What a NodeClaim remembers of the command that disrupts it, so that a restart carries on or takes it back. Pure.
//!
//! It is written before anything else is done, and names the replacements before they exist: whatever the process dies
//! of, it is known which claims belong together. A command without replacements needs none: taking it back loses
//! nothing, and the next pass decides it again.

use jiff::Timestamp;
use kerf_api::names::annotation;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::CommandKind;
use kube::ResourceExt;
use serde_json::{Value, json};

/// A command as its candidates remember it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The same on all candidates of the command, and on no others.
    pub id: String,
    /// How it came about.
    pub kind: CommandKind,
    /// When it was started.
    pub started_at: Timestamp,
    /// Names of the NodeClaims that go.
    pub candidates: Vec<String>,
    /// Names of the NodeClaims that come first.
    pub replacements: Vec<String>,
    /// For people.
    pub note: String,
}

const KINDS: [(CommandKind, &str); 5] = [
    (CommandKind::Empty, "empty"),
    (CommandKind::StaticDrift, "static-drift"),
    (CommandKind::Drift, "drift"),
    (CommandKind::Multi, "multi"),
    (CommandKind::Single, "single"),
];

impl Record {
    /// The annotation's text.
    #[must_use]
    pub fn write(&self) -> String {
        let Self {
            id,
            kind,
            started_at,
            candidates,
            replacements,
            note,
        } = self;
        let kind = KINDS
            .iter()
            .find(|(it, _)| it == kind)
            .map(|(_, name)| name);
        json!({
            "id": id, "kind": kind, "startedAt": started_at.to_string(), "candidates": candidates,
            "replacements": replacements, "note": note,
        })
        .to_string()
    }

    /// Reads what [`Self::write`] wrote; none when it is not that.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let field = |name: &str| value[name].as_str().map(str::to_owned);
        let names = |name: &str| -> Option<Vec<String>> {
            let items = value[name].as_array()?.iter();
            items.map(|it| it.as_str().map(str::to_owned)).collect()
        };
        let kind = field("kind")?;
        Some(Self {
            id: field("id")?,
            kind: KINDS.iter().find(|(_, name)| **name == kind)?.0,
            started_at: field("startedAt")?.parse().ok()?,
            candidates: names("candidates")?,
            replacements: names("replacements")?,
            note: field("note")?,
        })
    }

    /// The record on a claim that stays for now; one that is being deleted has nothing to go back to.
    #[must_use]
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        if claim.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let text = claim.annotations().get(annotation::DISRUPTION_COMMAND)?;
        let record = Self::parse(text)?;
        record
            .candidates
            .contains(&claim.name_any())
            .then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            id: "general-x".to_owned(),
            kind: CommandKind::Multi,
            started_at: Timestamp::from_second(1000).unwrap(),
            candidates: vec!["general-1".to_owned(), "general-2".to_owned()],
            replacements: vec!["general-3".to_owned()],
            note: "saves \"much\"".to_owned(),
        }
    }

    #[test]
    fn a_command_survives_its_annotation() {
        for (kind, _) in KINDS {
            let record = Record { kind, ..record() };

            assert_eq!(Record::parse(&record.write()), Some(record));
        }
    }

    #[test]
    fn an_annotation_that_nobody_can_read_or_that_speaks_of_other_claims_is_no_record() {
        let mut claim = NodeClaim::new("general-9", Default::default());
        for text in ["", "{}", "[]", &record().write()] {
            let key = annotation::DISRUPTION_COMMAND.to_owned();
            claim.annotations_mut().insert(key, text.to_owned());

            assert_eq!(Record::of(&claim), None, "{text}");
        }
    }
}
