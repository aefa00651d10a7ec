//! DescribeVSwitches (VPC), DescribeSecurityGroups and DescribeKeyPairs (ECS).

use serde_json::{Value, json};

use super::images::is_like;
use super::{PageBounds, check_region, merged, numbered_page, token_page};
use crate::error::ApiError;
use crate::params::{Params, tags_match};
use crate::state::State;
use crate::world::{KeyPair, PrivatePool, SecurityGroup, VSwitch};

const VSWITCH_PAGE_SIZE_MAX: usize = 50;
const GROUP_PAGE: PageBounds = PageBounds {
    min: 1,
    default: 10,
    max: 100,
};
const KEY_PAIR_PAGE_SIZE_MAX: usize = 50;
/// What a normal security group holds.
const GROUP_INSTANCES_MAX: usize = 2000;

pub(super) fn describe_vswitches(state: &State, params: &Params) -> Result<Value, ApiError> {
    if params.text("RegionId").is_some() {
        check_region(state, params)?;
    }
    let ids: Option<Vec<_>> = params
        .text("VSwitchId")
        .map(|ids| ids.split(',').map(str::trim).collect());
    let filter = params.tags("Tag");
    let wanted = |vswitch: &&VSwitch| {
        ids.as_ref()
            .is_none_or(|ids| ids.contains(&vswitch.id.as_str()))
            && params
                .text("VpcId")
                .is_none_or(|vpc_id| vpc_id == state.world.vpc_id)
            && params
                .text("ZoneId")
                .is_none_or(|zone| zone == vswitch.zone)
            && params
                .text("VSwitchName")
                .is_none_or(|name| name == vswitch.id)
            && tags_match(&filter, &vswitch.tags)
    };
    let found: Vec<_> = state.world.vswitches.iter().filter(wanted).collect();
    let page = numbered_page(state, params, found, VSWITCH_PAGE_SIZE_MAX)?;
    let rows: Vec<_> = page
        .items
        .into_iter()
        .map(|vswitch| vswitch_row(state, vswitch))
        .collect();
    Ok(merged(page.fields, json!({"VSwitches": {"VSwitch": rows}})))
}

/// VPC spells tags Key and Value where ECS spells them TagKey and TagValue.
fn vswitch_row(state: &State, vswitch: &VSwitch) -> Value {
    let tags: Vec<_> = vswitch
        .tags
        .iter()
        .map(|(key, value)| json!({"Key": key, "Value": value}))
        .collect();
    json!({
        "VSwitchId": vswitch.id,
        "VSwitchName": vswitch.id,
        "VpcId": state.world.vpc_id,
        "ZoneId": vswitch.zone,
        "Status": "Available",
        "CidrBlock": String::from(vswitch.cidr),
        "Ipv6CidrBlock": "",
        "EnabledIpv6": false,
        "AvailableIpAddressCount": state.free_ips(vswitch),
        "IsDefault": false,
        "Description": "",
        "CreationTime": "2025-01-01T00:00:00Z",
        "ResourceGroupId": "",
        "Tags": {"Tag": tags},
    })
}

pub(super) fn describe_security_groups(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let mut ids = params.json_list("SecurityGroupIds")?;
    if let Some(id) = params.text("SecurityGroupId") {
        ids.get_or_insert_default().push(id.to_owned());
    }
    let filter = params.tags("Tag");
    let wanted = |group: &&SecurityGroup| {
        let vpc_id = group.vpc_id.as_ref().unwrap_or(&state.world.vpc_id);
        ids.as_ref().is_none_or(|ids| ids.contains(&group.id))
            && params.text("VpcId").is_none_or(|wanted| wanted == vpc_id)
            && params
                .text("SecurityGroupName")
                .is_none_or(|name| name == group.name)
            && tags_match(&filter, &group.tags)
    };
    let found: Vec<_> = state.world.security_groups.iter().filter(wanted).collect();
    let by_number = params.text("PageNumber").is_some() || params.text("PageSize").is_some();
    if by_number {
        let page = numbered_page(state, params, found, GROUP_PAGE.max)?;
        let rows: Vec<_> = page
            .items
            .into_iter()
            .map(|group| group_row(state, group))
            .collect();
        return Ok(merged(
            page.fields,
            json!({"NextToken": "", "SecurityGroups": {"SecurityGroup": rows}}),
        ));
    }
    let total = found.len();
    let (page, next) = token_page(state, params, found, GROUP_PAGE)?;
    let rows: Vec<_> = page
        .into_iter()
        .map(|group| group_row(state, group))
        .collect();
    Ok(json!({"TotalCount": total, "NextToken": next, "SecurityGroups": {"SecurityGroup": rows}}))
}

