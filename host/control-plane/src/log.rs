//! Reads the end of a server's log for an error message.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Enough for a panic's head or a few long klog lines, little enough to read in a test's output.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 15;

/// The last lines, or why they cannot be read: an error message must not fail.
pub(crate) fn tail(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(err) => format!("(cannot read {}: {err})", path.display()),
    }
}
