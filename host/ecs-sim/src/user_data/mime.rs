//! As much of MIME as user data uses: one level of `multipart/mixed`, text parts, base64 or none.

use base64::{Engine as _, engine::general_purpose::STANDARD};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// In lower case, without parameters.
    pub(super) content_type: String,
    pub(super) file_name: Option<String>,
    pub(super) body: Vec<u8>,
}

/// The parts, if the text is a multipart message.
pub(super) fn split(text: &str) -> Option<Vec<Part>> {
    let (head, body) = split_head(text);
    let content_type = header(&head, "content-type")
        .filter(|value| value.to_lowercase().starts_with("multipart/"))?;
    let delimiter = format!("--{}", parameter(content_type, "boundary")?);
    let (mut parts, mut current) = (Vec::new(), None::<String>);
    for line in body.split_inclusive('\n') {
        let bare = line.trim_end();
        if bare == delimiter || bare == format!("{delimiter}--") {
            parts.extend(current.take().map(|part| self::part(&part)));
            if bare == delimiter {
                current = Some(String::new());
            }
        } else if let Some(part) = &mut current {
            part.push_str(line);
        }
    }
    // An archive that was cut off still has its last part.
    parts.extend(current.map(|part| self::part(&part)));
    Some(parts)
}

fn part(text: &str) -> Part {
    let (head, body) = split_head(text);
    // The line end before a delimiter belongs to the delimiter.
    let body = body
        .strip_suffix('\n')
        .map_or(body, |body| body.strip_suffix('\r').unwrap_or(body));
    let content_type = header(&head, "content-type").unwrap_or("text/plain");
    let is_base64 = header(&head, "content-transfer-encoding")
        .is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64"));
    let decoded = is_base64.then(|| {
        STANDARD
            .decode(body.split_whitespace().collect::<String>())
            .unwrap_or_default()
    });
    Part {
        content_type: content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_lowercase(),
        file_name: header(&head, "content-disposition")
            .and_then(|value| parameter(value, "filename")),
        body: decoded.unwrap_or_else(|| body.as_bytes().to_vec()),
    }
}

/// Header lines (folded ones joined) and the body after the first empty line.
fn split_head(text: &str) -> (Vec<(String, String)>, &str) {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            return (headers, after);
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = headers.last_mut() {
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        } else {
            // Not a header: there is no head at all.
            return (headers, rest);
        }
        rest = after;
    }
    (headers, rest)
}

fn header<'a>(head: &'a [(String, String)], name: &str) -> Option<&'a str> {
    head.iter()
        .find(|(found, _)| found == name)
        .map(|(_, value)| value.as_str())
}

fn parameter(value: &str, name: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|parameter| {
        let (found, value) = parameter.split_once('=')?;
        found
            .trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().trim_matches('"').to_owned())
    })
}
