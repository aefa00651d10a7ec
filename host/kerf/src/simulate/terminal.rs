//! Colours and width of the terminal that the answer goes to.

use std::io::IsTerminal as _;

use crate::simulate::args::{Color, Look};

/// The width where nobody says one, such as in a pipe.
const WIDTH_DEFAULT: usize = 100;

/// What the terminal can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) has_colors: bool,
    pub(crate) width: usize,
}

impl Terminal {
    pub(crate) fn of(look: &Look) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let is_refused = look.no_color.as_deref().is_some_and(|it| !it.is_empty());
        let size = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self {
            has_colors: match look.color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => is_terminal && !is_refused,
            },
            width: look.columns.or(size).unwrap_or(WIDTH_DEFAULT),
        }
    }

    /// The text in the colour of an ANSI code, such as `1` for bold.
    pub(crate) fn paint(self, text: &str, code: &str) -> String {
        if self.has_colors {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
