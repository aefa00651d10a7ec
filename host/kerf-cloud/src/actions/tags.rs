//! TagResources and ListTagResources, for instances.

use serde::Deserialize;

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

/// Builds one page's call: the instances that carry all these tags.
#[must_use]
pub fn list_tagged_instances_request(
    region_id: &str,
    tags: &[(&str, &str)],
    next_token: &str,
) -> Request {
    let owned = tags
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let tags: Vec<(String, String)> = owned.collect();
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("ResourceType", "instance");
    params.put_text("NextToken", next_token);
    params.put_tags(&tags);
    Request::rpc(Action::ListTagResources, params)
}

/// A page of instances that carry tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaggedPage {
    /// One may come more than once: there is a row for each of its tags.
    pub ids: Vec<String>,
    /// Where the next page begins; empty on the last.
    pub next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ListTagResourcesReply {
    next_token: String,
    tag_resources: TagResources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TagResources {
    tag_resource: Vec<TagResource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TagResource {
    resource_id: String,
}

impl Client {
    /// One page of the instances that carry all these tags.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn list_tagged_instances(
        &self,
        tags: &[(&str, &str)],
        next_token: &str,
    ) -> Result<TaggedPage, CloudError> {
        let request = list_tagged_instances_request(self.region_id(), tags, next_token);
        let reply: ListTagResourcesReply = self.send(&request).await?;
        let rows = reply.tag_resources.tag_resource.into_iter();
        Ok(TaggedPage {
            ids: rows.map(|row| row.resource_id).collect(),
            next_token: reply.next_token,
        })
    }

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
