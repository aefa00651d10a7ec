//! DeleteInstances and DeleteInstance: what may be deleted in which state.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::check_region;
use crate::error::ApiError;
use crate::instance::Status;
use crate::params::Params;
use crate::state::State;

const IDS_MAX: usize = 100;

pub(super) fn delete_instances(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    check_region(state, params)?;
    if let Some(first_reply) = state.tokens.replay("DeleteInstances", params)? {
        return Ok(first_reply);
    }
    let ids = params.list("InstanceId");
    if ids.is_empty() {
        return Err(ApiError::missing_parameter("InstanceId"));
    }
    if ids.len() > IDS_MAX {
        return Err(ApiError::invalid_parameter("InstanceId"));
    }
    let reply = delete(state, params, &ids, now)?;
    state.tokens.remember("DeleteInstances", params, &reply);
    Ok(reply)
}

pub(super) fn delete_instance(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let id = params.required("InstanceId")?;
    delete(state, params, &[id], now)
}

/// One bad id fails the whole call, and then none is deleted.
fn delete(
    state: &mut State,
    params: &Params,
    ids: &[&str],
    now: Timestamp,
) -> Result<Value, ApiError> {
    let force = params.flag("Force")?;
    for id in ids {
        check(state, id, force, now)?;
    }
    if params.flag("DryRun")? {
        let message = "Request validation has been passed with DryRun flag set.";
        return Err(ApiError::new(400, "DryRunOperation", message));
    }
    for id in ids {
        state.delete_instance(id, now);
    }
    Ok(json!({}))
}

fn check(state: &State, id: &str, force: bool, now: Timestamp) -> Result<(), ApiError> {
    let Some((instance, status)) = state.living(id, now) else {
        return Err(ApiError::new(
            404,
            "InvalidInstanceId.NotFound",
            format!("The specified InstanceId {id} does not exist."),
        ));
    };
    if instance.spec.deletion_protection {
        let message = format!("The instance {id} is protected from deletion.");
        return Err(ApiError::new(
            403,
            "InvalidOperation.DeletionProtection",
            message,
        ));
    }
    match status {
        Status::Pending => {
            let message = format!("The instance {id} is initializing.");
            Err(ApiError::new(
                403,
                "IncorrectInstanceStatus.Initializing",
                message,
            ))
        }
        Status::Starting | Status::Running if !force => {
            let message = format!(
                "The instance {id} is {} and must be stopped, or deleted with Force.",
                status.as_str()
            );
            Err(ApiError::new(403, "IncorrectInstanceStatus", message))
        }
        Status::Starting | Status::Running | Status::Stopping | Status::Stopped => Ok(()),
    }
}
