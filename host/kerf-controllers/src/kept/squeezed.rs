//! One text squeezed against a pattern: what both have in common is told by its place in the pattern.

use std::collections::VecDeque;
use std::sync::Arc;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// A text that keeps more than a third of its length is not like any pattern: it is one for those that follow.
const KEEPS_MAX_PERCENT: usize = 33;

/// What is alike keeps less than a tenth. A text that keeps more, claims of another zone or further in their lives, is a
/// pattern too, but only one of so many: patterns are whole texts.
const KEEPS_WELL_PERCENT: usize = 10;
const PATTERN_EVERY: usize = 64;

/// Patterns that are tried, the one that fitted last first. Nodes of several pools, zones and machines that are not ours
/// come in turns; each try takes some ten microseconds.
const PATTERNS_MAX: usize = 8;

/// A text with its pattern.
pub(super) struct Squeezed {
    bytes: Box<[u8]>,
    pattern: Arc<[u8]>,
}

/// Squeezes texts that are alike.
#[derive(Default)]
pub(super) struct Press {
    /// The one that was used last first.
    patterns: VecDeque<Arc<[u8]>>,
    /// Texts since the last one that became a pattern.
    since_pattern: usize,
}

impl Press {
    pub(super) fn squeeze(&mut self, text: &[u8]) -> Squeezed {
        let keeps = |percent: usize| text.len().saturating_mul(percent) / 100;
        let is_due = self.since_pattern >= PATTERN_EVERY;
        let keeps_max = if is_due {
            KEEPS_WELL_PERCENT
        } else {
            KEEPS_MAX_PERCENT
        };
        if let Some((idx, squeezed)) = self.best(text, keeps(KEEPS_WELL_PERCENT))
            && squeezed.bytes.len() <= keeps(keeps_max)
        {
            let used = self.patterns.remove(idx);
            used.into_iter().for_each(|it| self.patterns.push_front(it));
            self.since_pattern += 1;
            return squeezed;
        }
        self.since_pattern = 0;
        let pattern: Arc<[u8]> = text.into();
        let squeezed = Squeezed::new(text, &pattern);
        self.patterns.truncate(PATTERNS_MAX - 1);
        self.patterns.push_front(pattern);
        squeezed
    }

    /// The text against the first pattern with which it keeps no more than `enough` bytes, or else against the best.
    fn best(&self, text: &[u8], enough: usize) -> Option<(usize, Squeezed)> {
        let mut best: Option<(usize, Squeezed)> = None;
        for (idx, pattern) in self.patterns.iter().enumerate() {
            let squeezed = Squeezed::new(text, pattern);
            let kept = squeezed.bytes.len();
            if best.as_ref().is_none_or(|(_, it)| kept < it.bytes.len()) {
                best = Some((idx, squeezed));
            }
            if kept <= enough {
                break;
            }
        }
        best
    }
}

impl Squeezed {
    fn new(text: &[u8], pattern: &Arc<[u8]>) -> Self {
        Self {
            bytes: compress_prepend_size_with_dict(text, pattern).into(),
            pattern: Arc::clone(pattern),
        }
    }

    /// A copy, which shares the pattern.
    pub(super) fn anew(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            pattern: Arc::clone(&self.pattern),
        }
    }

    /// The text.
    ///
    /// # Errors
    /// When the bytes are not what [`Press::squeeze`] made.
    pub(super) fn text(&self) -> Result<Vec<u8>, String> {
        decompress_size_prepended_with_dict(&self.bytes, &self.pattern)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_the_pattern_is_a_few_bytes_and_reads_as_it_was() {
        let text = |idx: u32| {
            let labels = (0..40).map(|label| format!("\"label-{label}\":\"value-{}\"", label * 7));
            format!(
                "{{\"name\":\"claim-{idx}\",{}}}",
                labels.collect::<Vec<_>>().join(",")
            )
        };
        let mut press = Press::default();

        let squeezed: Vec<Squeezed> = (0..3)
            .map(|idx| press.squeeze(text(idx).as_bytes()))
            .collect();

        for (idx, squeezed) in (0..).zip(&squeezed) {
            assert_eq!(squeezed.text().unwrap(), text(idx).into_bytes());
            assert!(squeezed.bytes.len() < 40, "{}", squeezed.bytes.len());
        }
    }

    /// Claims of another zone, or further in their lives, are alike among themselves.
    #[test]
    fn what_is_less_like_the_patterns_becomes_one_in_time() {
        let text = |zone: &str, idx: u64| {
            let offer = |it: u64| {
                format!(
                    "{:016x}/{zone}",
                    (it + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                )
            };
            let offers: Vec<String> = (0..50).map(offer).collect();
            format!("{idx}:{}", offers.join(","))
        };
        let mut press = Press::default();
        press.squeeze(text("h", 0).as_bytes());
        let early = press.squeeze(text("i", 1).as_bytes());
        assert_eq!(press.patterns.len(), 1, "it is not that different");

        let late = (0..200).map(|idx| press.squeeze(text("i", idx).as_bytes()));
        let late = late.last().unwrap();

        let (early, kept) = (early.bytes.len(), late.bytes.len());
        assert!(early > 3 * kept, "{early} and {kept}");
        assert_eq!(late.text().unwrap(), text("i", 199).into_bytes());
        assert_eq!(press.patterns.len(), 2);
    }

    #[test]
    fn what_is_not_like_the_pattern_is_the_next_one() {
        // Neither repeats itself.
        let text = |factor: u8| (0..=250).map(|idx: u8| idx.wrapping_mul(factor)).collect();
        let (one, other): (Vec<u8>, Vec<u8>) = (text(7), text(113));
        let mut press = Press::default();
        let first = press.squeeze(&one);
        let second = press.squeeze(&other);
        let third = press.squeeze(&other);
        let fourth = press.squeeze(&one);

        assert!(!Arc::ptr_eq(&first.pattern, &second.pattern));
        assert!(Arc::ptr_eq(&second.pattern, &third.pattern));
        assert!(Arc::ptr_eq(&first.pattern, &fourth.pattern), "by turns");
        assert_eq!(first.text().unwrap(), one);
        assert_eq!(third.text().unwrap(), other);
        assert_eq!(Press::default().squeeze(b"").text().unwrap(), b"");
    }
}
