//! RunInstances: once per ClientToken, as many as are asked for or can be had.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::check_region;
use super::launch_spec::launch_spec;
use crate::error::ApiError;
use crate::instance::Spec;
use crate::params::Params;
use crate::state::{State, Stock, ip_not_enough, vswitch_not_found};

const AMOUNT_MAX: i64 = 100;

pub(super) fn run_instances(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    if let Some(first_reply) = state.tokens.replay("RunInstances", params)? {
        return Ok(first_reply);
    }
    let wanted = wanted_amount(params)?;
    let spec = launch_spec(state, params)?;
    let amount = grantable(state, &spec, wanted)?;
    if params.flag("DryRun")? {
        let message = "Request validation has been passed with DryRun flag set.";
        return Err(ApiError::new(400, "DryRunOperation", message));
    }
    let ids = state.create_instances(&spec, amount, now)?;
    let reply = json!({
        "InstanceIdSets": {"InstanceIdSet": ids},
        "OrderId": "",
        "TradePrice": spec.price_per_hour * f64::from(amount),
    });
    state.tokens.remember("RunInstances", params, &reply);
    Ok(reply)
}

/// How many, and with how few the caller would be content.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    amount: u32,
    at_least: u32,
}

fn wanted_amount(params: &Params) -> Result<Wanted, ApiError> {
    let amount = params.int("Amount")?.unwrap_or(1);
    if !(1..=AMOUNT_MAX).contains(&amount) {
        return Err(ApiError::new(
            403,
            "InvalidParam.Amount",
            "The specified Amount must be between 1 and 100.",
        ));
    }
    // Without MinAmount it is all or nothing.
    let at_least = params.int("MinAmount")?.unwrap_or(amount);
    if !(1..=amount).contains(&at_least) {
        return Err(ApiError::new(
            400,
            "InvalidMinAmount.Malformed",
            "The specified MinAmount must not exceed Amount.",
        ));
    }
    let small = |n: i64| u32::try_from(n).unwrap_or(0);
    Ok(Wanted {
        amount: small(amount),
        at_least: small(at_least),
    })
}

/// How many the stock and the vSwitch allow, if that is enough.
fn grantable(state: &State, spec: &Spec, wanted: Wanted) -> Result<u32, ApiError> {
    let stock = match state.stock(&spec.instance_type, &spec.zone, spec.capacity_type) {
        Stock::NotOnSale => {
            return Err(ApiError::new(
                403,
                "Zone.NotOnSale",
                "The resource is not on sale in the specified zone.",
            ));
        }
        Stock::Left(left) => left.unwrap_or(u32::MAX),
    };
    if stock < wanted.at_least {
        let message = "The requested resource is sold out in the specified zone; try other types of resources or other regions and zones.";
        return Err(ApiError::new(403, "OperationDenied.NoStock", message));
    }
    check_quota(state, spec, wanted)?;
    let vswitch = state
        .vswitch(&spec.vswitch_id)
        .ok_or_else(|| vswitch_not_found(&spec.vswitch_id))?;
    let free_ips = state.free_ips(vswitch);
    if free_ips < wanted.at_least {
        return Err(ip_not_enough(&spec.vswitch_id));
    }
    Ok(wanted.amount.min(stock).min(free_ips))
}

/// The quota is asked for the whole amount: it is no stock of which the rest would do.
fn check_quota(state: &State, spec: &Spec, wanted: Wanted) -> Result<(), ApiError> {
    let asked = spec.instance_type.cpu.saturating_mul(wanted.amount);
    let total = state.vcpus_in_use().saturating_add(asked);
    if state.world.vcpu_quota.is_none_or(|quota| total <= quota) {
        return Ok(());
    }
    let message = "The vCPU quota of the instance family is used up; ask for more in Quota Center.";
    Err(ApiError::new(403, "QuotaExceed.ElasticQuota", message))
}
