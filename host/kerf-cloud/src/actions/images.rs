//! DescribeImages.

use serde::Deserialize;

use crate::actions::PAGES_MAX;
use crate::error::CloudError;
use crate::rpc::{Client, Params, Product, Request};

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

/// Which images to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageFilter {
    /// By id, expired ones too: a running node's image must still be found.
    Ids(Vec<String>),
    /// By family, available ones only.
    Family(String),
    /// By name, with `*`.
    Name(String),
}

/// Builds one page's call.
#[must_use]
pub fn describe_images_request(region_id: &str, filter: &ImageFilter, page: u32) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    match filter {
        ImageFilter::Ids(ids) => {
            params
                .put("ImageId", ids.join(","))
                .put("ShowExpired", true);
        }
        ImageFilter::Family(family) => {
            params.put("ImageFamily", family).put("Status", "Available");
        }
        ImageFilter::Name(name) => {
            params.put("ImageName", name).put("Status", "Available");
        }
    }
    params
        .put("PageNumber", page)
        .put("PageSize", IMAGES_PER_PAGE);
    Request::rpc(Product::Ecs, "DescribeImages", params)
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
