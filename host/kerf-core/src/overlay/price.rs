//! What an overlay does to a price.

use crate::price::Price;

/// Millionths in one: of the currency unit, and of a percent.
const MICROS: f64 = 1_000_000.0;
/// A hundred percent in millionths of a percent.
const WHOLE: i128 = 100_000_000;

/// A change of a price per hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceChange {
    /// This price instead.
    Replace {
        /// Millionths of the currency unit.
        micros: u64,
    },
    /// More, or less when negative.
    Add {
        /// Millionths of the currency unit.
        micros: i64,
    },
    /// A share of the price more, or less when negative.
    Scale {
        /// Millionths of a percent.
        micro_percent: i64,
    },
}

/// A change of price that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}")]
pub struct ParsePriceChangeError {
    text: String,
    wanted: &'static str,
}

impl PriceChange {
    /// Reads `spec.price`: an unsigned decimal number.
    pub fn parse_price(text: &str) -> Result<Self, ParsePriceChangeError> {
        let wanted = "a price per hour such as 0.25";
        let micros = decimal(text).filter(|_| text.starts_with(|it: char| it.is_ascii_digit()));
        micros
            .and_then(|micros| u64::try_from(micros).ok())
            .map(|micros| Self::Replace { micros })
            .ok_or_else(|| error(text, wanted))
    }

    /// Reads `spec.priceAdjustment`: a signed decimal number, or a signed percentage of at least -100.
    pub fn parse_adjustment(text: &str) -> Result<Self, ParsePriceChangeError> {
        let wanted = "a signed price such as -0.05 or a signed percentage from -100% on";
        let change = match text.strip_suffix('%') {
            Some(percent) => decimal(percent)
                .filter(|it| i128::from(*it) >= -WHOLE)
                .map(|micro_percent| Self::Scale { micro_percent }),
            None => decimal(text).map(|micros| Self::Add { micros }),
        };
        change
            .filter(|_| text.starts_with(['+', '-']))
            .ok_or_else(|| error(text, wanted))
    }

    /// The price after the change, never below zero. What is unknown stays so unless it is replaced.
    pub fn apply(self, price: Price) -> Price {
        let micros = i128::from(price.micros());
        let changed = match self {
            Self::Replace { micros } => i128::from(micros),
            _ if !price.is_known() => return price,
            Self::Add { micros: more } => micros + i128::from(more),
            Self::Scale { micro_percent } => {
                (micros * (WHOLE + i128::from(micro_percent)) + WHOLE / 2) / WHOLE
            }
        };
        // A price too large for the type stays a known one that sorts last.
        let most = Price::UNKNOWN.micros() - 1;
        Price::from_micros(u64::try_from(changed.max(0)).unwrap_or(most).min(most))
    }
}

fn error(text: &str, wanted: &'static str) -> ParsePriceChangeError {
    ParsePriceChangeError {
        text: text.to_owned(),
        wanted,
    }
}

/// A plain decimal number in millionths.
fn decimal(text: &str) -> Option<i64> {
    let is_plain = text
        .chars()
        .all(|it| it.is_ascii_digit() || matches!(it, '.' | '+' | '-'));
    let micros = (text.parse::<f64>().ok().filter(|_| is_plain)? * MICROS).round();
    #[expect(
        clippy::cast_precision_loss,
        reason = "only whether it fits is asked, with a wide margin"
    )]
    let fits = micros.abs() < i64::MAX as f64 / 2.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let micros = micros as i64;
    fits.then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: Result<PriceChange, ParsePriceChangeError>, before: f64, after: f64) {
        let price = change.unwrap().apply(Price::from_per_hour(before));

        assert_eq!(price.per_hour(), Some(after));
    }

    #[test]
    fn a_price_replaces_a_number_is_added_and_a_percentage_is_of_the_price() {
        check(PriceChange::parse_price("0.25"), 1.0, 0.25);
        check(PriceChange::parse_adjustment("+0.1"), 1.0, 1.1);
        check(PriceChange::parse_adjustment("-0.25"), 1.0, 0.75);
        check(PriceChange::parse_adjustment("-30%"), 1.5, 1.05);
        check(PriceChange::parse_adjustment("+12.5%"), 0.8, 0.9);
    }

    #[test]
    fn no_price_falls_below_zero() {
        check(PriceChange::parse_adjustment("-2"), 1.0, 0.0);
        check(PriceChange::parse_adjustment("-100%"), 1.0, 0.0);
    }

    #[test]
    fn an_unknown_price_can_be_replaced_and_not_adjusted() {
        let adjusted = PriceChange::parse_adjustment("-10%").unwrap();
        let replaced = PriceChange::parse_price("0.5").unwrap();

        assert_eq!(adjusted.apply(Price::UNKNOWN), Price::UNKNOWN);
        assert_eq!(replaced.apply(Price::UNKNOWN).per_hour(), Some(0.5));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-1",
            "+1",
            "a",
            "1e3",
            "inf",
            "1.2.3",
            "99999999999999999999",
        ] {
            assert!(PriceChange::parse_price(text).is_err(), "{text}");
        }
        for text in ["1", "10%", "-101%", "+", "-%", "+NaN", "+1e2"] {
            assert!(PriceChange::parse_adjustment(text).is_err(), "{text}");
        }
    }
}