fn group_row(state: &State, group: &SecurityGroup) -> Value {
    let used = state
        .instances
        .values()
        .filter(|i| i.deleted_at.is_none() && i.spec.security_group_ids.contains(&group.id))
        .count();
    let tags: Vec<_> = group
        .tags
        .iter()
        .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
        .collect();
    json!({
        "SecurityGroupId": group.id,
        "SecurityGroupName": group.name,
        "SecurityGroupType": "normal",
        "VpcId": group.vpc_id.as_ref().unwrap_or(&state.world.vpc_id),
        "Description": "",
        "CreationTime": "2025-01-01T00:00:00Z",
        "ServiceManaged": false,
        "EcsCount": used,
        "AvailableInstanceAmount": GROUP_INSTANCES_MAX.saturating_sub(used),
        "ResourceGroupId": "",
        "Tags": {"Tag": tags},
    })
}

pub(super) fn describe_key_pairs(state: &State, params: &Params) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let filter = params.tags("Tag");
    let wanted = |pair: &&KeyPair| {
        params
            .text("KeyPairName")
            .is_none_or(|asked| is_like(asked, &pair.name))
            && tags_match(&filter, &pair.tags)
    };
    let found: Vec<_> = state.world.key_pairs.iter().filter(wanted).collect();
    let page = numbered_page(state, params, found, KEY_PAIR_PAGE_SIZE_MAX)?;
    let rows: Vec<_> = page
        .items
        .iter()
        .map(|pair| {
            let tags: Vec<_> = pair
                .tags
                .iter()
                .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
                .collect();
            json!({"KeyPairName": pair.name, "KeyPairFingerPrint": "", "Tags": {"Tag": tags}})
        })
        .collect();
    Ok(merged(page.fields, json!({"KeyPairs": {"KeyPair": rows}})))
}

/// What is left in each pool is what no living instance takes.
pub(super) fn describe_capacity_reservations(
    state: &State,
    params: &Params,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    let ids = params.json_list("PrivatePoolOptions.Ids")?;
    let filter = params.tags("Tag");
    let wanted = |pool: &&PrivatePool| {
        ids.as_ref().is_none_or(|ids| ids.contains(&pool.id)) && tags_match(&filter, &pool.tags)
    };
    let found: Vec<_> = state.world.private_pools.iter().filter(wanted).collect();
    let (page, next) = token_page(state, params, found, GROUP_PAGE)?;
    let rows: Vec<_> = page.into_iter().map(|pool| pool_row(state, pool)).collect();
    Ok(json!({
        "NextToken": next,
        "CapacityReservationSet": {"CapacityReservationItem": rows},
    }))
}

fn pool_row(state: &State, pool: &PrivatePool) -> Value {
    let tags: Vec<_> = pool
        .tags
        .iter()
        .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
        .collect();
    json!({
        "PrivatePoolOptionsId": pool.id,
        "PrivatePoolOptionsMatchCriteria": "Target",
        "RegionId": state.world.region,
        "Status": "Active",
        "InstanceChargeType": "PostPaid",
        "Tags": {"Tag": tags},
        "AllocatedResources": {"AllocatedResource": [{
            "InstanceType": pool.instance_type, "zoneId": pool.zone, "TotalAmount": pool.count,
            "UsedAmount": state.used_of_pool(&pool.id),
        }]},
    })
}
