//! The places that log lines go to: standard output, standard error, files.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use anyhow::Context as _;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Debug, Clone)]
enum Sink {
    Output,
    Error,
    File(Arc<File>),
}

/// All places; each line goes to each of them.
#[derive(Debug, Clone)]
pub(crate) struct Sinks(Vec<Sink>);

impl Sinks {
    /// Opens files for appending. `stdout` and `stderr` are what Karpenter calls them.
    ///
    /// # Errors
    /// When a file cannot be opened; the message names it.
    pub(crate) fn open(paths: &[String]) -> anyhow::Result<Self> {
        let paths = paths.iter().map(|it| it.trim()).filter(|it| !it.is_empty());
        let open = |path: &str| {
            Ok(match path {
                "stdout" => Sink::Output,
                "stderr" => Sink::Error,
                path => Sink::File(Arc::new(
                    OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(path)
                        .with_context(|| format!("cannot log to {path}"))?,
                )),
            })
        };
        paths.map(open).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Whether every line is read by a person.
    pub(crate) fn is_terminal(&self) -> bool {
        !self.0.is_empty()
            && self.0.iter().all(|sink| match sink {
                Sink::Output => io::stdout().is_terminal(),
                Sink::Error => io::stderr().is_terminal(),
                Sink::File(_) => false,
            })
    }
}

impl Write for Sinks {
    /// A place that cannot be written to does not keep the line from the others.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        for sink in &self.0 {
            let _ = match sink {
                Sink::Output => io::stdout().write_all(line),
                Sink::Error => io::stderr().write_all(line),
                Sink::File(file) => (&**file).write_all(line),
            };
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

impl MakeWriter<'_> for Sinks {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let error = Sinks::open(&["stdout".to_owned(), "/no/such/folder/log".to_owned()]);

        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("/no/such/folder/log")
        );
    }
}
