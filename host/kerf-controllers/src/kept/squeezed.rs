//! One text squeezed against a pattern: what both have in common is told by its place in the pattern.

use std::collections::VecDeque;
use std::sync::Arc;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// A text that keeps more than a third of its length is not like any pattern: it is one for those that follow. What is
/// alike keeps less than a fifth.
const KEEPS_MAX_PERCENT: usize = 33;

/// Patterns that are tried, the one that fitted last first. Nodes of several pools and machines that are not ours come in turns.
const PATTERNS_MAX: usize = 4;

/// A text with its pattern.
pub(super) struct Squeezed {
    bytes: Box<[u8]>,
    pattern: Arc<[u8]>,
}

/// Squeezes texts that are alike.
#[derive(Default)]
pub(super) struct Press {
    patterns: VecDeque<Arc<[u8]>>,
}

impl Press {
    pub(super) fn squeeze(&mut self, text: &[u8]) -> Squeezed {
        let keeps_max = text.len().saturating_mul(KEEPS_MAX_PERCENT) / 100;
        let fitting = self.patterns.iter().enumerate().find_map(|(idx, pattern)| {
            let squeezed = Squeezed::new(text, pattern);
            (squeezed.bytes.len() <= keeps_max).then_some((idx, squeezed))
        });
        if let Some((idx, squeezed)) = fitting {
            self.patterns.swap(0, idx);
            return squeezed;
        }
        let pattern: Arc<[u8]> = text.into();
        let squeezed = Squeezed::new(text, &pattern);
        self.patterns.truncate(PATTERNS_MAX - 1);
        self.patterns.push_front(pattern);
        squeezed
    }
}

impl Squeezed {
    fn new(text: &[u8], pattern: &Arc<[u8]>) -> Self {
        Self {
            bytes: compress_prepend_size_with_dict(text, pattern).into(),
            pattern: Arc::clone(pattern),
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
