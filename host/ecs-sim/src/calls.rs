//! What was called: counters per action, and the latest calls for a person who looks for the reason of something.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::Serialize;

/// Enough for the calls of a long test; older ones are forgotten.
const LOG_LENGTH_MAX: usize = 2000;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: BTreeMap<String, Count>,
    log: VecDeque<Record>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub total: u64,
    /// Answered with an error of the API; calls that a fault kept from an answer are in the total only.
    pub refused: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    pub(crate) at: String,
    pub(crate) action: String,
    /// `OK`, an error code or the name of the fault.
    pub(crate) outcome: String,
    /// Without user data, which may hold secrets and is long.
    pub(crate) params: BTreeMap<String, String>,
}

impl Calls {
    pub(crate) fn record(&mut self, record: Record, refused: bool) {
        let count = self.counts.entry(record.action.clone()).or_default();
        count.total += 1;
        count.refused += u64::from(refused);
        if self.log.len() == LOG_LENGTH_MAX {
            self.log.pop_front();
        }
        self.log.push_back(record);
    }

    pub(crate) fn counts(&self) -> &BTreeMap<String, Count> {
        &self.counts
    }

    pub(crate) fn log(&self) -> impl Iterator<Item = &Record> {
        self.log.iter()
    }
}

impl Record {
    pub(crate) fn new<'a>(
        at: Timestamp,
        action: &str,
        outcome: String,
        params: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let hidden = [
            "UserData",
            "Signature",
            "OIDCToken",
            "SecurityToken",
            "Password",
        ];
        let params = params.filter(|(name, _)| !hidden.contains(name));
        Self {
            at: at.to_string(),
            action: action.to_owned(),
            outcome,
            params: params
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }
}
