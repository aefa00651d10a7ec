//! What a consolidation must bring, from the annotations of a NodePool.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_api::duration::parse_duration;
use kerf_api::names::annotation;
use kerf_core::disruption::settings::Hysteresis;
use kerf_core::price::Price;

use crate::problem::Problems;

/// What is not there leaves Karpenter's behaviour. What cannot be read counts as not there and is told: the server checks no
/// annotation, and a slip of the pen in one must not keep the pool from growing.
pub(crate) fn hysteresis(
    annotations: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Hysteresis {
    let mut read = Reader {
        annotations,
        problems,
    };
    Hysteresis {
        saving_min: read.one(annotation::CONSOLIDATION_SAVING_MIN, price),
        saving_min_percent: read.one(annotation::CONSOLIDATION_SAVING_MIN_PERCENT, percent),
        node_age_min: read.one(annotation::CONSOLIDATION_NODE_AGE_MIN, duration),
        cool_down: read.one(annotation::CONSOLIDATION_COOL_DOWN, duration),
        utilization_max_percent: read
            .one(annotation::CONSOLIDATION_UTILIZATION_MAX_PERCENT, percent),
    }
}

struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn one<T>(&mut self, key: &str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.annotations.get(key)?;
        self.problems
            .ok(&format!("metadata.annotations[{key}]"), parse(text))
    }
}

fn price(text: &str) -> Result<Price, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|it| it.is_finite() && *it >= 0.0);
    number
        .map(Price::from_per_hour)
        .ok_or_else(|| format!("{text:?} is not a price per hour such as 0.05"))
}

fn percent(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|it| *it <= 100)
        .ok_or_else(|| format!("{text:?} is not a percentage from 0 to 100"))
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Hysteresis, usize) {
        let annotations = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let mut problems = Problems::default();
        let found = hysteresis(&annotations, &mut problems);
        (found, problems.finish().len())
    }

    #[test]
    fn what_a_pool_asks_of_a_consolidation_is_read_from_its_annotations() {
        let (found, problems) = read(&[
            (annotation::CONSOLIDATION_SAVING_MIN, "0.05"),
            (annotation::CONSOLIDATION_SAVING_MIN_PERCENT, "10%"),
            (annotation::CONSOLIDATION_NODE_AGE_MIN, "1h"),
            (annotation::CONSOLIDATION_COOL_DOWN, "10m"),
            (annotation::CONSOLIDATION_UTILIZATION_MAX_PERCENT, "60"),
        ]);

        assert_eq!(problems, 0);
        assert_eq!(found.saving_min, Some(Price::from_per_hour(0.05)));
        assert_eq!(found.saving_min_percent, Some(10));
        assert_eq!(found.node_age_min, Some(SignedDuration::from_hours(1)));
        assert_eq!(found.cool_down, Some(SignedDuration::from_mins(10)));
        assert_eq!(found.utilization_max_percent, Some(60));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let (found, problems) = read(&[
            (annotation::CONSOLIDATION_SAVING_MIN, "much"),
            (annotation::CONSOLIDATION_SAVING_MIN_PERCENT, "101"),
            (annotation::CONSOLIDATION_COOL_DOWN, "-1h"),
        ]);

        assert_eq!(problems, 3);
        assert_eq!(found, Hysteresis::default());
    }
}
