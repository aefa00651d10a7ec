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
}

impl Batcher {
    /// A batcher that counts what came before as its first batch.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        let mut demand = context.cluster.demand();
        demand.mark_changed();
        Self { demand }
    }

    /// Waits for the first change in demand (or the retry), then until none came for the idle time, at most for the
    /// whole batch time.
    pub async fn wait(&mut self, context: &Context) {
        tokio::select! {
            _ = self.demand.changed() => {}
            () = sleep(RETRY) => return,
        }
        let closes_at = Instant::now() + context.settings.batch_max;
        loop {
            tokio::select! {
                changed = self.demand.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sleep(context.settings.batch_idle) => return,
                () = sleep_until(closes_at) => return,
            }
        }
    }
}
