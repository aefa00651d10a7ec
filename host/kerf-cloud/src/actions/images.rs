//! DescribeImages.

use serde::Deserialize;

use crate::actions::{EcsTags, PAGES_MAX};
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

const IMAGES_PER_PAGE: u32 = 100;

/// One image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ImageItem {
    pub image_id: String,
    pub image_name: String,
    pub image_family: String,
    /// `x86_64`, `arm64` or `i386`.
    pub architecture: String,
    /// `2026-01-02T03:04:05Z`
    pub creation_time: String,
    pub status: String,
    /// GiB that the system disk must have at least.
    pub size: u32,
    pub tags: EcsTags,
}

impl ImageItem {
    /// Keys and values.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let tags = self.tags.tag.iter();
        tags.map(|tag| (tag.tag_key.as_str(), tag.tag_value.as_str()))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeImagesReply {
    images: Images,
    total_count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Images {
    image: Vec<ImageItem>,
}

/// Which images to list; everything given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFilter {
    /// Expired ones too: a running node's image must still be found. Without ids, available ones only.
    pub ids: Vec<String>,
    pub family: String,
    /// With `*`.
    pub name: String,
    /// `system`, `self`, `others` or `marketplace`.
    pub owner_alias: String,
    pub owner_id: String,
    pub tags: Vec<(String, String)>,
}

impl ImageFilter {
    /// These images.
    #[must_use]
    pub fn of_ids(ids: Vec<String>) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    /// The images of a family.
    #[must_use]
    pub fn of_family(family: &str) -> Self {
        Self {
            family: family.to_owned(),
            ..Self::default()
        }
    }

    /// The images whose name is like this.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

/// Builds one page's call.
#[must_use]
pub fn describe_images_request(region_id: &str, filter: &ImageFilter, page: u32) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put_text("ImageId", &filter.ids.join(","));
    params.put_text("ImageFamily", &filter.family);
    params.put_text("ImageName", &filter.name);
    params.put_text("ImageOwnerAlias", &filter.owner_alias);
    params.put_text("ImageOwnerId", &filter.owner_id);
    params.put_tags(&filter.tags);
    if filter.ids.is_empty() {
        params.put("Status", "Available");
    } else {
        params.put("ShowExpired", true);
    }
    params
        .put("PageNumber", page)
        .put("PageSize", IMAGES_PER_PAGE);
    Request::rpc(Action::DescribeImages, params)
}

impl Client {
    /// All images that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_images(
        &self,
        filter: &ImageFilter,
    ) -> Result<Vec<ImageItem>, CloudError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let request = describe_images_request(self.region_id(), filter, page);
            let reply: DescribeImagesReply = self.send(&request).await?;
            let is_empty = reply.images.image.is_empty();
            all.extend(reply.images.image);
            if is_empty || u64::from(page * IMAGES_PER_PAGE) >= reply.total_count {
                break;
            }
        }
        Ok(all)
    }
}
