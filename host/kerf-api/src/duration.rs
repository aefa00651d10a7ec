//! Durations as manifests write them: `720h`, `1h30m`, `Never`.
//!
//! The text is kept as written, so that an object which is read and written back does not change. Reading never fails;
//! [`NillableDuration::parse`] does, with the text in its error.

use crate::schema;
use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The word for "no limit".
pub const NEVER: &str = "Never";

/// A duration, or `Never`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NillableDuration(String);

impl NillableDuration {
    /// No limit.
    #[must_use]
    pub fn never() -> Self {
        Self(NEVER.to_owned())
    }

    /// A duration with the given text, unchecked until [`Self::parse`].
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The duration, `None` for `Never`.
    ///
    /// # Errors
    /// When the text is neither `Never` nor a duration.
    pub fn parse(&self) -> Result<Option<SignedDuration>, DurationError> {
        if self.0 == NEVER {
            return Ok(None);
        }
        parse_duration(&self.0).map(Some)
    }
}

impl JsonSchema for NillableDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NillableDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": schema::NILLABLE_DURATION })
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a sequence of number and unit.
    #[error("{text:?} is not a duration: write numbers with units, such as 720h or 1h30m")]
    Malformed {
        /// What was written.
        text: String,
    },
    /// Larger than 292 years, where the nanoseconds of Go and Rust end.
    #[error("{text:?} is too long a duration")]
    TooLong {
        /// What was written.
        text: String,
    },
}

/// Longest duration that Go's 64-bit nanoseconds hold; longer ones would be refused by every other reader.
const NANOSECONDS_MAX: u128 = i64::MAX as u128;

/// Parses a duration in Go's notation, such as `1h30m`, `1.5h` or `250ms`; never negative.
///
/// # Errors
/// When the text has another form or is negative.
pub fn parse_duration(text: &str) -> Result<SignedDuration, DurationError> {
    let malformed = || DurationError::Malformed {
        text: text.to_owned(),
    };
    let too_long = || DurationError::TooLong {
        text: text.to_owned(),
    };

    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(malformed());
    }

    let mut total: u128 = 0;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(malformed)?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);

        let nanoseconds = unit_nanoseconds(unit).ok_or_else(malformed)?;
        total += scale(number, nanoseconds).ok_or_else(malformed)?;
        if total > NANOSECONDS_MAX {
            return Err(too_long());
        }
        rest = after;
    }
    i64::try_from(total)
        .map(SignedDuration::from_nanos)
        .map_err(|_| too_long())
}

fn unit_nanoseconds(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

/// Digits after the point that are read; a nanosecond of an hour needs 13.
const FRACTION_DIGITS_MAX: usize = 15;

fn scale(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Twenty digits of hours cannot overflow a u128, and are far beyond the longest duration anyway.
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanoseconds = u128::from(whole) * unit;
    let mut divisor = 1;
    for digit in fraction.bytes().take(FRACTION_DIGITS_MAX) {
        divisor *= 10;
        nanoseconds += u128::from(digit - b'0') * unit / divisor;
    }
    Some(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<f64>) {
        let parsed = parse_duration(text)
            .ok()
            .map(|duration| duration.as_secs_f64());
        assert_eq!(parsed, seconds, "{text}");
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        check("720h", Some(2_592_000.0));
        check("1h30m", Some(5_400.0));
        check("0s", Some(0.0));
        check("0", Some(0.0));
        check("1.5h", Some(5_400.0));
        check(".5s", Some(0.5));
        check("250ms", Some(0.25));
        check("30m15s", Some(1_815.0));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "h",
            "10",
            "-1s",
            "1d",
            "1h 30m",
            "1..5s",
            ".s",
            "Never",
            "99999999999999999999h",
            "3000000h",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn text_survives_a_round_trip() {
        for text in ["Never", "720h", "43200m", "nonsense"] {
            let json = serde_json::Value::from(text);
            let duration: NillableDuration = serde_json::from_value(json.clone()).unwrap();

            assert_eq!(serde_json::to_value(&duration).unwrap(), json);
        }
        assert_eq!(NillableDuration::never().parse(), Ok(None));
        assert!(NillableDuration::new("nonsense").parse().is_err());
    }
}
