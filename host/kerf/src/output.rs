//! A file that is either whole or not there: it is written beside its place and moved there at the end.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The name of standard output among files.
const STDOUT: &str = "-";

/// A file that is being written, or standard output.
pub(crate) struct Whole {
    out: Box<dyn Write>,
    place: Option<Place>,
}

/// Where a file is being written, and where it belongs.
struct Place {
    part: PathBuf,
    path: PathBuf,
}

impl Whole {
    /// Begins to write; `-` is standard output.
    ///
    /// # Errors
    /// When there cannot be such a file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.as_os_str() == STDOUT {
            return Ok(Self {
                out: Box::new(BufWriter::new(std::io::stdout())),
                place: None,
            });
        }
        let mut part = path.to_owned().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let file =
            File::create(&part).with_context(|| format!("cannot write {}", part.display()))?;
        Ok(Self {
            out: Box::new(BufWriter::new(file)),
            place: Some(Place {
                part,
                path: path.to_owned(),
            }),
        })
    }

    /// Puts the file into its place. What is dropped without this leaves no file.
    ///
    /// # Errors
    /// When the rest cannot be written or the file cannot be moved.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.out.flush().context("cannot write the output")?;
        match self.place.take() {
            None => Ok(()),
            Some(Place { part, path }) => std::fs::rename(&part, &path)
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(Place { part, .. }) = &self.place {
            // It may be gone already; what went wrong is told by whoever gave up.
            let _ = std::fs::remove_file(part);
        }
    }
}

/// Says on standard error what was written, where nobody is left to tell when that is closed.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_file_is_no_file() {
        let folder = std::env::temp_dir().join(format!("kerf-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("out.json");
        let names = || std::fs::read_dir(&folder).unwrap().count();

        let mut given_up = Whole::create(&path).unwrap();
        given_up.write_all(b"half").unwrap();
        drop(given_up);
        assert_eq!(names(), 0);

        let mut whole = Whole::create(&path).unwrap();
        whole.write_all(b"whole").unwrap();
        whole.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
