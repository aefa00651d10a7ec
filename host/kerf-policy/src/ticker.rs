//! The clock of policy calls: a thread that moves the engine's epoch while a call is under way. Between calls it sleeps,
//! so that a controller in which nothing happens does not wake up 200 times a second.

use crate::limits::TICK;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Runs until it is dropped.
pub(crate) struct Ticker(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    is_over: bool,
}

/// A call that is under way; it ends when this is dropped.
pub(crate) struct Ticking<'a>(&'a Shared);

impl Ticker {
    /// Starts the thread, which calls `tick` every [`TICK`] while there are calls.
    pub(crate) fn start(tick: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("kerf-policy-tick".into())
            .spawn(move || {
                while of_thread.await_call() {
                    std::thread::sleep(TICK);
                    tick();
                }
            })?;
        Ok(Self(shared))
    }

    /// The clock runs from here to the end of the guard.
    pub(crate) fn during_call(&self) -> Ticking<'_> {
        self.0.lock().calls += 1;
        self.0.changed.notify_one();
        Ticking(&self.0)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when there will be no more.
    fn await_call(&self) -> bool {
        let is_idle = |state: &mut State| state.calls == 0 && !state.is_over;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).is_over
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.lock().calls -= 1;
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_one();
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn it_ticks_while_a_call_runs_and_its_thread_ends_with_it() {
        let (ticks, ticked) = mpsc::channel();
        let tick = move || {
            // The test may have ended.
            let _ = ticks.send(());
        };
        let ticker = Ticker::start(tick).unwrap();
        assert!(ticked.try_recv().is_err());

        let first = ticker.during_call();
        let second = ticker.during_call();
        drop(first);
        let patience = Duration::from_secs(10);
        for _ in 0..3 {
            ticked.recv_timeout(patience).unwrap();
        }
        drop(second);
        drop(ticker);

        // The sender goes with the thread, after the ticks that were on their way.
        let end = loop {
            if let Err(end) = ticked.recv_timeout(patience) {
                break end;
            }
        };
        assert_eq!(end, mpsc::RecvTimeoutError::Disconnected);
    }
}
