//! A line on a terminal's standard error that says what is being done. Nothing is shown where standard error is no terminal,
//! nor of work that is done in a moment.
//!
//! It is a line, a clock and a width; the crates for this bring five more packages.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is done before this needs no line, which would only flicker.
const PATIENCE: Duration = Duration::from_millis(300);
/// Often enough that it does not look stuck.
const REDRAW: Duration = Duration::from_millis(200);
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];
const WIDTH_DEFAULT: usize = 80;
/// Takes back what is on the line.
const CLEAR: &str = "\r\u{1b}[2K";

#[derive(Default)]
struct State {
    text: String,
    is_over: bool,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// The line; it goes when this is dropped.
pub(super) struct Progress {
    shared: Shared,
    drawer: Option<JoinHandle<()>>,
}

impl Progress {
    pub(super) fn begin() -> Self {
        let shared = Shared::default();
        let own = Arc::clone(&shared);
        let is_terminal = std::io::stderr().is_terminal();
        let spawn = || std::thread::Builder::new().name("progress".to_owned());
        let drawer = is_terminal.then(|| spawn().spawn(move || draw(&own)).ok());
        Self {
            shared,
            drawer: drawer.flatten(),
        }
    }

    pub(super) fn show(&self, text: String) {
        let (state, _) = &*self.shared;
        state.lock().unwrap_or_else(PoisonError::into_inner).text = text;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let (state, over) = &*self.shared;
        state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        over.notify_all();
        if let Some(drawer) = self.drawer.take() {
            // A drawer that fell over took only its line with it.
            let _ = drawer.join();
        }
    }
}

fn draw(shared: &Shared) {
    let (state, over) = &**shared;
    let width = terminal_size::terminal_size_of(std::io::stderr());
    let width = width.map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
    let mut pause = PATIENCE;
    let mut turns = 0;
    loop {
        let guard = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = over.wait_timeout_while(guard, pause, |state| !state.is_over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            break;
        }
        let line = line(&state.text, turns, width);
        drop(state);
        let mut err = std::io::stderr().lock();
        // Nobody looks when standard error is closed.
        let _ = write!(err, "{CLEAR}{line}").and_then(|()| err.flush());
        turns += 1;
        pause = REDRAW;
    }
    if turns > 0 {
        clear();
    }
}

/// Takes away what may be on the line.
pub(super) fn clear() {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "{CLEAR}").and_then(|()| err.flush());
    }
}

/// What the line shows, never as wide as the terminal, since a full line would wrap.
fn line(text: &str, turns: usize, width: usize) -> String {
    let spinner = SPINNER[turns % SPINNER.len()];
    let line = format!("{spinner} {text}");
    line.chars().take(width.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_turns_and_never_wraps() {
        assert_eq!(line("planning", 1, 80), "/ planning");
        assert_eq!(line("planning", 4, 6), "| pla");
        assert_eq!(line("planning", 0, 0), "");
    }
}
