//! Components as they are shipped: as they are, or packed with zstd or gzip so that larger ones fit into a ConfigMap.

use crate::error::LoadError;
use crate::limits::COMPONENT_BYTES_MAX;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::borrow::Cow;
use std::io::Read;

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// RFC 1952, section 2.3.1; no component begins so.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The component in what a source holds. Stops at the size limit of components, however much a small file unpacks to.
pub fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if bytes.starts_with(ZSTD_MAGIC) {
        let decoder =
            StreamingDecoder::new(bytes).map_err(|error| LoadError::Packed(error.to_string()))?;
        return read(decoder).map(Cow::Owned);
    }
    if bytes.starts_with(GZIP_MAGIC) {
        return read(MultiGzDecoder::new(bytes)).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(bytes))
}

fn read(unpacked: impl Read) -> Result<Vec<u8>, LoadError> {
    let limit = u64::try_from(COMPONENT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut component = Vec::new();
    unpacked
        .take(limit.saturating_add(1))
        .read_to_end(&mut component)
        .map_err(|error| LoadError::Packed(error.to_string()))?;
    if component.len() > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge {
            bytes: component.len(),
            max: COMPONENT_BYTES_MAX,
        });
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_packed_comes_back() {
        let component = b"\0asm and more".repeat(100);
        let packed = compress_to_vec(&component[..], CompressionLevel::Fastest);

        assert!(packed.len() < component.len());
        assert_eq!(unpack(&packed).unwrap(), component);
        assert_eq!(unpack(&component).unwrap(), component);
        assert_eq!(unpack(&gzip(&component)).unwrap(), component);
    }

    #[test]
    fn a_small_file_that_unpacks_to_more_than_a_component_may_have_is_refused() {
        let bomb = compress_to_vec(
            &vec![0; COMPONENT_BYTES_MAX + 1][..],
            CompressionLevel::Fastest,
        );

        for bomb in [bomb, gzip(&vec![0; COMPONENT_BYTES_MAX + 1])] {
            assert!(bomb.len() < 64 << 10);
            let error = unpack(&bomb).unwrap_err();
            assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
        }
    }

    #[test]
    fn a_cut_file_is_refused() {
        let noise: Vec<u8> = (0..5_000_u32).map(|i| (i * i % 251) as u8).collect();
        let packed = compress_to_vec(&noise[..], CompressionLevel::Fastest);

        for packed in [packed, gzip(&noise)] {
            let error = unpack(&packed[..packed.len() / 2]).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with("the packed component is damaged"),
                "{error}"
            );
        }
    }
}
