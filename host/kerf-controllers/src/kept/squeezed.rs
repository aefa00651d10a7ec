//! One text squeezed against a pattern: what both have in common is told by its place in the pattern.

use std::sync::Arc;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// A text that keeps more than a third of its length is not like the pattern: it is the pattern of those that follow. What is
/// alike keeps less than a fifth.
const KEEPS_MAX_PERCENT: usize = 33;

/// A text with its pattern.
pub(super) struct Squeezed {
    bytes: Box<[u8]>,
    pattern: Arc<[u8]>,
}

/// Squeezes texts that are alike.
pub(super) struct Press {
    pattern: Arc<[u8]>,
}

impl Default for Press {
    fn default() -> Self {
        Self {
            pattern: Arc::new([]),
        }
    }
}

impl Press {
    pub(super) fn squeeze(&mut self, text: &[u8]) -> Squeezed {
        let squeezed = Squeezed::new(text, &self.pattern);
        let keeps_max = text.len().saturating_mul(KEEPS_MAX_PERCENT) / 100;
        if squeezed.bytes.len() <= keeps_max {
            return squeezed;
        }
        self.pattern = text.into();
        Squeezed::new(text, &self.pattern)
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

        assert!(!Arc::ptr_eq(&first.pattern, &second.pattern));
        assert!(Arc::ptr_eq(&second.pattern, &third.pattern));
        assert_eq!(first.text().unwrap(), one);
        assert_eq!(third.text().unwrap(), other);
        assert_eq!(Press::default().squeeze(b"").text().unwrap(), b"");
    }
}
