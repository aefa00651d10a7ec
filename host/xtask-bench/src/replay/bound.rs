//! The least that any fleet can cost for what pods ask for: the linear program that buys fractions of machines.
//!
//! It is solved from its dual, which values cpu, memory, GPUs and pod slots so that no machine is worth more than its
//! price: four unknowns, one row per type, and a start at zero that is always allowed.

use anyhow::{Result, ensure};
use kerf_core::node_pool::NodePool;

use super::cluster::amounts;

/// Amounts per unit of the program: cores, GiB, GPUs, pods. Numbers of one size keep the arithmetic exact enough.
const UNITS: [f64; 4] = [1000.0, 1_073_741_824.0, 1.0, 1.0];
/// Below that a coefficient is zero.
const TINY: f64 = 1e-9;
/// Pivots; a few dozen are usual.
const PIVOTS_MAX: usize = 10_000;

/// The machines that can be bought.
#[derive(Debug)]
pub(super) struct Bound {
    /// What each holds, and its price per hour.
    rows: Vec<([f64; 4], f64)>,
}

impl Bound {
    pub(super) fn new(pool: &NodePool) -> Self {
        let is_amd64 = |it: &kerf_core::instance_type::InstanceType| {
            let arch = it.requirements.on(kerf_core::labels::ARCH);
            arch.is_some_and(|arch| arch.has("amd64"))
        };
        let types = pool.instance_types.iter().filter(|it| is_amd64(it));
        let rows = types.filter_map(|it| {
            let prices = it.offerings.iter().filter_map(|it| it.price.per_hour());
            let price = prices.min_by(f64::total_cmp)?;
            Some((scaled(amounts(&it.allocatable())), price))
        });
        Self {
            rows: rows.collect(),
        }
    }

    /// The bound for what all pods together ask for.
    pub(super) fn hourly(&self, asked: [i64; 4]) -> Result<f64> {
        Dictionary::new(&self.rows, scaled(asked)).solve()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "amounts have far fewer than 53 bits"
)]
fn scaled(amounts: [i64; 4]) -> [f64; 4] {
    let mut scaled = [0.0; 4];
    for ((into, amount), unit) in scaled.iter_mut().zip(amounts).zip(UNITS) {
        *into = amount as f64 / unit;
    }
    scaled
}

/// The dual in dictionary form: each row says how much of a price is left, by the four unknowns that are zero now.
#[derive(Debug)]
struct Dictionary {
    rows: Vec<([f64; 4], f64)>,
    objective: [f64; 4],
    value: f64,
}

impl Dictionary {
    fn new(rows: &[([f64; 4], f64)], asked: [f64; 4]) -> Self {
        Self {
            rows: rows.to_vec(),
            objective: asked,
            value: 0.0,
        }
    }

    fn solve(mut self) -> Result<f64> {
        for _ in 0..PIVOTS_MAX {
            let gains = self
                .objective
                .iter()
                .enumerate()
                .filter(|(_, gain)| **gain > TINY);
            let Some((entering, _)) = gains.max_by(|a, b| a.1.total_cmp(b.1)) else {
                return Ok(self.value);
            };
            let ratios = self
                .rows
                .iter()
                .enumerate()
                .filter(|(_, row)| row.0[entering] > TINY);
            let tightest = ratios.min_by(|a, b| {
                let ratio = |row: &([f64; 4], f64)| row.1 / row.0[entering];
                ratio(a.1).total_cmp(&ratio(b.1))
            });
            let Some((leaving, _)) = tightest else {
                anyhow::bail!("no type has what pods ask for");
            };
            self.pivot(entering, leaving);
        }
        ensure!(false, "no optimum after {PIVOTS_MAX} pivots");
        Ok(self.value)
    }

    /// The unknown `entering` grows until the row `leaving` has nothing left; the two change places.
    fn pivot(&mut self, entering: usize, leaving: usize) {
        let (mut pivot, mut rest) = self.rows[leaving];
        let by = pivot[entering];
        for coefficient in &mut pivot {
            *coefficient /= by;
        }
        pivot[entering] = 1.0 / by;
        rest /= by;
        let change = |row: &mut [f64; 4]| -> f64 {
            let factor = row[entering];
            for (idx, coefficient) in row.iter_mut().enumerate() {
                *coefficient = match idx == entering {
                    true => -factor * pivot[idx],
                    false => *coefficient - factor * pivot[idx],
                };
            }
            factor
        };
        for (idx, (row, left)) in self.rows.iter_mut().enumerate() {
            if idx != leaving {
                *left -= change(row) * rest;
            }
        }
        self.value += change(&mut self.objective) * rest;
        self.rows[leaving] = (pivot, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(rows: &[([f64; 4], f64)], asked: [f64; 4]) -> f64 {
        Dictionary::new(rows, asked).solve().unwrap()
    }

    #[test]
    fn fractions_of_the_best_mix_are_bought() {
        let small = ([1.0, 2.0, 0.0, 10.0], 1.0);
        let tall = ([1.0, 8.0, 0.0, 10.0], 2.0);

        // Ten cores and 20 GiB are ten small ones.
        assert!((solve(&[small, tall], [10.0, 20.0, 0.0, 1.0]) - 10.0).abs() < 1e-9);
        // 50 GiB need five tall ones beside five small ones.
        assert!((solve(&[small, tall], [10.0, 50.0, 0.0, 1.0]) - 15.0).abs() < 1e-9);
        // Pod slots alone.
        assert!((solve(&[small, tall], [0.0, 0.0, 0.0, 30.0]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_nobody_sells_is_an_error() {
        let small = ([1.0, 2.0, 0.0, 10.0], 1.0);

        assert!(
            Dictionary::new(&[small], [1.0, 1.0, 1.0, 1.0])
                .solve()
                .is_err()
        );
    }
}
