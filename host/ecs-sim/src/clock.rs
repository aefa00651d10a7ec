//! The one clock of the simulator, and the owner of its background tasks.
//!
//! Everything else takes `now` as an argument, so that the rules of an instance's life can be read and tested without
//! waiting. Tasks die with their [`Tasks`], never later.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

/// How far the clock is from the machine's.
static OFFSET_MS: AtomicI64 = AtomicI64::new(0);

/// The wall clock, unless it was set: ECS stamps signatures, tokens and creation times with it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    let offset = SignedDuration::from_millis(OFFSET_MS.load(Ordering::Relaxed));
    now.checked_add(offset).unwrap_or(now)
}

/// Sets the clock of all simulators of this process; it goes on from there.
pub fn set_clock(now: Timestamp) {
    let offset = now.as_millisecond() - Timestamp::now().as_millisecond();
    OFFSET_MS.store(offset, Ordering::Relaxed);
}

/// The background tasks of one simulator: boots, releases of machines, removals of nodes.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// Starts a task that ends at the latest when [`Tasks::abort`] is called.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished tasks are taken out here; nobody else waits for them.
        while running.try_join_next().is_some() {}
        running.spawn(task);
    }

    /// Ends all tasks and waits until they are gone.
    pub(crate) async fn shut_down(&self) {
        let mut running =
            std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    pub(crate) fn abort(&self) {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }
}
