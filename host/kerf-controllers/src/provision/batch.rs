//! Batching: pods that come together are planned together.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::context::Context;

/// Pods that stay pending are planned again at least this often (Karpenter: same).
const RETRY: Duration = Duration::from_secs(10);

/// Tells when the next batch is complete.
#[derive(Debug)]
pub struct Batcher {
    demand: watch::Receiver<u64>,
    arrivals: watch::Receiver<u64>,
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
        }
    }

    /// Waits for the first change in demand (or the retry), then until no pod came for the idle time, at most for the
    /// whole batch time (Karpenter: same). Nodes that join open a batch and do not hold it open: a large start would
    /// plan its last pods late.
    pub async fn wait(&mut self, context: &Context) {
        tokio::select! {
            _ = self.demand.changed() => {}
            () = sleep(RETRY) => return,
        }
        let closes_at = Instant::now() + context.settings.batch_max;
        self.arrivals.mark_unchanged();
        loop {
            tokio::select! {
                changed = self.arrivals.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sleep(context.settings.batch_idle) => break,
                () = sleep_until(closes_at) => break,
            }
        }
        self.demand.mark_unchanged();
    }
}
