//! Kubernetes quantities (`100m`, `1.5Gi`, `2e3`), parsed exactly.
//!
//! A [`Quantity`] counts billionths, the finest step that Kubernetes has; finer amounts round up, away from zero, as
//! they do there.

use std::fmt;

/// Billionths in one.
const NANOS: i128 = 1_000_000_000;
/// Kubernetes caps numbers at 2^63 − 1; ours hold that times a billion without overflow.
const MAX_NANOS: i128 = i64::MAX as i128 * NANOS;
/// More digits than any real quantity has, few enough that a mantissa fits in an `i128` before scaling.
const MAX_DIGITS: usize = 36;

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse quantity {text:?}: want a number with an optional suffix such as m, k, Mi or e3")]
pub struct ParseQuantityError {
    text: String,
}

/// An exact amount in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity(i128);

impl Quantity {
    /// A whole number.
    pub const fn from_units(units: i64) -> Self {
        Self(units as i128 * NANOS)
    }

    /// Thousandths.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis as i128 * (NANOS / 1000))
    }

    /// Parses the text form. Amounts beyond 2^63 − 1 are capped there, as Kubernetes does.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse_nanos(text)
            .map(Self)
            .ok_or_else(|| ParseQuantityError {
                text: text.to_owned(),
            })
    }

    /// Whole units, rounded away from zero.
    pub fn units(self) -> i64 {
        divide_away_from_zero(self.0, NANOS)
    }

    /// Thousandths, rounded away from zero.
    pub fn millis(self) -> i64 {
        divide_away_from_zero(self.0, NANOS / 1000)
    }
}

fn parse_nanos(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let number_end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_end);
    let (mantissa, decimals) = parse_decimal(number)?;
    let nanos = match scale(suffix)? {
        Scale::Decimal(exponent) => scale_decimal(mantissa, exponent + 9 - decimals),
        Scale::Binary(shift) => scale_binary(mantissa, shift, decimals),
    };
    Some(if negative { -nanos } else { nanos })
}

/// The digits as one number, and how many of them stand after the point.
fn parse_decimal(number: &str) -> Option<(i128, i32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    if !has_digits || fraction.contains('.') {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + fraction.len() > MAX_DIGITS {
        return None;
    }
    let digits = format!("0{whole}{fraction}");
    Some((digits.parse().ok()?, i32::try_from(fraction.len()).ok()?))
}

enum Scale {
    Decimal(i32),
    Binary(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    let scale = match suffix {
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "" => Scale::Decimal(0),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            Scale::Decimal(exponent.parse::<i8>().ok()?.into())
        }
    };
    Some(scale)
}

fn scale_decimal(mantissa: i128, exponent: i32) -> i128 {
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    let scaled = match (power, exponent >= 0) {
        (Some(power), true) => mantissa.checked_mul(power),
        (Some(power), false) => Some(ceil_divide(mantissa, power)),
        (None, true) => Some(if mantissa == 0 { 0 } else { MAX_NANOS }),
        (None, false) => Some(i128::from(mantissa != 0)),
    };
    scaled.unwrap_or(MAX_NANOS).min(MAX_NANOS)
}

fn scale_binary(mantissa: i128, shift: u32, decimals: i32) -> i128 {
    // `decimals` is at most MAX_DIGITS, so the power fits.
    let power = 10_i128.pow(decimals.unsigned_abs());
    let scaled = mantissa
        .checked_mul(1_i128 << shift)
        .and_then(|value| value.checked_mul(NANOS));
    scaled
        .map_or(MAX_NANOS, |value| ceil_divide(value, power))
        .min(MAX_NANOS)
}

fn ceil_divide(value: i128, by: i128) -> i128 {
    value / by + i128::from(value % by != 0)
}

fn divide_away_from_zero(value: i128, by: i128) -> i64 {
    let magnitude = ceil_divide(value.abs(), by);
    // Values are capped at MAX_NANOS, so thousandths can exceed an i64 and are capped again.
    let signed = if value < 0 { -magnitude } else { magnitude };
    i64::try_from(signed).unwrap_or(if signed < 0 { i64::MIN } else { i64::MAX })
}

impl fmt::Display for Quantity {
    /// The shortest form that parses back to the same amount.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value % NANOS != 0 {
            let (amount, suffix) = [(NANOS / 1000, "m"), (1000, "u"), (1, "n")]
                .into_iter()
                .find(|(unit, _)| value % unit == 0)
                .map_or((value, "n"), |(unit, suffix)| (value / unit, suffix));
            return write!(f, "{amount}{suffix}");
        }
        let units = value / NANOS;
        let binary = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"]
            .into_iter()
            .zip([60, 50, 40, 30, 20, 10]);
        for (suffix, shift) in binary {
            let unit = 1_i128 << shift;
            if units != 0 && units % unit == 0 {
                return write!(f, "{}{suffix}", units / unit);
            }
        }
        write!(f, "{units}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, nanos: i128) {
        assert_eq!(
            Quantity::parse(text).map(|quantity| quantity.0),
            Ok(nanos),
            "{text}"
        );
    }

    #[test]
    fn every_suffix_is_exact() {
        check("0", 0);
        check("100m", NANOS / 10);
        check("1", NANOS);
        check("+1.5", NANOS * 3 / 2);
        check("-1.5", -NANOS * 3 / 2);
        check(".5", NANOS / 2);
        check("5.", NANOS * 5);
        check("1n", 1);
        check("0.1n", 1);
        check("12k", 12_000 * NANOS);
        check("1.5Gi", 3 * (1 << 29) * NANOS);
        check("0.1Gi", 107_374_182_400_000_000);
        check("2e3", 2000 * NANOS);
        check("2E3", 2000 * NANOS);
        check("2E", 2_000_000_000_000_000_000 * NANOS);
        check("1e-3", NANOS / 1000);
        check("9223372036854775808", MAX_NANOS);
        check("100Ei", MAX_NANOS);
    }

    #[test]
    fn broken_text_is_refused() {
        for text in [
            "", "-", ".", "1.2.3", "1 Gi", "1GiB", "e3", "1e", "1e1000", "0x10", "1K",
        ] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rounding_is_away_from_zero() {
        let quantity = Quantity::parse("1500u").unwrap();
        assert_eq!((quantity.millis(), quantity.units()), (2, 1));
        assert_eq!(Quantity::parse("-1500m").unwrap().units(), -2);
    }

    proptest! {
        #[test]
        fn text_round_trips(nanos in -MAX_NANOS..MAX_NANOS) {
            let quantity = Quantity(nanos);
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }
    }
}
