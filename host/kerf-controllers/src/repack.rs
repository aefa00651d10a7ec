//! Moves the index and the kept texts together in memory once a burst is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::interval;

use crate::context::Context;

/// The last pods of a burst have come long before that, and a quiet cluster has its memory back within a minute.
const EVERY: Duration = Duration::from_secs(20);
/// Fewer changes of the index leave few gaps in memory.
const CHANGES_MIN: u64 = 1_000;
/// With more changes than these between two looks, a burst goes on. The index is locked for some ten milliseconds for each
/// 10,000 pods, which nobody should wait for then.
const QUIET_MAX: u64 = 200;

/// Looks until the process ends. Returns only where the index may be half moved, which ends the process.
pub(crate) async fn run(context: Arc<Context>) {
    let changes = context.cluster.changes();
    let (mut seen, mut moved) = (0, 0);
    let mut ticks = interval(EVERY);
    loop {
        ticks.tick().await;
        let now = *changes.borrow();
        let is_quiet = now.wrapping_sub(seen) <= QUIET_MAX;
        seen = now;
        if !is_quiet || now.wrapping_sub(moved) < CHANGES_MIN {
            continue;
        }
        moved = now;
        let context = Arc::clone(&context);
        if let Err(error) = spawn_blocking(move || move_together(&context)).await {
            tracing::error!(%error, "the index was not moved together; hint: this is a bug, report it");
            return;
        }
    }
}

fn move_together(context: &Context) {
    context.cluster.repack();
    context.stores.nodeclaims.repack();
    context.stores.nodes.repack();
}
