//! Ctrl-C: what is known so far is printed and the process ends with [`exit::INTERRUPTED`].

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exit;
use crate::work::progress;

/// What there is to print.
enum Known {
    /// Nothing; this is being done.
    Nothing(String),
    /// An answer.
    Answer(String),
    /// The worker looks now and then whether it was interrupted, and prints by itself.
    LeftToWorker { is_interrupted: bool },
    /// The answer is being printed.
    Ended,
}

/// The watch over Ctrl-C.
#[derive(Clone)]
pub(super) struct Interrupt(Arc<Mutex<Known>>);

impl Interrupt {
    /// Takes Ctrl-C over. Where that cannot be had, it ends the process as it always does.
    pub(super) fn watch() -> Self {
        let watch = Self(Arc::new(Mutex::new(Known::Nothing("starting".to_owned()))));
        let watcher = watch.clone();
        let name = "ctrl-c".to_owned();
        let spawned = std::thread::Builder::new()
            .name(name)
            .spawn(move || watcher.wait());
        if let Err(error) = spawned {
            tracing::debug!(%error, "Ctrl-C ends without an answer");
        }
        watch
    }

    fn wait(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return;
        };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            self.interrupted();
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn doing(&self, what: &str) {
        let mut known = self.known();
        if let Known::Nothing(doing) = &mut *known {
            what.clone_into(doing);
        }
    }

    pub(super) fn knows(&self, answer: String) {
        *self.known() = Known::Answer(answer);
    }

    /// Whether the worker may go on; it prints by itself from now on.
    pub(super) fn is_left_to_worker(&self) -> bool {
        let mut known = self.known();
        match &*known {
            Known::LeftToWorker { is_interrupted } => !is_interrupted,
            Known::Nothing(_) | Known::Answer(_) | Known::Ended => {
                *known = Known::LeftToWorker {
                    is_interrupted: false,
                };
                true
            }
        }
    }

    /// Nothing is printed here any more. Whether somebody interrupted.
    pub(super) fn end(&self) -> bool {
        let ended = std::mem::replace(&mut *self.known(), Known::Ended);
        matches!(
            ended,
            Known::LeftToWorker {
                is_interrupted: true
            }
        )
    }

    fn interrupted(&self) {
        // Held until the process ends, so that the worker does not print besides.
        let mut known = self.known();
        progress::clear();
        match &mut *known {
            Known::LeftToWorker { is_interrupted } if !*is_interrupted => {
                *is_interrupted = true;
                return;
            }
            Known::LeftToWorker { .. } | Known::Ended => {}
            Known::Nothing(doing) => {
                // Nobody is left to tell when standard error is closed.
                let mut err = std::io::stderr().lock();
                let _ = writeln!(err, "interrupted while {doing}: nothing is known yet");
            }
            Known::Answer(answer) => {
                let mut out = std::io::stdout().lock();
                let _ = write!(out, "{answer}").and_then(|()| out.flush());
            }
        }
        std::process::exit(exit::INTERRUPTED.into());
    }
}
