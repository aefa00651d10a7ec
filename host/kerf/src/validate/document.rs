//! One YAML document, with the line of each of its parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use granit_parser::{Event, Parser};
use serde_json::Value;

/// One object of a file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) file: PathBuf,
    pub(super) value: Value,
    lines: BTreeMap<String, usize>,
}

/// A file that is no YAML.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The text has no such structure.
    #[error("{0}")]
    Structure(String),
    /// The text has values that are not allowed.
    #[error(transparent)]
    Value(#[from] serde_saphyr::Error),
}

/// The documents of a text; empty ones are left out.
pub(super) fn read(file: &Path, text: &str) -> Result<Vec<Document>, ReadError> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let lines = lines(text)?;
    let whole = values.into_iter().filter(|value| !value.is_null());
    Ok(whole
        .zip(
            lines
                .into_iter()
                .chain(std::iter::repeat_with(BTreeMap::new)),
        )
        .map(|(value, lines)| Document {
            file: file.to_owned(),
            value,
            lines,
        })
        .collect())
}

impl Document {
    /// Kind and name: what makes this the same object as another.
    pub(super) fn identity(&self) -> String {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str);
        format!(
            "{} {}/{}",
            text("/kind").unwrap_or_default(),
            text("/metadata/namespace").unwrap_or_default(),
            text("/metadata/name").unwrap_or_default()
        )
    }

    /// The line of a place, or of the nearest place around it that is written.
    pub(super) fn line_of(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return self.lines.get("").copied().unwrap_or(1),
            }
        }
    }
}

/// An open list or map while events are read.
enum Open {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

fn lines(text: &str) -> Result<Vec<BTreeMap<String, usize>>, ReadError> {
    let mut documents = Vec::new();
    let mut lines = BTreeMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut is_empty = true;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ReadError::Structure(error.to_string()))?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(..) => {
                lines = BTreeMap::new();
                is_empty = true;
            }
            Event::DocumentEnd if !is_empty => documents.push(std::mem::take(&mut lines)),
            Event::Scalar(text, ..) => {
                is_empty &= open.is_empty() && (text.is_empty() || text == "~" || text == "null");
                if let Some(Open::Map {
                    path,
                    key: key @ None,
                }) = open.last_mut()
                {
                    lines.insert(join(path, &text), line);
                    *key = Some(text.into_owned());
                } else {
                    enter(&mut open, &mut lines, line);
                }
            }
            Event::Alias(_) => {
                enter(&mut open, &mut lines, line);
            }
            Event::SequenceStart(..) => {
                is_empty = false;
                let path = enter(&mut open, &mut lines, line);
                open.push(Open::List { path, next: 0 });
            }
            Event::MappingStart(..) => {
                is_empty = false;
                let path = enter(&mut open, &mut lines, line);
                open.push(Open::Map { path, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
            }
            _ => {}
        }
    }
    Ok(documents)
}

/// The path of the value that begins here. A value of a map keeps the line of its key.
fn enter(open: &mut [Open], lines: &mut BTreeMap<String, usize>, line: usize) -> String {
    let path = match open.last_mut() {
        None => String::new(),
        Some(Open::List { path, next }) => {
            *next += 1;
            format!("{path}[{}]", *next - 1)
        }
        Some(Open::Map { path, key }) => join(path, &key.take().unwrap_or_default()),
    };
    lines.entry(path.clone()).or_insert(line);
    path
}

/// The path of a field. Keys with a dot or a slash are written as `map[key]`, as the API server does.
pub(super) fn join(path: &str, key: &str) -> String {
    if key.contains(['.', '/', '[']) || key.is_empty() {
        format!("{path}[{key}]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_document_has_its_line() {
        let text = "# one\na:\n  - b: 1\n  - {c: 2,\n     d/e: 3}\n---\n# nothing\n---\nf: 1\n";

        let documents = read(Path::new("x"), text).unwrap_or_default();

        assert_eq!(documents.len(), 2);
        let line = |path| documents[0].line_of(path);
        assert_eq!(line("a"), 2);
        assert_eq!(line("a[0].b"), 3);
        assert_eq!(line("a[1].c"), 4);
        assert_eq!(line("a[1][d/e]"), 5);
        assert_eq!(line("a[1].missing"), 4);
        assert_eq!(documents[1].line_of("f"), 9);
    }
}
