//! A file that is either whole or not there: it is written beside its place and moved there at the end. One whose name ends in
//! `.zst` is packed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The name of standard output among files.
const STDOUT: &str = "-";

/// The ending of packed files.
pub(crate) const PACKED: &str = "zst";
/// What is packed together: a larger frame packs hardly better and takes more memory.
const FRAME_BYTES: usize = 4 << 20;

/// A file that is being written, or standard output.
pub(crate) struct Whole {
    out: Box<dyn Write>,
    /// What is not packed yet; none where nothing is packed.
    frame: Option<Vec<u8>>,
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
                frame: None,
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
            frame: path
                .extension()
                .is_some_and(|it| it == PACKED)
                .then(Vec::new),
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
        self.pack()
            .and_then(|()| self.out.flush())
            .context("cannot write the output")?;
        match self.place.take() {
            None => Ok(()),
            Some(Place { part, path }) => std::fs::rename(&part, &path)
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

impl Whole {
    /// Writes what has come together as a frame of its own.
    fn pack(&mut self) -> std::io::Result<()> {
        match &mut self.frame {
            None => Ok(()),
            Some(frame) => {
                let frame = std::mem::take(frame);
                let packed = compress_to_vec(&frame[..], CompressionLevel::Fastest);
                self.out.write_all(&packed)
            }
        }
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(frame) = &mut self.frame else {
            return self.out.write(bytes);
        };
        frame.extend_from_slice(bytes);
        if frame.len() >= FRAME_BYTES {
            self.pack()?;
        }
        Ok(bytes.len())
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

    #[test]
    fn what_is_packed_in_several_frames_reads_as_it_was_written() {
        let path =
            std::env::temp_dir().join(format!("kerf-packed-{}.json.zst", std::process::id()));
        let line = |nth: usize| format!("{{\"metadata\":{{\"name\":\"pod-{nth}\"}}}},\n");
        let text: String = (0..400_000).map(line).collect();
        assert!(text.len() > 2 * FRAME_BYTES);

        let mut out = Whole::create(&path).unwrap();
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap();

        let packed = std::fs::metadata(&path).unwrap().len();
        let read = crate::input::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(read == text);
        assert!(packed < text.len() as u64 / 4, "{packed}");
    }
}
