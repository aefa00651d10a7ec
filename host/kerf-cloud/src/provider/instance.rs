//! One ECS instance as the controllers see it.

use std::collections::BTreeMap;

use jiff::Timestamp;
pub use kerf_core::instance_type::CapacityType;

use crate::provider::tags;

/// From `SpotStrategy`: the charge type says `PostPaid` for spot too.
#[must_use]
pub fn capacity_type_of(spot_strategy: &str) -> CapacityType {
    match spot_strategy {
        "" | "NoSpot" => CapacityType::OnDemand,
        _ => CapacityType::Spot,
    }
}

/// The lock of a spot instance that the market takes back within minutes.
pub const RECYCLING: &str = "Recycling";

/// The state in `DescribeInstances`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceStatus {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
    /// A word that the API did not have when this was written.
    Other(String),
}

impl InstanceStatus {
    /// Reads the API's word.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "Pending" => Self::Pending,
            "Starting" => Self::Starting,
            "Running" => Self::Running,
            "Stopping" => Self::Stopping,
            "Stopped" => Self::Stopped,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `i-…`
    pub id: String,
    pub region_id: String,
    pub zone_id: String,
    pub instance_type: String,
    pub image_id: String,
    pub capacity_type: CapacityType,
    pub status: InstanceStatus,
    pub vswitch_id: String,
    pub security_group_ids: Vec<String>,
    pub private_ips: Vec<String>,
    pub tags: BTreeMap<String, String>,
    /// Minute resolution; never use it for a grace period.
    pub created_at: Option<Timestamp>,
    /// `Recycling`, `financial`, `security` …
    pub locks: Vec<String>,
}

impl Instance {
    /// What `spec.providerID` of the node is.
    #[must_use]
    pub fn provider_id(&self) -> String {
        format_provider_id(&self.region_id, &self.id)
    }

    /// True if the market takes this spot instance back within minutes.
    #[must_use]
    pub fn is_being_recycled(&self) -> bool {
        self.locks.iter().any(|lock| lock == RECYCLING)
    }

    /// True if the machine was halted and yet not deleted: by its owner, by a spot interruption that only stops, or by
    /// the platform before it retires the host. It does not come back by itself.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.status == InstanceStatus::Stopped
    }

    /// Whether it carries all these tags.
    #[must_use]
    pub fn has_tags(&self, tags: &[(&str, &str)]) -> bool {
        let has = |key: &str, value: &str| self.tags.get(key).is_some_and(|found| found == value);
        tags.iter().all(|(key, value)| has(key, value))
    }

    /// The claim that the tags name.
    #[must_use]
    pub fn node_claim(&self) -> Option<&str> {
        self.tags.get(tags::NODE_CLAIM).map(String::as_str)
    }

    /// The launch group that the tags name.
    #[must_use]
    pub fn launch_group(&self) -> Option<&str> {
        self.tags.get(tags::LAUNCH_GROUP).map(String::as_str)
    }
}

/// `<region>.<instance-id>`, as ACK's cloud controller writes it.
#[must_use]
pub fn format_provider_id(region_id: &str, instance_id: &str) -> String {
    format!("{region_id}.{instance_id}")
}

/// Splits `<region>.<instance-id>`, also with the `alicloud://` that some clusters put in front.
#[must_use]
pub fn parse_provider_id(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("alicloud://").unwrap_or(text);
    let (region, id) = text.split_once('.')?;
    let is_whole = !region.is_empty() && id.starts_with("i-") && id.len() > "i-".len();
    is_whole.then_some((region, id))
}

/// What became of one id in a delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Accepted; the instance stays visible for up to a minute.
    Accepted,
    /// It does not exist (any more).
    Gone,
    /// Still initializing or busy: try again shortly.
    Requeue,
    /// The cloud refuses, for example because of deletion protection; the text says why.
    Refused(String),
    /// The call failed; the text says how.
    Failed(String),
}
