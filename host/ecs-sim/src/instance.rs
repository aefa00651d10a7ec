//! One instance: what was asked for, where it is in its life, and its shape in DescribeInstances.

use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::catalog::InstanceType;
use crate::world::{Tags, Timing};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CapacityType {
    OnDemand,
    Spot,
}

impl CapacityType {
    /// As Karpenter spells it, which is also how stock rules do.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

/// As DescribeInstances spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
        }
    }
}

/// How the user data is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    Waiting,
    Running,
    /// The user data ended; whether the node joined is another question.
    Finished,
    /// It could not be run, failed or took too long.
    Failed,
}

impl Boot {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Finished => "Finished",
            Self::Failed => "Failed",
        }
    }
}

/// The part of an instance that RunInstances decides.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) instance_type: InstanceType,
    pub(crate) zone: String,
    pub(crate) vswitch_id: String,
    pub(crate) image_id: String,
    pub(crate) security_group_ids: Vec<String>,
    pub(crate) name: String,
    pub(crate) host_name: String,
    pub(crate) tags: Tags,
    pub(crate) user_data: Vec<u8>,
    pub(crate) capacity_type: CapacityType,
    pub(crate) spot_strategy: String,
    pub(crate) spot_price_limit: f64,
    pub(crate) spot_duration: i64,
    pub(crate) key_pair: String,
    pub(crate) ram_role: String,
    pub(crate) http_tokens: String,
    pub(crate) system_disk_category: String,
    pub(crate) system_disk_gib: u32,
    pub(crate) deletion_protection: bool,
    /// What the call asked for in its own words, without secrets and what this struct has.
    pub(crate) request: Tags,
    pub(crate) data_disks: usize,
    pub(crate) price_per_hour: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) id: String,
    /// Counts up; newest first is the order of DescribeInstances.
    pub(crate) sequence: u64,
    pub(crate) spec: Spec,
    pub(crate) ip: Ipv4Addr,
    pub(crate) created_at: Timestamp,
    pub(crate) deleted_at: Option<Timestamp>,
    /// Set when the platform announced to take a spot machine back.
    pub(crate) recycling: bool,
    /// Halted by its owner or by the platform, and still there.
    pub(crate) is_stopped: bool,
    pub(crate) boot: Boot,
    pub(crate) node_name: Option<String>,
}

impl Instance {
    /// Where the instance is in its life; none once it is gone.
    pub(crate) fn status(&self, timing: &Timing, now: Timestamp) -> Option<Status> {
        if let Some(deleted_at) = self.deleted_at {
            let gone = has_passed(deleted_at, timing.released_after_ms, now);
            return (!gone).then_some(Status::Stopping);
        }
        if self.is_stopped {
            return Some(Status::Stopped);
        }
        if has_passed(self.created_at, timing.running_after_ms, now) {
            return Some(Status::Running);
        }
        let starting = has_passed(self.created_at, timing.starting_after_ms, now);
        Some(if starting {
            Status::Starting
        } else {
            Status::Pending
        })
    }

    /// Reads lag behind writes, so a new instance is not seen at once.
    pub(crate) fn is_visible(&self, timing: &Timing, now: Timestamp) -> bool {
        has_passed(self.created_at, timing.visible_after_ms, now)
    }

    /// The name that the machine has if none was asked for.
    pub(crate) fn host_name(&self) -> String {
        if self.spec.host_name.is_empty() {
            format!("iZ{}Z", self.id.trim_start_matches("i-"))
        } else {
            self.spec.host_name.clone()
        }
    }

    pub(crate) fn describe(&self, region: &str, vpc_id: &str, status: Status) -> Value {
        let mut whole = self.describe_machine(region, status);
        if let (Some(whole), Value::Object(more)) =
            (whole.as_object_mut(), self.describe_surroundings(vpc_id))
        {
            whole.extend(more);
        }
        whole
    }

