//! Hourly prices as integers, so that equal prices are equal and sums do not depend on their order.

use std::fmt;

/// Millionths in one unit of currency.
const MICROS: f64 = 1_000_000.0;

/// A price per hour in millionths of the currency unit. An unknown price sorts last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

impl Price {
    /// No source knows the price.
    pub const UNKNOWN: Self = Self(u64::MAX);
    /// Nothing to pay. Only sums may be zero: as a list price it means unknown.
    pub const ZERO: Self = Self(0);

    /// A price in millionths.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A price in currency units. What is not a positive number is unknown.
    pub fn from_per_hour(price: f64) -> Self {
        let micros = (price * MICROS).round();
        if !micros.is_finite() || micros < 1.0 {
            return Self::UNKNOWN;
        }
        // `as` saturates, and a price of that size is as good as unknown.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above; saturates"
        )]
        let micros = micros as u64;
        Self(micros)
    }

    /// Millionths of the currency unit.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The price in currency units; none when it is unknown.
    pub fn per_hour(self) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "real prices have far fewer than 53 bits"
        )]
        self.is_known().then_some(self.0 as f64 / MICROS)
    }

    /// Whether some source knows it.
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }
}

impl std::iter::Sum for Price {
    /// The sum of the known prices.
    fn sum<I: Iterator<Item = Self>>(prices: I) -> Self {
        Self(
            prices
                .filter(|price| price.is_known())
                .fold(0, |sum, price| sum.saturating_add(price.0)),
        )
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_hour() {
            Some(price) => write!(f, "{price:.4}"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_nonsense_are_unknown_and_sort_last() {
        assert_eq!(Price::from_per_hour(0.0), Price::UNKNOWN);
        assert_eq!(Price::from_per_hour(f64::NAN), Price::UNKNOWN);
        assert!(Price::from_per_hour(1e6) < Price::UNKNOWN);
    }

    #[test]
    fn sums_skip_unknown_prices() {
        let prices = [
            Price::from_per_hour(0.5),
            Price::UNKNOWN,
            Price::from_per_hour(0.25),
        ];
        assert_eq!(prices.into_iter().sum::<Price>().per_hour(), Some(0.75));
    }
}
