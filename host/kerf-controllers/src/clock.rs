//! The one place that reads the time of day. Everything else takes `now` as an argument.

use jiff::Timestamp;

/// The present moment, for the edges that then pass it inwards.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}
