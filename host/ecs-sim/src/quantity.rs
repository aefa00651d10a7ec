//! Quantities as kubelet settings write them: `500m`, `2`, `420Mi`, `10%`.

/// Multipliers by suffix; the longer suffixes first, so that `Mi` is not read as `M`.
const SUFFIXES: &[(&str, f64)] = &[
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("m", 0.001),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
];

/// The number that a quantity stands for.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let suffix = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    let (digits, factor) = suffix.unwrap_or((text, &1.0));
    let number: f64 = digits.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

/// The same, where `10%` means a part of a whole.
pub(crate) fn parse_part(text: &str, whole: f64) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .ok()
            .map(|percent| whole * percent / 100.0),
        None => parse(text),
    }
}

pub(crate) fn millis(cores: f64) -> String {
    format!("{:.0}m", (cores * 1000.0).max(0.0))
}

pub(crate) fn kibi(bytes: f64) -> String {
    format!("{:.0}Ki", (bytes / 1024.0).floor().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_multiply() {
        assert_eq!(parse("500m").map(millis), Some("500m".to_owned()));
        assert_eq!(parse("2").map(millis), Some("2000m".to_owned()));
        assert_eq!(parse("1Mi").map(kibi), Some("1024Ki".to_owned()));
        assert_eq!(parse_part("50%", 4096.0).map(kibi), Some("2Ki".to_owned()));
        assert_eq!(parse("much"), None);
        assert_eq!(parse("-1"), None);
    }
}
