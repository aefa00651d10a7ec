//! Components as they are shipped: as they are, or packed with zstd so that larger ones fit into a ConfigMap.

use crate::error::LoadError;
use crate::limits::COMPONENT_BYTES_MAX;
use ruzstd::decoding::StreamingDecoder;
use std::borrow::Cow;
use std::io::Read;

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The component in what a source holds. Stops at the size limit of components, however much a small file unpacks to.
pub fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if !bytes.starts_with(ZSTD_MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    let damaged = |error: String| LoadError::Packed(error);
    let decoder = StreamingDecoder::new(bytes).map_err(|error| damaged(error.to_string()))?;
    let limit = u64::try_from(COMPONENT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut unpacked = Vec::new();
    decoder
        .take(limit + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| damaged(error.to_string()))?;
    if unpacked.len() > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge {
            bytes: unpacked.len(),
            max: COMPONENT_BYTES_MAX,
        });
    }
    Ok(Cow::Owned(unpacked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn what_is_packed_comes_back() {
        let component = b"\0asm and more".repeat(100);
        let packed = compress_to_vec(&component[..], CompressionLevel::Fastest);

        assert!(packed.len() < component.len());
        assert_eq!(unpack(&packed).unwrap(), component);
        assert_eq!(unpack(&component).unwrap(), component);
    }

    #[test]
    fn a_small_file_that_unpacks_to_more_than_a_component_may_have_is_refused() {
        let bomb = compress_to_vec(
            &vec![0; COMPONENT_BYTES_MAX + 1][..],
            CompressionLevel::Fastest,
        );

        assert!(bomb.len() < 64 << 10);
        let error = unpack(&bomb).unwrap_err();
        assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_cut_file_is_refused() {
        let noise: Vec<u8> = (0..5_000_u32).map(|i| (i * i % 251) as u8).collect();
        let packed = compress_to_vec(&noise[..], CompressionLevel::Fastest);

        let error = unpack(&packed[..packed.len() / 2]).unwrap_err().to_string();

        assert!(
            error.starts_with("the packed component is damaged"),
            "{error}"
        );
    }
}
