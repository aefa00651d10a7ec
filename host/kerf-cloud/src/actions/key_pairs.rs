//! DescribeKeyPairs: whose public keys an instance can carry.

use serde::Deserialize;

use crate::actions::{EcsTags, PAGES_MAX};
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

const KEY_PAIRS_PER_PAGE: u32 = 50;

/// One key pair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyPairItem {
    pub key_pair_name: String,
    pub tags: EcsTags,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeKeyPairsReply {
    key_pairs: KeyPairs,
    total_count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct KeyPairs {
    key_pair: Vec<KeyPairItem>,
}

/// Builds one page's call; an empty name means any.
#[must_use]
pub fn describe_key_pairs_request(
    region_id: &str,
    name: &str,
    tags: &[(String, String)],
    page: u32,
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put_text("KeyPairName", name);
    params.put_tags(tags);
    params
        .put("PageNumber", page)
        .put("PageSize", KEY_PAIRS_PER_PAGE);
    Request::rpc(Action::DescribeKeyPairs, params)
}

impl Client {
    /// All key pairs that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_key_pairs(
        &self,
        name: &str,
        tags: &[(String, String)],
    ) -> Result<Vec<KeyPairItem>, CloudError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let request = describe_key_pairs_request(self.region_id(), name, tags, page);
            let reply: DescribeKeyPairsReply = self.send(&request).await?;
            let is_empty = reply.key_pairs.key_pair.is_empty();
            all.extend(reply.key_pairs.key_pair);
            if is_empty || u64::from(page * KEY_PAIRS_PER_PAGE) >= reply.total_count {
                break;
            }
        }
        Ok(all)
    }
}
