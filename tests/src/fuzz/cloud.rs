//! Answers of the cloud: the first byte says which, the second the status, the rest is the body.

use std::time::Duration;

use kerf_cloud::actions::capacity_reservations::CapacityReservationItem;
use kerf_cloud::actions::cluster::ClusterDetail;
use kerf_cloud::actions::events::InstanceEventItem;
use kerf_cloud::actions::images::ImageItem;
use kerf_cloud::actions::instances::InstanceItem;
use kerf_cloud::actions::network::{SecurityGroupItem, VSwitchItem};
use kerf_cloud::actions::run_instances::RunInstancesReply;
use kerf_cloud::actions::spot::SpotZone;
use kerf_cloud::actions::stock::AvailableZone;
use kerf_cloud::rpc::reply::{Reply, parse_retry_after};
use serde::de::DeserializeOwned;

use super::{Planted, Target, text_of};

pub(super) const TARGET: Target = Target {
    name: "cloud",
    run,
    seeds: || SEEDS.iter().map(|it| it.as_bytes().to_vec()).collect(),
};

const SEEDS: [&str; 5] = [
    "\x00\x00{\"InstanceId\":\"i-1\",\"Status\":\"Running\",\"OperationLocks\":{\"LockReason\":[{\"LockReason\":\"Recycling\"}]},\"VpcAttributes\":{\"PrivateIpAddress\":{\"IpAddress\":[\"10.0.0.1\"]}}}",
    "\x01\x00{\"InstanceIdSets\":{\"InstanceIdSet\":[\"i-1\",\"i-2\"]}}",
    "\x02\x01{\"Code\":\"Throttling.User\",\"Message\":\"slow down\",\"RequestId\":\"1\"}",
    "\x03\x00{\"VSwitchId\":\"vsw-1\",\"AvailableIpAddressCount\":250,\"ZoneId\":\"cn-hangzhou-h\"}",
    "\x04\x02<html>Bad Gateway</html>",
];

fn run(bytes: &[u8], planted: Planted) {
    let [kind, status, body @ ..] = bytes else {
        return;
    };
    let Some(body) = text_of(body) else { return };
    let _ = parse_retry_after(body);
    let reply = Reply {
        status: [200, 400, 502, 503][usize::from(status % 4)],
        retry_after: Some(Duration::from_millis(u64::from(*status))),
        body: body.to_owned(),
    };
    match kind % 10 {
        0 => {
            let instance = read::<InstanceItem>(reply);
            // It is about to be taken back, and nobody knows which it is.
            planted.at(instance.is_some_and(|it| {
                it.instance_id.is_empty() && !it.operation_locks.lock_reason.is_empty()
            }));
        }
        1 => drop(read::<RunInstancesReply>(reply)),
        2 => drop(read::<ClusterDetail>(reply)),
        3 => drop(read::<VSwitchItem>(reply)),
        4 => drop(read::<SecurityGroupItem>(reply)),
        5 => drop(read::<ImageItem>(reply)),
        6 => drop(read::<CapacityReservationItem>(reply)),
        7 => drop(read::<InstanceEventItem>(reply)),
        8 => drop(read::<SpotZone>(reply)),
        _ => drop(read::<AvailableZone>(reply)),
    }
}

/// What it says, or an error that can be told and classified.
fn read<T: DeserializeOwned>(reply: Reply) -> Option<T> {
    reply
        .into_json("Fuzzed")
        .inspect_err(|error| {
            let _ = (error.to_string(), error.class());
        })
        .ok()
}
