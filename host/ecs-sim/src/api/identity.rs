//! Roles and session credentials: RAM GetRole, STS AssumeRoleWithOIDC and GetCallerIdentity.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Call;
use crate::error::ApiError;
use crate::keyring::{AccessKey, Session};
use crate::params::Params;
use crate::state::{State, opaque_id};

const SESSION_SECONDS_MIN: i64 = 900;
const SESSION_SECONDS_MAX: i64 = 43_200;

pub(super) fn get_role(state: &State, params: &Params) -> Result<Value, ApiError> {
    let name = params.required("RoleName")?;
    if !state.world.ram_roles.iter().any(|role| role == name) {
        return Err(ApiError::new(
            404,
            "EntityNotExist.Role",
            format!("The role {name} does not exist."),
        ));
    }
    let trust = json!({
        "Version": "1",
        "Statement": [{"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": ["ecs.aliyuncs.com"]}}],
    });
    Ok(json!({"Role": {
        "RoleName": name,
        "Arn": role_arn(state, name),
        "RoleId": "300000000000000000",
        "Description": "",
        "CreateDate": "2025-01-01T00:00:00Z",
        "AssumeRolePolicyDocument": trust.to_string(),
        "MaxSessionDuration": 3600,
    }}))
}

fn role_arn(state: &State, name: &str) -> String {
    format!("acs:ram::{}:role/{name}", state.world.account_id)
}

/// Any token is believed unless it is the word `expired` or `invalid`; there is no issuer to ask.
pub(super) fn assume_role_with_oidc(
    state: &mut State,
    params: &Params,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let role_arn = params.required("RoleArn")?.to_owned();
    params.required("OIDCProviderArn")?;
    let session_name = params.required("RoleSessionName")?.to_owned();
    match params.required("OIDCToken")? {
        "expired" => {
            return Err(ApiError::new(
                400,
                "AuthenticationFail.OIDCToken.Expired",
                "This JWT is expired.",
            ));
        }
        "invalid" => {
            return Err(ApiError::new(
                400,
                "AuthenticationFail.OIDCToken.Invalid",
                "This JWT is not valid.",
            ));
        }
        _ => {}
    }
    let seconds = params.int("DurationSeconds")?.unwrap_or(3600);
    if !(SESSION_SECONDS_MIN..=SESSION_SECONDS_MAX).contains(&seconds) {
        return Err(ApiError::new(
            400,
            "InvalidParameter.DurationSeconds",
            "DurationSeconds must be between 900 and 43200.",
        ));
    }
    let sequence = state.next_sequence();
    let access_key_id = format!("STS.{}", opaque_id("sts-id", sequence));
    let secret = opaque_id("sts-secret", sequence);
    let token = format!("CAIS{}", opaque_id("sts-token", sequence));
    let expires_at = now + SignedDuration::from_secs(seconds);
    let session = Session {
        token: token.clone(),
        expires_at,
        role_arn: role_arn.clone(),
    };
    state.keyring.insert(
        &access_key_id,
        AccessKey {
            secret: secret.clone(),
            session: Some(session),
        },
    );
    Ok(json!({
        "Credentials": {
            "AccessKeyId": access_key_id, "AccessKeySecret": secret, "SecurityToken": token,
            "Expiration": expires_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
        "AssumedRoleUser": {"Arn": format!("{role_arn}/{session_name}"), "AssumedRoleId": format!("300000000000000000:{session_name}")},
        "OIDCTokenInfo": {"Issuer": "https://oidc.sim", "Subject": "system:serviceaccount:kerf:kerf", "ClientIds": "sts.aliyuncs.com"},
    }))
}

pub(super) fn get_caller_identity(state: &State, call: &Call) -> Value {
    let account_id = &state.world.account_id;
    let session = call
        .access_key_id
        .as_deref()
        .and_then(|id| state.keyring.session(id));
    match session {
        Some(session) => {
            json!({"IdentityType": "AssumedRoleUser", "AccountId": account_id, "Arn": session.role_arn})
        }
        None => {
            json!({"IdentityType": "RAMUser", "AccountId": account_id, "Arn": format!("acs:ram::{account_id}:user/kerf")})
        }
    }
}
