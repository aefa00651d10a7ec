//! Batching: pods that come together are planned together.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::context::Context;
use crate::hot::Batching;

/// Pods that stay pending are planned again at least this often (Karpenter: same).
const RETRY: Duration = Duration::from_secs(10);

/// Tells when the next batch is complete.
#[derive(Debug)]
pub struct Batcher {
    demand: watch::Receiver<u64>,
    arrivals: watch::Receiver<u64>,
    windows: watch::Receiver<Batching>,
}

impl Batcher {
    /// A batcher that counts what came before as its first batch.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        let mut demand = context.cluster.demand();
        demand.mark_changed();
        Self {
            demand,
            arrivals: context.cluster.arrivals(),
            windows: context.hot.watch_batching(),
        }
    }

    /// Waits for the first change in demand (or the retry), then until no pod came for the idle time, at most for the
    /// whole batch time (Karpenter: same). Nodes that join open a batch and do not hold it open: a large start would
    /// plan its last pods late. Windows that change hold for the batch that is open, too.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.demand.changed() => {}
            () = sleep(RETRY) => return,
        }
        let opened_at = Instant::now();
        self.arrivals.mark_unchanged();
        loop {
            let Batching { idle, max } = *self.windows.borrow_and_update();
            tokio::select! {
                changed = self.arrivals.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                changed = self.windows.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sleep(idle) => break,
                () = sleep_until(opened_at + max) => break,
            }
        }
        self.demand.mark_unchanged();
        tracing::debug!(open_for = ?opened_at.elapsed(), "batch closed");
    }
}
