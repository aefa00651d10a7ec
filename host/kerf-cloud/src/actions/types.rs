//! DescribeInstanceTypes: what types there are. Says nothing about where they can be had.

use serde::Deserialize;

use crate::actions::PAGES_MAX;
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// Newer accounts get at most this many rows per page, whatever is asked for.
const TYPES_PER_PAGE: u32 = 100;

/// One instance type. Amounts are as the API gives them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TypeItem {
    pub instance_type_id: String,
    /// `ecs.g7`
    pub instance_type_family: String,
    /// `EntryLevel`, `EnterpriseLevel` or `CreditEntryLevel`.
    pub instance_family_level: String,
    /// `X86` or `ARM`.
    pub cpu_architecture: String,
    pub cpu_core_count: u32,
    /// GiB; half a GiB exists.
    pub memory_size: f64,
    #[serde(rename = "GPUAmount")]
    pub gpu_amount: u32,
    #[serde(rename = "GPUSpec")]
    pub gpu_spec: String,
    /// GiB of one GPU.
    #[serde(rename = "GPUMemorySize")]
    pub gpu_memory_size: f64,
    /// With the primary one.
    pub eni_quantity: u32,
    pub eni_private_ip_address_quantity: u32,
    pub eni_total_quantity: u32,
    pub local_storage_amount: u32,
    /// GiB of each.
    pub local_storage_capacity: u64,
    /// `local_ssd_pro` (NVMe) or `local_hdd_pro`.
    pub local_storage_category: String,
    pub physical_processor_model: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeInstanceTypesReply {
    instance_types: InstanceTypes,
    next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct InstanceTypes {
    instance_type: Vec<TypeItem>,
}

/// Builds one page's call. The action takes no region.
#[must_use]
pub fn describe_instance_types_request(next_token: &str) -> Request {
    let mut params = Params::new();
    params
        .put("MaxResults", TYPES_PER_PAGE)
        .put_text("NextToken", next_token);
    Request::rpc(Action::DescribeInstanceTypes, params)
}

impl Client {
    /// All instance types, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_instance_types(&self) -> Result<Vec<TypeItem>, CloudError> {
        let mut all = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let request = describe_instance_types_request(&token);
            let reply: DescribeInstanceTypesReply = self.send(&request).await?;
            all.extend(reply.instance_types.instance_type);
            if reply.next_token.is_empty() || reply.next_token == token {
                break;
            }
            token = reply.next_token;
        }
        Ok(all)
    }
}