    fn describe_machine(&self, region: &str, status: Status) -> Value {
        let instance_type = &self.spec.instance_type;
        json!({
            "InstanceId": self.id,
            "InstanceName": self.spec.name,
            "HostName": self.host_name(),
            "Description": "",
            "Status": status.as_str(),
            "RegionId": region,
            "ZoneId": self.spec.zone,
            "InstanceType": instance_type.id,
            "InstanceTypeFamily": format!("ecs.{}", instance_type.family),
            "ImageId": self.spec.image_id,
            "Cpu": instance_type.cpu,
            "Memory": memory_mib(instance_type),
            "GPUAmount": instance_type.gpu_count,
            "GPUSpec": instance_type.gpu_model,
            // The API leaves the seconds out.
            "CreationTime": self.created_at.strftime("%Y-%m-%dT%H:%MZ").to_string(),
            "StartTime": self.created_at.strftime("%Y-%m-%dT%H:%MZ").to_string(),
            "ExpiredTime": "2099-12-31T15:59Z",
            "InstanceChargeType": "PostPaid",
            "InternetChargeType": "PayByTraffic",
            "SpotStrategy": self.spec.spot_strategy,
            "SpotPriceLimit": self.spec.spot_price_limit,
            "SpotDuration": self.spec.spot_duration,
            "SpotInterruptionBehavior": "Terminate",
            "InstanceNetworkType": "vpc",
            "IoOptimized": true,
            "DeletionProtection": self.spec.deletion_protection,
            "KeyPairName": self.spec.key_pair,
            "SerialNumber": self.id.trim_start_matches("i-"),
            "StoppedMode": if self.is_stopped { "StopCharging" } else { "Not-applicable" },
            "OSType": "linux",
            "OSName": "Alibaba Cloud Linux 3.2104 LTS",
            "ResourceGroupId": "",
            "Recyclable": false,
            "DeviceAvailable": true,
        })
    }

    fn describe_surroundings(&self, vpc_id: &str) -> Value {
        let tags: Vec<_> = self
            .spec
            .tags
            .iter()
            .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
            .collect();
        let locks: Vec<_> = self
            .recycling
            .then(|| json!({"LockReason": "Recycling", "LockMsg": ""}))
            .into_iter()
            .collect();
        let ip = self.ip.to_string();
        json!({
            "VpcAttributes": {
                "VpcId": vpc_id, "VSwitchId": self.spec.vswitch_id, "NatIpAddress": "",
                "PrivateIpAddress": {"IpAddress": [ip]},
            },
            "NetworkInterfaces": {"NetworkInterface": [{
                "NetworkInterfaceId": format!("eni-{}", self.id.trim_start_matches("i-")),
                "Type": "Primary", "PrimaryIpAddress": ip, "MacAddress": mac_address(self.ip),
                "PrivateIpSets": {"PrivateIpSet": [{"PrivateIpAddress": ip, "Primary": true}]},
            }]},
            "InnerIpAddress": {"IpAddress": []},
            "PublicIpAddress": {"IpAddress": []},
            "SecurityGroupIds": {"SecurityGroupId": self.spec.security_group_ids},
            "Tags": {"Tag": tags},
            "OperationLocks": {"LockReason": locks},
            "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": self.spec.http_tokens, "HttpPutResponseHopLimit": 1},
        })
    }
}

fn has_passed(since: Timestamp, after_ms: u64, now: Timestamp) -> bool {
    let after = SignedDuration::from_millis(i64::try_from(after_ms).unwrap_or(i64::MAX));
    now.duration_since(since) >= after
}

/// Instances speak of MiB where types speak of GiB.
pub(crate) fn memory_mib(instance_type: &InstanceType) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "catalog sizes are positive and small"
    )]
    let mib = (instance_type.memory_gib * 1024.0).round() as u64;
    mib
}

fn mac_address(ip: Ipv4Addr) -> String {
    let [a, b, c, d] = ip.octets();
    format!("00:16:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}
