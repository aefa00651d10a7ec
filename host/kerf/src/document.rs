//! Documents of manifests: YAML or JSON from files, folders and standard input, with the line of each of their parts.
//!
//! Lines are looked for only when somebody asks, since most runs have nothing to complain about.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use granit_parser::{Event, Parser};
use serde_json::Value;

use crate::input;
use crate::output::PACKED;

/// The name of standard input among files.
const STDIN: &str = "-";
/// Files of a folder that are manifests, by their ending; packed ones have another one after it.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// One object of a file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) file: PathBuf,
    pub(crate) value: Value,
    text: Arc<Text>,
    /// Which of the text's documents it is in.
    index: usize,
    /// Where in that document it is: `items[3]` of a List.
    at: String,
}

/// A text and, once somebody asked, the lines of its documents.
#[derive(Debug)]
struct Text {
    text: String,
    lines: OnceLock<Vec<BTreeMap<String, usize>>>,
}

/// Something that holds no manifests.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// There is no such file or folder, or it may not be read.
    #[error("read {}", file.display())]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    /// The text is no YAML and no JSON.
    #[error("read {}:{line}: {message}", file.display())]
    Malformed {
        file: PathBuf,
        /// From 1.
        line: usize,
        message: String,
    },
    /// A folder without manifests.
    #[error("{} has no .yaml, .yml or .json file", folder.display())]
    Empty { folder: PathBuf },
}

/// All objects of files, folders (with the folders in them, by name) and, for `-`, standard input. Lists are taken
/// apart.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Document>, ReadError> {
    let mut documents = Vec::new();
    for path in paths {
        if path == Path::new(STDIN) {
            let mut text = String::new();
            let read = input::unpacked(std::io::stdin().lock());
            let read = read.and_then(|mut it| it.read_to_string(&mut text));
            read.map_err(unreadable(Path::new("stdin")))?;
            documents.extend(read_text(Path::new("stdin"), text)?);
            continue;
        }
        let files = files_of(path)?;
        if files.is_empty() {
            return Err(ReadError::Empty {
                folder: path.clone(),
            });
        }
        for file in files {
            let text = input::read_to_string(&file).map_err(unreadable(&file))?;
            documents.extend(read_text(&file, text)?);
        }
    }
    Ok(documents)
}

fn unreadable(file: &Path) -> impl FnOnce(std::io::Error) -> ReadError {
    let file = file.to_owned();
    move |source| ReadError::Unreadable { file, source }
}

