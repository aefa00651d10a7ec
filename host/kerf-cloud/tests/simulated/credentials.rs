//! Credentials that end: integration with ecs-sim over HTTP.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ecs_sim::World;
use jiff::SignedDuration;
use kerf_cloud::rpc::Clock;
use kerf_cloud::rpc::credentials::{CredentialSource, OidcRole};

use crate::cloud::Cloud;

/// A file that goes with its test.
struct Token(PathBuf);

impl Token {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kerf-token-{name}-{}", std::process::id()));
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        Self(path)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A role of which STS is the simulator; its clock runs this many seconds ahead.
fn source(token: &Token, cloud: &Cloud, ahead: &Arc<AtomicI64>) -> CredentialSource {
    let ahead = Arc::clone(ahead);
    let role = OidcRole {
        role_arn: "acs:ram::1:role/kerf".to_owned(),
        provider_arn: "acs:ram::1:oidc-provider/ack-rrsa-c1".to_owned(),
        token_file: token.0.clone(),
        session_name: "kerf".to_owned(),
        sts_url: cloud.sim.url().to_owned(),
    };
    let clock = Clock::new(move || {
        jiff::Timestamp::now() + SignedDuration::from_secs(ahead.load(Ordering::Relaxed))
    });
    CredentialSource::oidc(role, clock).unwrap()
}

#[tokio::test]
async fn a_service_account_assumes_its_role_once_for_many_calls() {
    let token = Token::new("once", "eyJ.good.token\n");
    let cloud = Cloud::start(World::default()).await;
    let source = source(&token, &cloud, &Arc::default());

    let first = source.load().await.unwrap();
    let second = source.load().await.unwrap();

    assert!(first == second && first.security_token.is_some());
    assert_eq!(cloud.calls("AssumeRoleWithOIDC"), 1);
}

#[tokio::test]
async fn credentials_are_renewed_before_they_end_and_serve_while_that_fails() {
    let token = Token::new("renew", "eyJ.good.token");
    let cloud = Cloud::start(World::default()).await;
    let ahead = Arc::new(AtomicI64::new(0));
    let source = source(&token, &cloud, &ahead);
    let first = source.load().await.unwrap();

    // 50 of 60 minutes later the kubelet's token has gone bad, and then it is renewed.
    ahead.store(50 * 60, Ordering::Relaxed);
    std::fs::write(&token.0, "expired").unwrap();
    let meanwhile = source.load().await.unwrap();
    std::fs::write(&token.0, "eyJ.next.token").unwrap();
    let next = source.load().await.unwrap();

    assert!(meanwhile == first);
    assert!(next != first);
}

#[tokio::test]
async fn a_token_that_sts_refuses_is_an_error_with_its_code() {
    let token = Token::new("bad", "expired");
    let cloud = Cloud::start(World::default()).await;

    let error = source(&token, &cloud, &Arc::default())
        .load()
        .await
        .unwrap_err();

    assert_eq!(error.code(), Some("AuthenticationFail.OIDCToken.Expired"));
}
