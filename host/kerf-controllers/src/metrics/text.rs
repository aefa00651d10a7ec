//! Lines of Prometheus' text format, for what its Rust client has no type for or would hold in memory twice.

use std::fmt::{self, Write};

/// Takes pieces of the text one after the other. It fails when nobody reads them any more.
pub type Sink<'a> = &'a mut dyn FnMut(String) -> fmt::Result;

/// A gauge with its series; nothing where there are none.
pub(super) fn gauge(name: &str, help: &str, samples: &str) -> String {
    let mut out = String::new();
    if !samples.is_empty() {
        head(name, "gauge", help, &mut out);
        out.push_str(samples);
    }
    out
}

/// What comes before the series of a metric.
pub(super) fn head(name: &str, kind: &str, help: &str, out: &mut String) {
    // A String takes everything.
    let _ = write!(out, "# HELP {name} {help}.\n# TYPE {name} {kind}\n");
}

/// One series.
pub(super) fn sample<'a>(
    name: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    value: f64,
    out: &mut String,
) {
    out.push_str(name);
    let mut before = '{';
    for (label, value) in labels {
        out.push(before);
        before = ',';
        out.push_str(label);
        out.push_str("=\"");
        escape(value, out);
        out.push('"');
    }
    if before == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

fn escape(value: &str, out: &mut String) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            _ => out.push(letter),
        }
    }
}

/// All pieces as one text.
#[cfg(test)]
pub(super) fn gathered(render: impl FnOnce(Sink<'_>) -> fmt::Result) -> String {
    let mut text = String::new();
    let rendered = render(&mut |piece| text.write_str(&piece));
    rendered.expect("a String takes it");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_a_quote_or_a_line_break_stays_one_label() {
        let mut out = String::new();
        sample("some", [("a", "x\"y\\z\n"), ("b", "")], 1.5, &mut out);
        sample("other", [], f64::NAN, &mut out);

        assert_eq!(out, "some{a=\"x\\\"y\\\\z\\n\",b=\"\"} 1.5\nother NaN\n");
    }
}
