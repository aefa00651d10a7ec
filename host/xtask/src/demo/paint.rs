//! Colours and widths of a terminal.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Plain,
    Dim,
    Bold,
    Green,
    Yellow,
    Red,
}

/// A piece of text in one colour; its width is that of the text.
pub(super) fn paint(text: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Plain => return text.to_owned(),
        Colour::Dim => "2",
        Colour::Bold => "1",
        Colour::Green => "32",
        Colour::Yellow => "33",
        Colour::Red => "31",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Cut or filled to exactly `width` characters. None of the texts has wide characters.
pub(super) fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A bar of `width` cells, of which the first `part` of `whole` are full.
pub(super) fn bar(part: usize, whole: usize, width: usize) -> String {
    let full = (width * part.min(whole)).checked_div(whole).unwrap_or(0);
    "█".repeat(full) + &"░".repeat(width - full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_column() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 4), "abc…");
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_there() {
        assert_eq!(bar(11, 12, 6), "█████░");
        assert_eq!(bar(12, 12, 6), "██████");
        assert_eq!(bar(0, 0, 2), "░░");
    }
}
