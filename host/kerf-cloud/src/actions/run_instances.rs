//! RunInstances: making instances.

use serde::Deserialize;

use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// What to make. Empty text, empty lists and `None` are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunInstances {
    pub instance_type: String,
    pub image_id: String,
    pub vswitch_id: String,
    pub security_group_ids: Vec<String>,
    /// 1 to 100.
    pub amount: u32,
    /// Without it the call is all or nothing; with it, anything from here to `amount` is a success, so the ids in the
    /// reply must be counted.
    pub min_amount: Option<u32>,
    /// At most 64 ASCII characters.
    pub client_token: String,
    pub instance_name: String,
    /// Base64 of at most 32 KiB.
    pub user_data: String,
    pub key_pair_name: String,
    pub password_inherit: bool,
    pub launch_template_id: String,
    /// `Open`, `Target` or `None`; empty leaves it to the account.
    pub private_pool_match: String,
    /// With `Target`.
    pub private_pool_id: String,
    pub ram_role_name: String,
    pub resource_group_id: String,
    pub system_disk: SystemDiskParams,
    pub data_disks: Vec<DataDiskParams>,
    pub spot_strategy: String,
    pub spot_price_limit: Option<f64>,
    pub spot_duration: Option<u32>,
    pub spot_interruption_behavior: String,
    pub http_endpoint: String,
    pub http_tokens: String,
    pub http_put_response_hop_limit: Option<u32>,
    pub internet_charge_type: String,
    pub internet_max_bandwidth_out: Option<u32>,
    pub tags: Vec<(String, String)>,
}

/// `SystemDisk.*`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemDiskParams {
    pub category: String,
    pub size_gib: u32,
    pub performance_level: String,
    pub encrypted: bool,
    pub kms_key_id: String,
}

/// `DataDisk.N.*`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataDiskParams {
    pub category: String,
    pub size_gib: u32,
    pub performance_level: String,
    pub device: String,
    pub snapshot_id: String,
    pub encrypted: bool,
    pub kms_key_id: String,
    pub delete_with_instance: bool,
}

/// The ids of what was made. Nothing else is known yet: not the state, not the address.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RunInstancesReply {
    pub instance_id_sets: InstanceIdSets,
    pub request_id: String,
}

/// The list around the ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct InstanceIdSets {
    pub instance_id_set: Vec<String>,
}

/// Builds the call.
#[must_use]
pub fn run_instances_request(region_id: &str, run: &RunInstances) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put_text("InstanceType", &run.instance_type);
    params.put_text("ImageId", &run.image_id);
    params.put_text("VSwitchId", &run.vswitch_id);
    params.put_list("SecurityGroupIds", &run.security_group_ids);
    params.put("Amount", run.amount);
    params.put_some("MinAmount", run.min_amount);
    params.put_text("ClientToken", &run.client_token);
    params.put_text("InstanceName", &run.instance_name);
    params.put_text("UserData", &run.user_data);
    params.put_text("KeyPairName", &run.key_pair_name);
    params.put_some("PasswordInherit", run.password_inherit.then_some(true));
    params.put_text("LaunchTemplateId", &run.launch_template_id);
    params.put_text("PrivatePoolOptions.MatchCriteria", &run.private_pool_match);
    params.put_text("PrivatePoolOptions.Id", &run.private_pool_id);
    params.put_text("RamRoleName", &run.ram_role_name);
    params.put_text("ResourceGroupId", &run.resource_group_id);
    put_disks(&mut params, run);
    params.put("InstanceChargeType", "PostPaid");
    params.put_text("SpotStrategy", &run.spot_strategy);
    params.put_some("SpotPriceLimit", run.spot_price_limit);
    params.put_some("SpotDuration", run.spot_duration);
    params.put_text("SpotInterruptionBehavior", &run.spot_interruption_behavior);
    params.put_text("HttpEndpoint", &run.http_endpoint);
    params.put_text("HttpTokens", &run.http_tokens);
    params.put_some("HttpPutResponseHopLimit", run.http_put_response_hop_limit);
    params.put_text("InternetChargeType", &run.internet_charge_type);
    params.put_some("InternetMaxBandwidthOut", run.internet_max_bandwidth_out);
    params.put_tags(&run.tags);
    Request::rpc(Action::RunInstances, params)
}

fn put_disks(params: &mut Params, run: &RunInstances) {
    let system = &run.system_disk;
    params.put_text("SystemDisk.Category", &system.category);
    params.put_some(
        "SystemDisk.Size",
        (system.size_gib > 0).then_some(system.size_gib),
    );
    params.put_text("SystemDisk.PerformanceLevel", &system.performance_level);
    params.put_some("SystemDisk.Encrypted", system.encrypted.then_some(true));
    params.put_text("SystemDisk.KMSKeyId", &system.kms_key_id);
    for (index, disk) in run.data_disks.iter().enumerate() {
        let name = |field: &str| format!("DataDisk.{}.{field}", index + 1);
        params.put_text(name("Category"), &disk.category);
        params.put_some(name("Size"), (disk.size_gib > 0).then_some(disk.size_gib));
        params.put_text(name("PerformanceLevel"), &disk.performance_level);
        params.put_text(name("Device"), &disk.device);
        params.put_text(name("SnapshotId"), &disk.snapshot_id);
        params.put_some(name("Encrypted"), disk.encrypted.then_some(true));
        params.put_text(name("KMSKeyId"), &disk.kms_key_id);
        params.put(name("DeleteWithInstance"), disk.delete_with_instance);
    }
}

impl Client {
    /// Makes instances. Safe to repeat with the same token and the same parameters.
    ///
    /// # Errors
    /// The API's, typed; with [`CloudError::is_outcome_unknown`] the instances may exist.
    pub async fn run_instances(&self, run: &RunInstances) -> Result<Vec<String>, CloudError> {
        let request = run_instances_request(self.region_id(), run);
        let reply: RunInstancesReply = self.send(&request).await?;
        Ok(reply.instance_id_sets.instance_id_set)
    }
}
