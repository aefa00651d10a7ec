//! Tasks that must outlive their caller: each has a name, and the process ends when one of them dies.
//!
//! A controller with one dead loop looks alive while it forgets half of its work, so it is better restarted whole.

use std::future::Future;

use tokio::sync::mpsc;

/// What became of a supervised task.
#[derive(Debug)]
pub enum Ended {
    /// The task returned although it should run until the process stops.
    Returned {
        /// The task's name.
        task: &'static str,
    },
    /// The task panicked or was cancelled.
    Died {
        /// The task's name.
        task: &'static str,
        /// What the runtime says about it.
        source: tokio::task::JoinError,
    },
}

/// Starts tasks and reports the first one that ends.
#[derive(Debug)]
pub struct Supervisor {
    ended_tx: mpsc::Sender<Ended>,
    ended_rx: mpsc::Receiver<Ended>,
}

impl Default for Supervisor {
    fn default() -> Self {
        // Only the first end is read: one slot is enough.
        let (ended_tx, ended_rx) = mpsc::channel(1);
        Self { ended_tx, ended_rx }
    }
}

impl Supervisor {
    /// Runs `future` until the process stops.
    #[expect(
        clippy::disallowed_methods,
        reason = "the supervised spawn that the lint points to"
    )]
    pub fn spawn(&self, task: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        let ended_tx = self.ended_tx.clone();
        let handle = tokio::spawn(future);
        tokio::spawn(async move {
            let ended = match handle.await {
                Ok(()) => Ended::Returned { task },
                Err(source) => Ended::Died { task, source },
            };
            // A full channel means that another end was reported first.
            let _ = ended_tx.try_send(ended);
        });
    }

    /// Waits until any supervised task has ended.
    pub async fn first_end(mut self) -> Option<Ended> {
        drop(self.ended_tx);
        self.ended_rx.recv().await
    }
}
