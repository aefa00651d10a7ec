//! Summaries: quantiles of what was observed, which Prometheus' Rust client has no type for.
//!
//! Karpenter: same quantiles and error, over the last ten minutes; `_sum` and `_count` are of everything since the start.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use sketches_ddsketch::{Config, DDSketch};

use super::text;

/// As Prometheus writes them, and as numbers.
const QUANTILES: [(&str, f64); 5] = [
    ("0", 0.0),
    ("0.5", 0.5),
    ("0.9", 0.9),
    ("0.99", 0.99),
    ("1", 1.0),
];
/// How far a quantile may be from the true one, as a share of it. Karpenter: same.
const ERROR: f64 = 0.01;
/// Enough for a second to centuries at that error; what is beyond shares the lowest bin.
const BINS_MAX: u32 = 2048;
/// Seconds; shorter ones count as nothing.
const LEAST: f64 = 1e-9;
/// Observations leave the quantiles together with the others of such a span.
const SPAN_SECS: i64 = 120;
/// So many spans count: ten minutes, as in Go's client.
const SPANS: i64 = 5;

/// A summary with at most one label.
pub(super) struct Summary {
    name: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    observed: Mutex<BTreeMap<String, Observed>>,
}

#[derive(Default)]
struct Observed {
    sum: f64,
    count: u32,
    /// By number of the span, oldest first.
    spans: VecDeque<(i64, DDSketch)>,
}

impl fmt::Debug for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summary")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Summary {
    /// A summary by a label; without one there is one series, from the start.
    #[must_use]
    pub(super) fn new(name: &'static str, help: &'static str, label: Option<&'static str>) -> Self {
        let mut observed = BTreeMap::new();
        if label.is_none() {
            observed.insert(String::new(), Observed::default());
        }
        Self {
            name,
            help,
            label,
            observed: Mutex::new(observed),
        }
    }

    /// Takes in a number of seconds for the label's value, which is empty where there is no label.
    pub(super) fn observe(&self, label: &str, seconds: f64, now: Timestamp) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let observed = observed.entry(label.to_owned()).or_default();
        observed.sum += seconds;
        observed.count = observed.count.saturating_add(1);
        let span = now.as_second().div_euclid(SPAN_SECS);
        observed.forget(span);
        match observed.spans.back_mut() {
            Some((last, sketch)) if *last == span => sketch.add(seconds),
            _ => {
                let mut sketch = sketch();
                sketch.add(seconds);
                observed.spans.push_back((span, sketch));
            }
        }
    }

    /// Its text at a scrape.
    pub(super) fn render(&self, now: Timestamp, out: &mut String) {
        let mut all = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return;
        }
        text::head(self.name, "summary", self.help, out);
        let span = now.as_second().div_euclid(SPAN_SECS);
        for (value, observed) in all.iter_mut() {
            observed.forget(span);
            let labels = || self.label.map(|label| (label, value.as_str())).into_iter();
            let whole = observed.whole();
            for (written, quantile) in QUANTILES {
                // Nothing observed of late has no quantiles.
                let found = whole.quantile(quantile).ok().flatten().unwrap_or(f64::NAN);
                let labels = labels().chain([("quantile", written)]);
                text::sample(self.name, labels, found, out);
            }
            let with = |suffix: &str| format!("{}_{suffix}", self.name);
            text::sample(&with("sum"), labels(), observed.sum, out);
            text::sample(&with("count"), labels(), f64::from(observed.count), out);
        }
    }
}

impl Observed {
    fn forget(&mut self, now: i64) {
        self.spans.retain(|(span, _)| now - span < SPANS);
    }

    fn whole(&self) -> DDSketch {
        let mut whole = sketch();
        for (_, sketch) in &self.spans {
            // Only sketches of other settings cannot be merged.
            let _ = whole.merge(sketch);
        }
        whole
    }
}

fn sketch() -> DDSketch {
    DDSketch::new(Config::new(ERROR, BINS_MAX, LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn value(text: &str, series: &str) -> f64 {
        let line = text.lines().find(|it| it.starts_with(series));
        let line = line.unwrap_or_else(|| panic!("{series} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn quantiles_are_within_a_hundredth_and_fade_after_ten_minutes_while_the_sum_stays() {
        let summary = Summary::new("waits", "How long", Some("pool"));
        for second in 1..=100 {
            summary.observe("a", f64::from(second), at(1000));
        }
        let mut text = String::new();
        summary.render(at(1500), &mut text);

        assert!(text.starts_with("# HELP waits How long.\n# TYPE waits summary\n"));
        for (quantile, wanted) in [
            ("0", 1.0),
            ("0.5", 50.0),
            ("0.9", 90.0),
            ("0.99", 99.0),
            ("1", 100.0),
        ] {
            let found = value(
                &text,
                &format!("waits{{pool=\"a\",quantile=\"{quantile}\"}}"),
            );
            assert!(
                (found - wanted).abs() <= 0.02 * wanted,
                "{quantile}: {found}"
            );
        }
        assert!((value(&text, "waits_sum{pool=\"a\"}") - 5050.0).abs() < 1e-6);

        let mut text = String::new();
        summary.render(at(2000), &mut text);

        assert!(value(&text, "waits{pool=\"a\",quantile=\"0.5\"}").is_nan());
        assert!((value(&text, "waits_count{pool=\"a\"}") - 100.0).abs() < 1e-6);
    }

    #[test]
    fn without_a_label_the_series_is_there_from_the_start() {
        let mut text = String::new();
        Summary::new("waits", "How long", None).render(at(0), &mut text);

        assert!(
            text.contains("waits{quantile=\"0.5\"} NaN\nwaits{quantile=\"0.9\"}"),
            "{text}"
        );
        assert!(text.contains("waits_count 0\n"), "{text}");
    }
}
