//! tar and gzip whose bytes depend on nothing but what goes in: no clock, no owner, no order of a file system.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const BLOCK: usize = 512;
/// What a name in an archive may be long without extensions of the format.
const NAME_MAX: usize = 100;

/// One member of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    path: String,
    mode: u32,
    /// A folder has none.
    content: Option<Vec<u8>>,
}

impl Entry {
    pub(crate) fn file(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o644,
            content: Some(content.into()),
        }
    }

    pub(crate) fn program(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, content)
        }
    }

    pub(crate) fn folder(path: &str, mode: u32) -> Self {
        Self {
            path: format!("{}/", path.trim_end_matches('/')),
            mode,
            content: None,
        }
    }

    /// As a file is on disk, executable or not.
    pub(crate) fn read(file: &Path, path: &str) -> Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let content =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mode = std::fs::metadata(file)?.permissions().mode();
        Ok(if mode & 0o100 == 0 {
            Self::file(path, content)
        } else {
            Self::program(path, content)
        })
    }
}

/// A tar archive (ustar) of the entries by name, all of them root's and of this time.
pub(crate) fn tar(mut entries: Vec<Entry>, time: i64) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = Vec::new();
    for entry in &entries {
        archive.extend(header(entry, time)?);
        let content = entry.content.as_deref().unwrap_or_default();
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn header(entry: &Entry, time: i64) -> Result<[u8; BLOCK]> {
    if entry.path.len() > NAME_MAX {
        bail!("{} is longer than {NAME_MAX} bytes", entry.path);
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    let size = entry.content.as_ref().map_or(0, Vec::len);
    put(0, entry.path.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    // The sum is taken with blanks in its place.
    put(148, b"        ");
    put(156, if entry.content.is_some() { b"0" } else { b"5" });
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// By gzip, without a name or a time in it.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new("gzip")
        .args(["-9", "-n", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start gzip")?;
    let mut input = child.stdin.take().context("gzip takes no input")?;
    let output = std::thread::scope(|scope| {
        // Both ends at once, or each waits for the other.
        let writer = scope.spawn(move || input.write_all(bytes));
        let output = child.wait_with_output();
        let written = writer.join();
        match (output, written) {
            (Ok(output), Ok(Ok(()))) => Ok(output),
            (Err(error), _) | (_, Ok(Err(error))) => Err(error).context("gzip broke off"),
            (_, Err(_)) => bail!("gzip broke off"),
        }
    })?;
    if !output.status.success() {
        bail!("gzip failed: {}", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_what_was_written_and_the_order_given_does_not_matter() {
        let entries = || {
            vec![
                Entry::folder("tmp", 0o1777),
                Entry::program("bin/b", "1"),
                Entry::file("a", vec![b'x'; 700]),
            ]
        };
        let archive = tar(entries(), 1_700_000_000).unwrap();
        let turned = tar(entries().into_iter().rev().collect(), 1_700_000_000).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.tar.gz"), gzip(&archive).unwrap()).unwrap();

        let listed = Command::new("tar")
            .args(["--utc", "-tvzf", "x.tar.gz"])
            .current_dir(folder.path())
            .output()
            .unwrap();

        assert_eq!(archive, turned);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let lines: Vec<Vec<&str>> = listed
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        let expected = [
            ["-rw-r--r--", "0/0", "700", "2023-11-14", "22:13", "a"],
            ["-rwxr-xr-x", "0/0", "1", "2023-11-14", "22:13", "bin/b"],
            ["drwxrwxrwt", "0/0", "0", "2023-11-14", "22:13", "tmp/"],
        ];
        assert_eq!(lines, expected);
    }
}
