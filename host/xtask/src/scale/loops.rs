//! Turns of the provisioning loop, as the log tells them: from the end of a batch until its last claim was written. Pure.

use jiff::Timestamp;

const CLOSED: &str = "batch closed";
const WRITTEN: &str = "created NodeClaim";

/// How long each turn took that made a claim, in seconds, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Loops(Vec<f64>);

impl Loops {
    pub(super) fn read(log: &str) -> Self {
        let mut turns = Vec::new();
        let mut closed: Option<Timestamp> = None;
        let mut written: Option<Timestamp> = None;
        let mut end = |closed: Option<Timestamp>, written: Option<Timestamp>| {
            if let (Some(closed), Some(written)) = (closed, written) {
                turns.push(written.duration_since(closed).as_secs_f64());
            }
        };
        for line in log.lines() {
            let at = || line.split_whitespace().next()?.parse().ok();
            if line.contains(CLOSED) {
                end(closed, written.take());
                closed = at();
            } else if line.contains(WRITTEN) {
                written = at().or(written);
            }
        }
        end(closed, written);
        Self(turns)
    }

    /// The turns that came after those of an earlier reading of the same log.
    pub(super) fn after(self, earlier: &Self) -> Self {
        Self(self.0.into_iter().skip(earlier.0.len()).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Seconds that so many per cent of the turns did not exceed; infinite where there was none.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let mut turns = self.0.clone();
        turns.sort_by(f64::total_cmp);
        let rank = (turns.len() * percent).div_ceil(100).max(1);
        turns.get(rank - 1).copied().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: &str, text: &str) -> String {
        format!("2026-01-01T00:00:{second}Z  INFO {text}\n")
    }

    #[test]
    fn a_turn_ends_with_the_last_claim_of_its_batch() {
        let log = [
            line("01", "created NodeClaim nodeclaim=of-before"),
            line("02", "batch closed open_for=1s"),
            line("02.050", "created NodeClaim nodeclaim=a"),
            line("02.100", "created NodeClaim nodeclaim=b"),
            line("03", "batch closed open_for=1s"),
            line("04", "batch closed open_for=1s"),
            line("04.300", "created NodeClaim nodeclaim=c"),
        ];

        let early = Loops::read(&log[..4].concat());
        let all = Loops::read(&log.concat());

        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert_eq!((early.len(), all.len()), (1, 2));
        assert!(near(all.percentile(50), 0.1) && near(all.percentile(99), 0.3));
        assert!(near(all.after(&early).percentile(1), 0.3));
        assert!(Loops::default().percentile(99).is_infinite());
    }
}
