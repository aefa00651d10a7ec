//! Which action a request means: RPC products name it, the ROA product (CS) has paths.

use serde_json::Value;

use crate::api::Call;
use crate::error::ApiError;
use crate::wire::WireRequest;

const VERSION_ECS: &str = "2014-05-26";
const VERSION_VPC: &str = "2016-04-28";
const VERSION_CS: &str = "2015-12-15";
const VERSION_RAM: &str = "2015-05-01";
const VERSION_STS: &str = "2015-04-01";

/// CS spells errors and request ids differently from the RPC products.
pub(crate) fn is_roa(request: &WireRequest) -> bool {
    request.path.starts_with("/clusters/") || request.path.starts_with("/api/")
}

pub(crate) fn route(request: &WireRequest, server_url: &str) -> Result<Call, ApiError> {
    let params = request.params();
    let mut call = Call {
        action: String::new(),
        params,
        body: Value::Null,
        cluster_id: String::new(),
        addon: String::new(),
        access_key_id: None,
        server_url: server_url.to_owned(),
    };
    if is_roa(request) {
        route_roa(request, &mut call)?;
    } else {
        route_rpc(request, &mut call)?;
    }
    check_version(request, &call)?;
    Ok(call)
}

fn route_rpc(request: &WireRequest, call: &mut Call) -> Result<(), ApiError> {
    let action = request
        .header("x-acs-action")
        .or_else(|| call.params.text("Action"));
    call.action = action
        .ok_or_else(|| ApiError::missing_parameter("Action"))?
        .to_owned();
    if request.path != "/" || !["GET", "POST"].contains(&request.method.as_str()) {
        return Err(not_found());
    }
    Ok(())
}

fn route_roa(request: &WireRequest, call: &mut Call) -> Result<(), ApiError> {
    let segments: Vec<_> = request.path.trim_matches('/').split('/').collect();
    let (action, cluster_id, addon) = match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["clusters", id]) => ("DescribeClusterDetail", *id, ""),
        ("POST", ["clusters", id, "attachscript"]) => ("DescribeClusterAttachScripts", *id, ""),
        ("GET", ["clusters", id, "addon_instances", name]) => {
            ("GetClusterAddonInstance", *id, *name)
        }
        ("GET", ["clusters", id, "nodepools"]) => ("DescribeClusterNodePools", *id, ""),
        ("GET", ["api", "v1", "metadata", "versions"]) => {
            ("DescribeKubernetesVersionMetadata", "", "")
        }
        _ => return Err(not_found()),
    };
    action.clone_into(&mut call.action);
    cluster_id.clone_into(&mut call.cluster_id);
    addon.clone_into(&mut call.addon);
    if !request.body.is_empty() {
        call.body = serde_json::from_slice(&request.body)
            .map_err(|_| ApiError::new(400, "InvalidParameter", "the body is not valid JSON"))?;
    }
    Ok(())
}

/// An action exists in one version of one product only; at another it is unknown.
fn check_version(request: &WireRequest, call: &Call) -> Result<(), ApiError> {
    let expected = match call.action.as_str() {
        "DescribeVSwitches" => VERSION_VPC,
        "GetRole" => VERSION_RAM,
        "AssumeRoleWithOIDC" | "GetCallerIdentity" => VERSION_STS,
        _ if is_roa(request) => VERSION_CS,
        _ => VERSION_ECS,
    };
    let sent = request
        .header("x-acs-version")
        .or_else(|| call.params.text("Version"));
    match sent {
        Some(version) if version == expected => Ok(()),
        Some(_) => Err(not_found()),
        None => Err(ApiError::missing_parameter("Version")),
    }
}

fn not_found() -> ApiError {
    ApiError::new(
        404,
        "InvalidAction.NotFound",
        "Specified api is not found, please check your url and method.",
    )
}
