//! Files to read, those that are packed with zstd too, whatever their name.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, Read, Result};
use std::path::Path;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// What a packed file begins with.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The most that a packed file may come to: twenty times a dump of 100,000 pods. A small file that unpacks without end must
/// not take the machine with it.
const UNPACKED_BYTES_MAX: u64 = 2 << 30;

/// The whole text of a file.
///
/// # Errors
/// When it cannot be read, is no UTF-8, or cannot be unpacked.
pub(crate) fn read_to_string(path: &Path) -> Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// The text of a file, piece by piece.
///
/// # Errors
/// When it cannot be opened; reading fails when it cannot be unpacked.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    unpacked(BufReader::new(File::open(path)?))
}

/// What a reader gives, unpacked where it is packed.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn unpacked(mut reader: impl BufRead + 'static) -> Result<Box<dyn Read>> {
    Ok(match reader.fill_buf()?.starts_with(&MAGIC) {
        true => Box::new(Unpacked {
            at: At::Between(reader),
            left: UNPACKED_BYTES_MAX,
        }),
        false => Box::new(reader),
    })
}

/// One frame after the other, as `zstd` and we ourselves write them.
struct Unpacked<R: BufRead> {
    at: At<R>,
    /// Bytes that may still come.
    left: u64,
}

enum At<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, FrameDecoder>>),
    End,
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            self.at = match std::mem::replace(&mut self.at, At::End) {
                At::End => return Ok(0),
                At::Between(mut source) => match source.fill_buf()?.is_empty() {
                    true => return Ok(0),
                    false => At::Within(Box::new(
                        StreamingDecoder::new(source).map_err(Error::other)?,
                    )),
                },
                At::Within(mut frame) => match frame.read(bytes)? {
                    0 => At::Between(frame.into_inner()),
                    count => {
                        self.at = At::Within(frame);
                        return self.counted(count);
                    }
                },
            };
        }
    }
}

impl<R: BufRead> Unpacked<R> {
    fn counted(&mut self, count: usize) -> Result<usize> {
        let left = u64::try_from(count)
            .ok()
            .and_then(|it| self.left.checked_sub(it));
        self.left = left.ok_or_else(|| {
            Error::other(format!(
                "it unpacks to more than {UNPACKED_BYTES_MAX} bytes"
            ))
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// `printf 'kind: Pod\n' | zstd`, by the reference implementation, with its checksum.
    const BY_ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x51, 0x00, 0x00, 0x6b, 0x69, 0x6e, 0x64, 0x3a, 0x20,
        0x50, 0x6f, 0x64, 0x0a, 0xe7, 0x90, 0xb7, 0xf7,
    ];

    fn read(bytes: Vec<u8>) -> Result<String> {
        let mut text = String::new();
        unpacked(Cursor::new(bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn what_is_packed_and_what_is_not_read_the_same() {
        assert_eq!(read(b"kind: Pod\n".to_vec()).unwrap(), "kind: Pod\n");
        assert_eq!(read(BY_ZSTD.to_vec()).unwrap(), "kind: Pod\n");
        assert_eq!(
            read([BY_ZSTD, BY_ZSTD].concat()).unwrap(),
            "kind: Pod\nkind: Pod\n"
        );
        assert_eq!(read(Vec::new()).unwrap(), "");
    }

    #[test]
    fn half_a_packed_file_is_an_error() {
        assert!(read(BY_ZSTD[..12].to_vec()).is_err());
        assert!(read(MAGIC.to_vec()).is_err());
    }
}
