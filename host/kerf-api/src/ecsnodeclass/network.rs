//! Public addresses of instances.

use crate::open_enum::open_enum;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// How traffic to the internet is paid for.
    InternetChargeType {
        /// By the amount of data.
        PayByTraffic = "PayByTraffic",
        /// By the bandwidth that is set aside.
        PayByBandwidth = "PayByBandwidth",
    }
}

/// A public address of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternetAccessible {
    /// How traffic to the internet is paid for.
    #[serde(
        default = "charge_type_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub charge_type: Option<InternetChargeType>,
    /// The most that goes out, in Mbit/s; with 0 there is no public address.
    #[schemars(range(min = 0, max = 100))]
    pub max_bandwidth_out: i32,
}

fn charge_type_default() -> Option<InternetChargeType> {
    Some(InternetChargeType::PayByTraffic)
}