/// The file itself, or the manifests of a folder and the folders in it, by name.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable(path))? {
        let path = entry.map_err(unreadable(path))?.path();
        let is_packed = path.extension().is_some_and(|ending| ending == PACKED);
        let inner = path.file_stem().map(Path::new).filter(|_| is_packed);
        let is_manifest = inner
            .unwrap_or(&path)
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else if is_manifest {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The documents of a text; empty ones are left out.
fn read_text(file: &Path, text: String) -> Result<Vec<Document>, ReadError> {
    let values = values(&text).map_err(|(line, message)| ReadError::Malformed {
        file: file.to_owned(),
        line,
        message,
    })?;
    let text = Arc::new(Text {
        text,
        lines: OnceLock::new(),
    });
    let mut documents = Vec::new();
    let whole = values.into_iter().filter(|value| !value.is_null());
    for (index, value) in whole.enumerate() {
        let document = Document {
            file: file.to_owned(),
            value,
            text: Arc::clone(&text),
            index,
            at: String::new(),
        };
        document.take_apart(&mut documents);
    }
    Ok(documents)
}

/// The values of a text, or the line and what is wrong there.
fn values(text: &str) -> Result<Vec<Value>, (usize, String)> {
    if text.trim_start().starts_with(['{', '[']) {
        // A reader of JSON is several times as fast as one of YAML, and dumps of clusters are large.
        let values = serde_json::Deserializer::from_str(text).into_iter();
        if let Ok(values) = values.collect::<Result<Vec<Value>, _>>() {
            return Ok(values);
        }
    }
    serde_saphyr::from_multiple(text).map_err(|error| {
        let line = error.location().map_or(0, |it| it.line());
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().to_owned();
        (usize::try_from(line).unwrap_or_default().max(1), message)
    })
}

impl Document {
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.value["metadata"]["namespace"].as_str()
    }

    /// Kind, namespace where one is given, and name.
    pub(crate) fn title(&self) -> String {
        let namespace = self.namespace().map(|it| format!("{it}/"));
        let namespace = namespace.unwrap_or_default();
        let title = format!("{} {namespace}{}", self.kind(), self.name());
        title.trim().to_owned()
    }

    /// Kind, namespace and name: what makes this the same object as another.
    pub(crate) fn identity(&self) -> String {
        let namespace = self.namespace().unwrap_or_default();
        format!("{} {namespace}/{}", self.kind(), self.name())
    }

    /// The line of a place, or of the nearest place around it that is written; from 1. Items of lists are meant by their
    /// index or their name: `containers[0]`, `containers[web]`.
    pub(crate) fn line_of(&self, path: &str) -> usize {
        let all = self
            .text
            .lines
            .get_or_init(|| lines(&self.text.text).unwrap_or_default());
        let Some(lines) = all.get(self.index) else {
            return 1;
        };
        let path = self.by_index(path);
        let whole = match (self.at.as_str(), path.as_str()) {
            ("", path) => path.to_owned(),
            (at, "") => at.to_owned(),
            (at, path) if path.starts_with('[') => format!("{at}{path}"),
            (at, path) => format!("{at}.{path}"),
        };
        let mut path = whole.as_str();
        loop {
            if let Some(line) = lines.get(path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return lines.get("").copied().unwrap_or(1),
            }
        }
    }

    /// A path with names of list items replaced by their indexes.
    fn by_index(&self, path: &str) -> String {
        let mut written = String::new();
        let mut at = &self.value;
        for part in path.split_inclusive([']', '.']) {
            let (field, item) = match part.split_once('[') {
                Some((field, item)) => (field, Some(item.trim_end_matches(']'))),
                None => (part.trim_end_matches('.'), None),
            };
            if !field.is_empty() {
                at = &at[field];
            }
            let index = item.and_then(|name| {
                let list = at.as_array()?;
                list.iter().position(|it| it["name"] == name)
            });
            match (index, item) {
                (Some(index), _) => {
                    at = &at[index];
                    written += &format!("{field}[{index}]");
                }
                (None, Some(item)) => {
                    at = match item.parse::<usize>() {
                        Ok(index) => &at[index],
                        Err(_) => &at[item],
                    };
                    written += part;
                }
                (None, None) => written += part,
            }
        }
        written
    }

    fn take_apart(self, documents: &mut Vec<Self>) {
        let kind = self.kind().strip_suffix("List").map(str::to_owned);
        let (Some(kind), Some(items)) = (kind, self.value["items"].as_array()) else {
            documents.push(self);
            return;
        };
        let field = join(&self.at, "items");
        for (index, item) in items.iter().enumerate() {
            let mut value = item.clone();
            if let Some(object) = value.as_object_mut().filter(|_| !kind.is_empty()) {
                // A list of one kind may leave it out of its items.
                object.entry("kind").or_insert_with(|| kind.clone().into());
            }
            let document = Self {
                file: self.file.clone(),
                value,
                text: Arc::clone(&self.text),
                index: self.index,
                at: format!("{field}[{index}]"),
            };
            document.take_apart(documents);
        }
    }
}

/// An open list or map while events are read.
enum Open {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

/// The line of each path of each document that is not empty; none where the text has no such structure.
fn lines(text: &str) -> Option<Vec<BTreeMap<String, usize>>> {
    let mut documents = Vec::new();
    let mut lines = BTreeMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut is_empty = true;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
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
    Some(documents)
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
pub(crate) fn join(path: &str, key: &str) -> String {
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

    fn read(text: &str) -> Vec<Document> {
        read_text(Path::new("x"), text.to_owned()).unwrap()
    }

    #[test]
    fn each_part_of_a_document_has_its_line() {
        let text = "# one\na:\n  - name: web\n    b: 1\n  - {c: 2,\n     d/e: 3}\n---\n# nothing\n---\nf: 1\n";

        let documents = read(text);

        assert_eq!(documents.len(), 2);
        let line = |path| documents[0].line_of(path);
        assert_eq!(line("a"), 2);
        assert_eq!(line("a[0].b"), 4);
        assert_eq!(line("a[web].b"), 4);
        assert_eq!(line("a[1].c"), 5);
        assert_eq!(line("a[1][d/e]"), 6);
        assert_eq!(line("a[1].missing"), 5);
        assert_eq!(documents[1].line_of("f"), 10);
    }

    #[test]
    fn lists_are_taken_apart_and_their_items_keep_their_lines() {
        let text =
            "kind: PodList\nitems:\n- metadata:\n    name: a\n- {kind: B, metadata: {name: b}}\n";

        let documents = read(text);

        let found: Vec<_> = documents
            .iter()
            .map(|it| (it.title(), it.line_of("metadata.name")))
            .collect();
        assert_eq!(found, [("Pod a".to_owned(), 4), ("B b".to_owned(), 5)]);
    }

    #[test]
    fn json_has_lines_too() {
        let text = "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n";

        assert_eq!(read(text)[0].line_of("a.b"), 3);
    }

    #[test]
    fn what_is_no_yaml_is_named_by_file_and_line() {
        let error = read_text(Path::new("x"), "a: 1\nb: [\nc: 2\n".to_owned()).unwrap_err();

        assert!(error.to_string().starts_with("read x:"), "{error}");
    }
}
