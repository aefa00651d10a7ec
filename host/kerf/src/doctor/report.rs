//! What was found, for people and for programs.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Something does not work.
    Problem,
    /// It works and may not for long, or it could not be looked at.
    Warning,
    /// As it should be.
    Fine,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    level: Level,
    /// What kind of check it was: `rights`, `vswitches` …
    check: &'static str,
    /// Kind and name.
    #[serde(skip_serializing_if = "String::is_empty")]
    object: String,
    /// Path in the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    /// What is so.
    message: String,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

impl Finding {
    /// Something does not work; `next` says what to do.
    pub(super) fn problem(check: &'static str, object: &str, message: String, next: &str) -> Self {
        Self {
            level: Level::Problem,
            check,
            object: object.to_owned(),
            field: String::new(),
            message,
            next: next.to_owned(),
        }
    }

    /// As `problem`, for what may become one.
    pub(super) fn warning(check: &'static str, object: &str, message: String, next: &str) -> Self {
        Self {
            level: Level::Warning,
            ..Self::problem(check, object, message, next)
        }
    }

    /// At this path of the object.
    pub(super) fn at(mut self, field: &str) -> Self {
        field.clone_into(&mut self.field);
        self
    }
}

/// All that was looked at.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Something is as it should be.
    pub(super) fn fine(&mut self, check: &'static str, message: String) {
        self.add(Finding {
            level: Level::Fine,
            ..Finding::problem(check, "", message, "")
        });
    }

    pub(super) fn problems(&self) -> usize {
        self.count(Level::Problem)
    }

    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|it| it.level == level).count()
    }

    /// The worst first.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for level in [Level::Problem, Level::Warning, Level::Fine] {
            for it in self.findings.iter().filter(|it| it.level == level) {
                put(&mut text, it);
            }
        }
        let (problems, warnings) = (self.problems(), self.count(Level::Warning));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{problems} to fix, {warnings} to look at");
        text
    }

    pub(super) fn json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).context("cannot encode the answer")?;
        Ok(text + "\n")
    }
}

fn put(text: &mut String, finding: &Finding) {
    let word = match finding.level {
        Level::Problem => "FIX    ",
        Level::Warning => "look at",
        Level::Fine => "ok     ",
    };
    let place = [&finding.object, &finding.field]
        .into_iter()
        .filter(|it| !it.is_empty())
        .map(|it| format!("{it}: "))
        .collect::<String>();
    let _ = writeln!(
        text,
        "{word}  {}: {place}{}",
        finding.check, finding.message
    );
    if !finding.next.is_empty() {
        let _ = writeln!(text, "         hint: {}", finding.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_fixed_comes_first_with_object_field_and_next_step() {
        let mut report = Report::default();
        report.fine("rights", "all 50 are there".to_owned());
        let full = Finding::problem(
            "vswitches",
            "ECSNodeClass default",
            "is full".to_owned(),
            "add one",
        );
        report.add(full.at("spec.vSwitchSelectorTerms"));

        let expected = "\
FIX      vswitches: ECSNodeClass default: spec.vSwitchSelectorTerms: is full
         hint: add one
ok       rights: all 50 are there
1 to fix, 0 to look at
";
        assert_eq!(report.text(), expected);
    }
}
