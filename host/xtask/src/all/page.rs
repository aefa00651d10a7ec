//! The page of numbers. Pure.

use std::fmt::Write as _;

use serde_json::Value;

use super::Outcomes;
use super::table::{Figure, Limit, MEASUREMENTS, Measurement};

const HEAD: &str = "# Numbers

`cargo xtask bench all` wrote this page from docs/benchmarks.json, which has what each command printed. Builds are release builds but for
chaos and fuzz; each command fails when a figure is beyond its limit. Figures of upstream are those of Karpenter 1.14.1 as a library on the
same inputs. Times on a machine that others use too differ by a tenth from run to run; `cargo xtask bench instructions` is a part of `make test`
for that reason.

| what | figure | limit | met | on |
|---|---|---|---|---|
";

/// The whole page.
pub(super) fn render(outcomes: &Outcomes) -> String {
    let mut page = HEAD.to_owned();
    let mut machines: Vec<&str> = Vec::new();
    for measurement in MEASUREMENTS {
        let Some(outcome) = outcomes.get(measurement.name) else {
            continue;
        };
        if !machines.contains(&outcome.machine.as_str()) {
            machines.push(&outcome.machine);
        }
        for figure in measurement.figures {
            page.push_str(&row(figure, &outcome.result, &outcome.on));
        }
    }
    let _ = write!(
        page,
        "\nMeasured on: {}.\n\n| command | says |\n|---|---|\n",
        machines.join("; ")
    );
    for measurement in MEASUREMENTS {
        let Measurement {
            name, args, about, ..
        } = measurement;
        let is_there = if outcomes.contains_key(*name) {
            ""
        } else {
            " **Not run on this version.**"
        };
        let _ = writeln!(
            page,
            "| `cargo xtask {}` | {about}{is_there} |",
            args.join(" ")
        );
    }
    page.push_str(NOTES);
    page
}

const NOTES: &str = "
The 14 days of a production trace are by design within a hundredth of what upstream's own search makes of them, and
[no fleet is five per cent cheaper](decisions/0118-no-fleet-is-five-percent-cheaper-than-upstreams-on-the-trace.md).

The 1,000 pods beside 2,000 nodes wait for a machine of two cores that is busy from the first to the last of them:
[what takes the processor's time](decisions/0515-nodes-open-before-other-writes.md).
";

fn row(figure: &Figure, result: &Value, on: &str) -> String {
    let value = result.pointer(figure.pointer);
    let limit = match figure.limit {
        Limit::Below(pointer) => result.pointer(pointer).cloned(),
        Limit::Most(number) | Limit::Least(number) => Some(Value::from(number)),
        Limit::None => None,
    };
    let is_met = match (
        &figure.limit,
        value.and_then(number),
        limit.as_ref().and_then(number),
    ) {
        (Limit::None, ..) => "",
        (Limit::Least(_), Some(value), Some(limit)) => yes_or_no(value >= limit),
        (_, Some(value), Some(limit)) => yes_or_no(value <= limit),
        _ => "**not told**",
    };
    let text = |value: Option<&Value>| value.map_or_else(|| "-".to_owned(), shown);
    let unit = figure.unit;
    let bound = limit
        .as_ref()
        .map_or_else(|| "-".to_owned(), |it| format!("{}{unit}", shown(it)));
    format!(
        "| {} | {}{unit} | {bound} | {is_met} | {on} |\n",
        figure.what,
        text(value)
    )
}

fn yes_or_no(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "**no**" }
}

/// A number; of a list how many there are.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Array(rows) => Some(f64::from(u32::try_from(rows.len()).ok()?)),
        _ => value.as_f64(),
    }
}

/// Three figures are enough for anyone.
fn shown(value: &Value) -> String {
    match (value.as_i64(), number(value)) {
        (Some(whole), _) => grouped(whole),
        (None, Some(number)) if number.abs() >= 100.0 => format!("{number:.0}"),
        (None, Some(number)) if number.abs() >= 10.0 => format!("{number:.1}"),
        (None, Some(number)) if number.abs() >= 1.0 => format!("{number:.2}"),
        (None, Some(number)) => format!("{number:.3}"),
        (None, None) => value.to_string(),
    }
}

fn grouped(number: i64) -> String {
    let digits = number.abs().to_string();
    let mut text = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_whether_its_limit_is_met() {
        let figure = |limit| Figure {
            what: "memory",
            pointer: "/rss",
            unit: " MiB",
            limit,
        };
        let result = json!({"rss": 35.04, "rssMax": 35.0, "pods": 20_000});

        assert_eq!(
            row(&figure(Limit::Below("/rssMax")), &result, "d"),
            "| memory | 35.0 MiB | 35.0 MiB | **no** | d |\n"
        );
        assert!(row(&figure(Limit::Most(36)), &result, "d").contains("| 36 MiB | yes |"));
        assert!(row(&figure(Limit::Least(36)), &result, "d").contains("| **no** |"));
        assert!(row(&figure(Limit::Below("/gone")), &result, "d").contains("**not told**"));
        assert!(row(&figure(Limit::None), &result, "d").ends_with("| - |  | d |\n"));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [
            json!(20_000),
            json!(-1_234_567),
            json!(0.12345),
            json!(1.5),
            json!(61.23),
            json!(512.7),
        ];
        let shown: Vec<String> = texts.iter().map(shown).collect();

        assert_eq!(
            shown,
            ["20,000", "-1,234,567", "0.123", "1.50", "61.2", "513"]
        );
    }
}
