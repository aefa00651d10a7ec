//! An adaptive token bucket per action: it starts from a safe rate, halves when the server says so, and recovers
//! slowly. Nobody publishes the limits, so they are learnt.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A throttled rate never falls below this: thirty calls a minute are far below any limit that is known of, and a launch
/// of hundreds gets somewhere while every second call is refused.
const RATE_MIN: f64 = 0.5;
/// Every good call gives back this part of the normal rate.
const RECOVERY_PART: f64 = 0.02;
/// So does time, per second: where a part of all calls is refused whatever the rate is, good calls alone would leave it at its
/// lowest for ever.
const RECOVERY_PART_PER_SECOND: f64 = 0.2;
/// Refusals within that time are one sign: the calls of a burst are under way together.
const ONE_SIGN: Duration = Duration::from_secs(1);

/// Actions that begin at a multiple of the rate: a launch of hundreds is followed by as many of them, and they change
/// nothing else. Other clients of the same API begin at 500 a minute of each action.
const FASTER: [(&str, f64); 1] = [("TagResources", 2.0)];

/// Buckets by action.
#[derive(Debug)]
pub struct Limiter {
    rate_normal: f64,
    burst: f64,
    buckets: Mutex<BTreeMap<&'static str, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    rate: f64,
    tokens: f64,
    at: Instant,
    blocked_until: Instant,
    slowed_at: Option<Instant>,
}

impl Limiter {
    /// Each action starts with `burst` calls at once and `calls_per_second` after that.
    #[must_use]
    pub fn new(calls_per_second: f64, burst: u32) -> Self {
        Self {
            rate_normal: calls_per_second.max(RATE_MIN),
            burst: f64::from(burst.max(1)),
            buckets: Mutex::default(),
        }
    }

    /// Takes one call's token and says how long to wait before using it.
    pub fn take(&self, action: &'static str, now: Instant) -> Duration {
        self.with(action, now, |bucket, _, _| {
            // Going into debt queues callers fairly: each waits for its own token.
            bucket.tokens -= 1.0;
            let refill = Duration::from_secs_f64((-bucket.tokens).max(0.0) / bucket.rate);
            let block = bucket.blocked_until.saturating_duration_since(now);
            refill.max(block)
        })
    }

    /// Gives back a token whose caller stopped waiting before it sent anything.
    pub fn put_back(&self, action: &'static str, now: Instant) {
        self.with(action, now, |bucket, _, burst| {
            bucket.tokens = (bucket.tokens + 1.0).min(burst);
        });
    }

    /// The server refused a call: half the rate, once for a burst, and nothing before `retry_after`.
    pub fn on_throttled(&self, action: &'static str, retry_after: Option<Duration>, now: Instant) {
        self.with(action, now, |bucket, _, _| {
            let is_news = |at: Instant| now.saturating_duration_since(at) >= ONE_SIGN;
            if bucket.slowed_at.is_none_or(is_news) {
                bucket.rate = (bucket.rate / 2.0).max(RATE_MIN);
                bucket.slowed_at = Some(now);
            }
            bucket.tokens = bucket.tokens.min(0.0);
            if let Some(pause) = retry_after {
                bucket.blocked_until = bucket.blocked_until.max(now + pause);
            }
        });
    }

    /// A call was answered: a little faster again.
    pub fn on_answered(&self, action: &'static str, now: Instant) {
        self.with(action, now, |bucket, normal, _| {
            bucket.rate = (bucket.rate + normal * RECOVERY_PART).min(normal);
        });
    }

    /// The present rate of an action, in calls per second.
    pub fn rate(&self, action: &'static str, now: Instant) -> f64 {
        self.with(action, now, |bucket, _, _| bucket.rate)
    }

    fn with<T>(
        &self,
        action: &'static str,
        now: Instant,
        update: impl FnOnce(&mut Bucket, f64, f64) -> T,
    ) -> T {
        let faster = FASTER.iter().find(|(name, _)| *name == action);
        let normal = self.rate_normal * faster.map_or(1.0, |(_, times)| *times);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(action).or_insert(Bucket {
            rate: normal,
            tokens: self.burst,
            at: now,
            blocked_until: now,
            slowed_at: None,
        });
        let elapsed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + elapsed * bucket.rate).min(self.burst);
        let recovered = elapsed * normal * RECOVERY_PART_PER_SECOND;
        bucket.rate = (bucket.rate + recovered).min(normal);
        bucket.at = bucket.at.max(now);
        update(bucket, normal, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_calls_queue() {
        let limiter = Limiter::new(2.0, 3);
        let now = Instant::now();

        let waits: Vec<_> = (0..5).map(|_| limiter.take("A", now).as_millis()).collect();

        assert_eq!(waits, [0, 0, 0, 500, 1000]);
        assert_eq!(limiter.take("B", now), Duration::ZERO);
    }

    #[test]
    fn throttling_halves_and_success_recovers() {
        let limiter = Limiter::new(4.0, 1);
        let now = Instant::now();

        limiter.on_throttled("A", Some(Duration::from_secs(7)), now);
        let slow = limiter.rate("A", now);
        let wait = limiter.take("A", now);
        (0..100).for_each(|_| limiter.on_answered("A", now));

        assert!((slow - 2.0).abs() < 1e-9);
        assert_eq!(wait, Duration::from_secs(7));
        assert!((limiter.rate("A", now) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_that_is_refused_slows_once_and_time_recovers() {
        let limiter = Limiter::new(4.0, 10);
        let now = Instant::now();

        (0..10).for_each(|_| limiter.on_throttled("A", None, now));
        let after_burst = limiter.rate("A", now);
        let later = limiter.rate("A", now + Duration::from_secs(1));
        let much_later = limiter.rate("A", now + Duration::from_secs(60));

        assert!((after_burst - 2.0).abs() < 1e-9);
        assert!((later - 2.8).abs() < 1e-9);
        assert!((much_later - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_token_put_back_can_be_taken_again() {
        let limiter = Limiter::new(1.0, 1);
        let now = Instant::now();
        limiter.take("A", now);

        limiter.put_back("A", now);

        assert_eq!(limiter.take("A", now), Duration::ZERO);
    }
}
