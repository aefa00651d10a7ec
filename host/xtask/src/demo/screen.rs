//! Shows looks: as a picture that changes in place on a terminal, as lines that tell what changed elsewhere.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::Instant;

use terminal_size::{Height, Width};

use super::changes::{self, Change};
use super::look::Look;
use super::paint::{Colour, fit, paint};
use super::stack::Stack;
use super::table;

/// What happened lately, below the table.
const STORY_MAX: usize = 200;
/// Terminals are at least this large; one that says nothing about itself is taken for this.
const SIZE_DEFAULT: (u16, u16) = (100, 40);
const HIDE_CURSOR_ON_OTHER_SCREEN: &str = "\u{1b}[?1049h\u{1b}[?25l";
const SHOW_CURSOR_ON_FIRST_SCREEN: &str = "\u{1b}[?25h\u{1b}[?1049l";

#[derive(Debug)]
pub(super) struct Screen {
    is_terminal: bool,
    /// On the terminal's other screen, without a cursor.
    is_drawing: bool,
    started: Instant,
    kubeconfig: String,
    last: Look,
    story: VecDeque<(String, Change)>,
}

impl Screen {
    pub(super) fn open(stack: &Stack, started: Instant) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let kubeconfig = stack.kubeconfig();
        if is_terminal {
            put(HIDE_CURSOR_ON_OTHER_SCREEN);
        } else {
            println!("kubectl --kubeconfig {kubeconfig} get nodeclaims");
        }
        Self {
            is_terminal,
            is_drawing: is_terminal,
            started,
            kubeconfig,
            last: Look::default(),
            story: VecDeque::new(),
        }
    }

    pub(super) fn show(&mut self, look: Look) {
        let time = self.time();
        for change in changes::between(&self.last, &look) {
            if !self.is_terminal {
                println!("{time}  {}", change.text);
            }
            self.story.push_back((time.clone(), change));
        }
        while self.story.len() > STORY_MAX {
            self.story.pop_front();
        }
        self.last = look;
        if self.is_terminal {
            self.draw();
        }
    }

    /// Leaves the last picture on the terminal, and returns what it showed.
    pub(super) fn close(&mut self) -> Look {
        self.leave();
        if self.is_terminal {
            println!("{}\n", table::render(&self.last).join("\n"));
        }
        std::mem::take(&mut self.last)
    }

    fn leave(&mut self) {
        if self.is_drawing {
            self.is_drawing = false;
            put(SHOW_CURSOR_ON_FIRST_SCREEN);
        }
    }

    /// Each line is cleared to its end and the rest of the screen below, so that nothing flickers.
    fn draw(&self) {
        let (width, height) = size();
        let mut lines = vec![self.heading(), String::new()];
        lines.extend(table::render(&self.last));
        lines.push(String::new());
        let footer = paint(
            &format!("  kubectl --kubeconfig {} get nodeclaims", self.kubeconfig),
            Colour::Dim,
        );
        let room = height.saturating_sub(lines.len() + 3);
        lines.extend(self.story_lines(room, width));
        lines.push(String::new());
        lines.push(footer);
        lines.truncate(height);
        let mut picture = String::from("\u{1b}[H");
        for (index, line) in lines.iter().enumerate() {
            let end = if index + 1 == lines.len() { "" } else { "\r\n" };
            // Writing to a String cannot fail.
            let _ = write!(picture, "{line}\u{1b}[0m\u{1b}[K{end}");
        }
        picture.push_str("\u{1b}[J");
        put(&picture);
    }

    fn heading(&self) -> String {
        let title = paint("kerf", Colour::Bold);
        let text = paint(
            "a local cluster, a simulated cloud · Ctrl-C ends it",
            Colour::Dim,
        );
        format!("  {title}  {}  {text}", self.time())
    }

    fn story_lines(&self, room: usize, width: usize) -> Vec<String> {
        let first = self.story.len().saturating_sub(room);
        let line = |(time, change): &(String, Change)| {
            let text = fit(&change.text, width.saturating_sub(10));
            format!(
                "  {} {}",
                paint(time, Colour::Dim),
                paint(text.trim_end(), change.colour)
            )
        };
        self.story.iter().skip(first).map(line).collect()
    }

    fn time(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        format!("{:02}:{:02}", seconds / 60, seconds % 60)
    }
}

/// A panic must not leave a terminal without a cursor.
impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

fn size() -> (usize, usize) {
    let (Width(width), Height(height)) =
        terminal_size::terminal_size().unwrap_or((Width(SIZE_DEFAULT.0), Height(SIZE_DEFAULT.1)));
    (usize::from(width), usize::from(height))
}

/// A terminal that is gone cannot be told.
fn put(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
