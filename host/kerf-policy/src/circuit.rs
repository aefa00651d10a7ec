//! The circuit breaker: a policy that keeps failing is left alone for a while, so that it cannot slow every decision.

use crate::spec::CircuitState;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One failure may be bad luck (a busy machine); five in a row are a broken policy.
const FAILURES_MAX: u32 = 5;
/// Long enough to skip a burst of decisions, short enough that nobody waits for a policy that recovered.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A broken policy costs one call in five minutes.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Belongs to one version and configuration of a policy: a new one starts closed.
#[derive(Debug, Default)]
pub(crate) struct Circuit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Set while open or half open.
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    length: Duration,
    until: Instant,
    /// Somebody is trying whether it works again.
    is_tried: bool,
}

impl Circuit {
    /// Whether the policy may be asked. `true` in the half-open state is given once per pause.
    pub(crate) fn admit(&self, now: Instant) -> bool {
        match &mut self.lock().pause {
            None => true,
            Some(pause) if now < pause.until || pause.is_tried => false,
            Some(pause) => {
                pause.is_tried = true;
                true
            }
        }
    }

    pub(crate) fn succeed(&self) {
        *self.lock() = State::default();
    }

    pub(crate) fn fail(&self, now: Instant) {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES_MAX {
            return;
        }
        let length = match &state.pause {
            Some(pause) => (pause.length * 2).min(PAUSE_MAX),
            None => PAUSE_MIN,
        };
        state.pause = Some(Pause {
            length,
            until: now + length,
            is_tried: false,
        });
    }

    pub(crate) fn state(&self, now: Instant) -> CircuitState {
        match &self.lock().pause {
            None => CircuitState::Closed,
            Some(pause) if now < pause.until => CircuitState::Open,
            Some(_) => CircuitState::HalfOpen,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_five_failures_and_tries_once_per_pause() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        for _ in 0..4 {
            circuit.fail(start);
        }
        assert!(circuit.admit(start));

        circuit.fail(start);

        assert!(!circuit.admit(start));
        assert_eq!(circuit.state(start), CircuitState::Open);
        let later = start + PAUSE_MIN;
        assert_eq!(circuit.state(later), CircuitState::HalfOpen);
        assert!(circuit.admit(later));
        assert!(!circuit.admit(later), "only one may try");
    }

    #[test]
    fn a_failed_trial_doubles_the_pause_and_a_success_closes() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        for _ in 0..6 {
            circuit.fail(start);
        }
        assert!(!circuit.admit(start + PAUSE_MIN));
        assert!(circuit.admit(start + PAUSE_MIN * 2));

        circuit.succeed();

        assert_eq!(circuit.state(start), CircuitState::Closed);
        assert!(circuit.admit(start));
    }

    #[test]
    fn the_pause_has_an_end() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        for _ in 0..100 {
            circuit.fail(start);
        }

        assert!(circuit.admit(start + PAUSE_MAX));
    }
}
