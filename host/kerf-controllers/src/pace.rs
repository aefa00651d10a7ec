//! A burst at once, and then one by one (client-go, "token bucket": same). Who asks says what time it is.

use std::time::Duration;

use tokio::time::Instant;

/// When the next one may go.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pause: Duration,
    /// How far those that go may be ahead of the pace.
    ahead: Duration,
    /// When the next one would be due at the pace alone.
    next_at: Option<Instant>,
}

impl Pace {
    /// `burst` at once, where nothing went for long enough, and one each `pause`.
    #[must_use]
    pub fn new(pause: Duration, burst: u32) -> Self {
        Self {
            pause,
            ahead: pause * burst.saturating_sub(1),
            next_at: None,
        }
    }

    /// When the next one may go; now, or later.
    #[must_use]
    pub fn due(&self, now: Instant) -> Instant {
        let due = self.next_at.and_then(|at| at.checked_sub(self.ahead));
        due.map_or(now, |due| due.max(now))
    }

    /// One goes now.
    pub fn take(&mut self, now: Instant) {
        self.next_at = Some(self.next_at.map_or(now, |at| at.max(now)) + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(200);

    /// When each of them goes, in tenths of a second.
    fn gone(count: usize, start: Instant, from: Instant, pace: &mut Pace) -> Vec<u128> {
        let mut now = from;
        let mut gone = Vec::new();
        for _ in 0..count {
            now = pace.due(now);
            pace.take(now);
            gone.push((now - start).as_millis() / 100);
        }
        gone
    }

    #[test]
    fn after_a_burst_one_goes_after_the_other_and_never_does_all_stand_still() {
        let start = Instant::now();
        let mut pace = Pace::new(PAUSE, 3);

        assert_eq!(gone(6, start, start, &mut pace), [0, 0, 0, 2, 4, 6]);
        // Of the burst as much is there again as time has passed.
        let later = start + 5 * PAUSE;
        assert_eq!(gone(3, start, later, &mut pace), [10, 10, 12]);
        let rested = start + 100 * PAUSE;
        assert_eq!(gone(4, start, rested, &mut pace), [200, 200, 200, 202]);
    }
}
