//! TagResources.

use crate::actions::Empty;
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// Builds the call for instances; at most 50 ids and 20 tags.
#[must_use]
pub fn tag_instances_request(
    region_id: &str,
    ids: &[String],
    tags: &[(String, String)],
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("ResourceType", "instance");
    params.put_list("ResourceId", ids);
    params.put_tags(tags);
    Request::rpc(Action::TagResources, params)
}

impl Client {
    /// Adds or overwrites tags. Safe to repeat.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn tag_instances(
        &self,
        ids: &[String],
        tags: &[(String, String)],
    ) -> Result<(), CloudError> {
        let request = tag_instances_request(self.region_id(), ids, tags);
        self.send::<Empty>(&request).await.map(drop)
    }
}
