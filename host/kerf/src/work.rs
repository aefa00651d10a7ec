//! Work that takes long: what is being done is shown on a terminal, and Ctrl-C ends it with what is known so far.

mod interrupt;
mod progress;

use interrupt::Interrupt;
use progress::Progress;

/// Ends with the process, or when dropped.
pub(crate) struct Work {
    progress: Progress,
    interrupt: Interrupt,
}

impl Work {
    /// From now on Ctrl-C is ours: the first prints what is known, the second ends at once.
    pub(crate) fn begin() -> Self {
        Self {
            progress: Progress::begin(),
            interrupt: Interrupt::watch(),
        }
    }

    /// What is being done from now on, such as `reading manifests`. Until something is known, an interrupted process says
    /// what it was at.
    pub(crate) fn doing(&self, what: &str) {
        self.progress.show(what.to_owned());
        self.interrupt.doing(what);
    }

    /// An answer that would do if nobody waited for the rest.
    pub(crate) fn knows(&self, answer: String) {
        self.interrupt.knows(answer);
    }

    /// So many of so many steps are done. Whether to go on: from here on whoever works prints what is known.
    pub(crate) fn step(&self, what: &str, done: usize, of: usize) -> bool {
        self.progress.show(format!("{what}: {done} of {of}"));
        self.interrupt.is_left_to_worker()
    }

    /// The answer is there: takes the line away and leaves the output alone. Whether somebody interrupted the work.
    pub(crate) fn end(self) -> bool {
        drop(self.progress);
        self.interrupt.end()
    }
}
