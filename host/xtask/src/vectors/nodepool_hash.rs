//! The hash of NodePool templates: as the file says it, and as an API server stores it with its defaults.

use anyhow::{Context, Result};
use kerf_api::nodepool::NodePool;
use serde_json::Value;

use super::Mismatch;

/// Every hash of ours that is not upstream's, by the index of its case.
pub(super) fn differences(vectors: &Value) -> Result<Vec<(usize, Mismatch)>> {
    let cases = vectors.as_array().context("it is no list")?;
    let mut found = Vec::new();
    for (idx, case) in cases.iter().enumerate() {
        let yaml = case["yaml"]
            .as_str()
            .with_context(|| format!("case {idx} has no yaml"))?;
        let (as_written, defaulted) =
            hashes(yaml).with_context(|| format!("case {idx} is no NodePool"))?;
        for (part, ours) in [("hash", as_written), ("hashDefaulted", defaulted)] {
            let upstream = case[part]
                .as_str()
                .with_context(|| format!("case {idx} has no {part}"))?;
            if ours != upstream {
                let upstream = upstream.to_owned();
                found.push((
                    idx,
                    Mismatch {
                        part,
                        ours,
                        upstream,
                    },
                ));
            }
        }
    }
    Ok(found)
}

/// The hash without and with the API server's defaults. Of what is hashed, only expireAfter has one; our type gives it
/// on reading, so that for the first hash it is taken away again.
fn hashes(yaml: &str) -> Result<(String, String)> {
    let raw: Value = serde_saphyr::from_str(yaml)?;
    let defaulted: NodePool = serde_json::from_value(raw.clone())?;
    let mut as_written = defaulted.clone();
    if raw["spec"]["template"]["spec"].get("expireAfter").is_none() {
        as_written.spec.template.spec.expire_after = None;
    }
    Ok((as_written.hash()?, defaulted.hash()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of what upstream answered (see kerf-api/testdata).
    const VECTORS: &str = include_str!("../../../kerf-api/testdata/nodepool-hash-vectors.json");

    #[test]
    fn all_twenty_pools_hash_as_upstream_hashes_them_as_written_and_as_stored() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();

        let found = differences(&vectors).unwrap();

        assert_eq!(vectors.as_array().map(Vec::len), Some(20));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_wrong_hash_is_a_mismatch() {
        let mut vectors: Value = serde_json::from_str(VECTORS).unwrap();
        vectors[1]["hash"] = "1".into();

        let found = differences(&vectors).unwrap();

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1.part), (1, "hash"));
    }
}
