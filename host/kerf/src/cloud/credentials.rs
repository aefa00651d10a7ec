//! Which credentials are taken: a service account's role, then an access key, then the machine's role.

use anyhow::{Context as _, bail};
use kerf_cloud::rpc::config::Clock;
use kerf_cloud::rpc::credentials::{
    CredentialSource, Credentials, METADATA_URL, MachineRole, OidcRole,
};
use kerf_cloud::rpc::endpoint::{Network, Product, base_url};
use kerf_controllers::clock;

use crate::args::Cloud;

/// The first that is there. Half of one is an error: the next one would be somebody else.
///
/// # Errors
/// When there is none, or one is half given.
pub(crate) fn source(
    cloud: &Cloud,
    region: &str,
    network: Network,
) -> anyhow::Result<CredentialSource> {
    match (
        cloud.role_arn.is_empty(),
        cloud.oidc_provider_arn.is_empty(),
    ) {
        (false, false) => return oidc(cloud, region, network),
        (true, true) => {}
        (false, true) => bail!(
            "ALIBABA_CLOUD_ROLE_ARN is set: ALIBABA_CLOUD_OIDC_PROVIDER_ARN is needed with it"
        ),
        (true, false) => bail!(
            "ALIBABA_CLOUD_OIDC_PROVIDER_ARN is set: ALIBABA_CLOUD_ROLE_ARN is needed with it"
        ),
    }
    let (id, secret, token) = (
        &cloud.access_key_id,
        &cloud.access_key_secret,
        &cloud.security_token,
    );
    match (id.is_empty(), secret.is_empty()) {
        (false, false) if token.is_empty() => {
            return Ok(Credentials::access_key(id.as_str(), secret.as_str()).into());
        }
        (false, false) => {
            return Ok(Credentials::sts(id.as_str(), secret.as_str(), token.as_str()).into());
        }
        (true, true) => {}
        (false, true) => bail!(
            "ALIBABA_CLOUD_ACCESS_KEY_ID is set: ALIBABA_CLOUD_ACCESS_KEY_SECRET is needed with it"
        ),
        (true, false) => bail!(
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET is set: ALIBABA_CLOUD_ACCESS_KEY_ID is needed with it"
        ),
    }
    if cloud.ecs_role.is_empty() {
        bail!(
            "no cloud credentials: set ALIBABA_CLOUD_ROLE_ARN and ALIBABA_CLOUD_OIDC_PROVIDER_ARN (RRSA), ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or ALIBABA_CLOUD_ECS_METADATA"
        );
    }
    let role = MachineRole {
        name: cloud.ecs_role.clone(),
        metadata_url: METADATA_URL.to_owned(),
    };
    CredentialSource::machine(role, Clock::new(clock::now))
        .context("cannot ask the metadata service")
}

fn oidc(cloud: &Cloud, region: &str, network: Network) -> anyhow::Result<CredentialSource> {
    let given = cloud.sts_endpoint.as_deref().filter(|it| !it.is_empty());
    let sts_url = match given {
        Some(url) if url.contains("://") => url.to_owned(),
        Some(host) => format!("https://{host}"),
        None => base_url(Product::Sts, region, network),
    };
    let role = OidcRole {
        role_arn: cloud.role_arn.clone(),
        provider_arn: cloud.oidc_provider_arn.clone(),
        token_file: cloud.oidc_token_file.clone(),
        session_name: cloud.role_session_name.clone(),
        sts_url,
    };
    CredentialSource::oidc(role, Clock::new(clock::now)).context("cannot assume the role")
}
