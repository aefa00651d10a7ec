//! Computing in the middle of tasks: what takes tens of milliseconds must not hold up those that wait for an answer.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does the work here, while another thread takes up what this one would have gone on with.
///
/// Answers that have come wait behind the work otherwise: two threads and two such works at a time made NodeClaims that the
/// API server had long made look as if they were still being written.
pub(crate) fn compute<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        // With one thread there is nobody to take over, and without a runtime nobody waits.
        Ok(_) | Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn others_go_on_while_every_thread_computes() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let went_on = runtime.block_on(async {
            let (tell, told) = oneshot::channel();
            let threads = Handle::current();
            let computing = threads.clone().spawn(async move {
                threads.spawn(async { tell.send(()) });
                compute(|| told.blocking_recv().is_ok())
            });
            tokio::time::timeout(Duration::from_secs(10), computing).await
        });
        assert!(went_on.unwrap().unwrap());

        assert_eq!(compute(|| 7), 7, "without a runtime");
        let one = Builder::new_current_thread().build().unwrap();
        assert_eq!(one.block_on(async { compute(|| 7) }), 7, "with one thread");
    }
}
