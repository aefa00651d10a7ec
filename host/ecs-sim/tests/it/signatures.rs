//! Who gets in.

use crate::client::{Request, fast_world, start};

async fn outcome(change: impl FnOnce(&mut Request<'_>) + Send + 'static) -> (String, String) {
    let sim = start(fast_world()).await;
    let url = sim.url().to_owned();
    let send = move || {
        let params = [
            ("RegionId", "cn-hangzhou"),
            ("InstanceIds", "[\"a+b*c~d e\"]"),
        ];
        let mut request = Request::ecs("DescribeInstances", &params);
        change(&mut request);
        let answer = request.send(&url).unwrap();
        (
            answer.code(),
            answer.json()["Message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    tokio::task::spawn_blocking(send).await.unwrap()
}

#[tokio::test]
async fn a_good_signature_is_let_in() {
    assert_eq!(outcome(|_| ()).await.0, "200 OK");
}

#[tokio::test]
async fn a_wrong_secret_is_told_what_should_have_been_signed() {
    let (code, message) = outcome(|request| request.secret = "wrong").await;

    assert_eq!(code, "400 SignatureDoesNotMatch");
    assert!(
        message.contains("server string to sign is:ACS3-HMAC-SHA256\n"),
        "{message}"
    );
    assert!(
        message.contains("InstanceIds=%5B%22a%2Bb%2Ac~d%20e%22%5D"),
        "{message}"
    );
}

#[tokio::test]
async fn a_clock_that_is_off_is_refused() {
    assert_eq!(
        outcome(|request| request.date = Some("2020-01-01T00:00:00Z"))
            .await
            .0,
        "400 IllegalTimestamp"
    );
}

#[tokio::test]
async fn a_nonce_works_once() {
    let sim = start(fast_world()).await;
    let url = sim.url().to_owned();
    let send = move || {
        let params = [("RegionId", "cn-hangzhou")];
        let request = Request {
            nonce: Some("once"),
            ..Request::ecs("DescribeInstances", &params)
        };
        [
            request.send(&url).unwrap().code(),
            request.send(&url).unwrap().code(),
        ]
    };

    let codes = tokio::task::spawn_blocking(send).await.unwrap();

    assert_eq!(codes, ["200 OK", "400 SignatureNonceUsed"]);
}

#[tokio::test]
async fn an_action_of_another_product_is_unknown() {
    assert_eq!(
        outcome(|request| request.version = "2016-04-28").await.0,
        "404 InvalidAction.NotFound"
    );
}
