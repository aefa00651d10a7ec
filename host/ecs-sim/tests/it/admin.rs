//! The admin API, as a test in another process uses it.

use ecs_sim::EcsSim;
use serde_json::Value;

use crate::boots::boot;
use crate::client::{call, eventually, exchange, fast_world, ids, launch, start};

async fn admin(
    sim: &EcsSim,
    method: &'static str,
    target: &str,
    body: &'static str,
) -> (u16, String) {
    let host = sim.url().trim_start_matches("http://").to_owned();
    let target = target.to_owned();
    let send = move || exchange(&host, method, &target, &[("host", host.clone())], body).unwrap();
    let answer = tokio::task::spawn_blocking(send).await.unwrap();
    (answer.status, answer.text)
}

async fn state(sim: &EcsSim) -> Value {
    serde_json::from_str(&admin(sim, "GET", "/_sim/state", "").await.1).unwrap()
}

#[tokio::test]
async fn faults_and_stock_are_set_and_the_state_shows_them() {
    let sim = start(fast_world()).await;
    let faults = r#"[{"action": "RunInstances", "effect": {"kind": "throttle", "status": 400, "code": "Throttling", "retryAfterMs": 5}}]"#;
    let stock = r#"[{"instanceType": "ecs.g7.xlarge", "capacityType": "on-demand", "count": 1}]"#;

    assert_eq!(admin(&sim, "POST", "/_sim/faults", faults).await.0, 200);
    assert_eq!(admin(&sim, "PUT", "/_sim/stock", stock).await.0, 200);

    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "400 Throttling"
    );
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "200 OK"
    );
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "403 OperationDenied.NoStock"
    );
    let state = state(&sim).await;
    assert_eq!(state["instances"][0]["instanceType"], "ecs.g7.xlarge");
    assert_eq!(state["pricePerHour"], 1.0465);
    assert_eq!(state["calls"]["RunInstances"]["total"], 3);
    assert_eq!(state["stock"][0]["count"], 0);
}

#[tokio::test]
async fn a_malformed_fault_is_refused_with_the_reason() {
    let sim = start(fast_world()).await;

    let (status, text) = admin(
        &sim,
        "POST",
        "/_sim/faults",
        r#"{"action": "RunInstances", "effect": {"kind": "explode"}}"#,
    )
    .await;

    assert_eq!(status, 400);
    assert!(text.contains("explode"), "{text}");
}

#[tokio::test]
async fn a_held_reply_is_listed_and_released() {
    let sim = start(fast_world()).await;
    admin(
        &sim,
        "POST",
        "/_sim/faults",
        r#"{"action": "RunInstances", "after": true, "effect": {"kind": "hold"}}"#,
    )
    .await;
    let params = launch(&[]);

    let (answer, ()) = tokio::join!(call(&sim, "RunInstances", &params), async {
        eventually("the hold", async || {
            (admin(&sim, "GET", "/_sim/held", "").await.1 == r#"["RunInstances"]"#).then_some(())
        })
        .await;
        assert_eq!(
            admin(&sim, "POST", "/_sim/release?action=RunInstances", "")
                .await
                .1,
            r#"{"released":1}"#
        );
    });

    assert_eq!(ids(&answer).len(), 1);
}

#[tokio::test]
async fn boot_logs_and_files_can_be_read() {
    let sim = start(fast_world()).await;
    let instance = boot(&sim, "#!/bin/bash\necho from the script\necho written >/etc/policy\nln -s /etc/shadow /etc/link\n").await;
    let folder = format!("/_sim/instances/{}", instance.id);

    let (_, log) = admin(&sim, "GET", &format!("{folder}/boot-log"), "").await;

    assert!(log.contains("from the script"), "{log}");
    assert_eq!(
        admin(&sim, "GET", &format!("{folder}/file?path=/etc/policy"), "").await,
        (200, "written\n".to_owned())
    );
    assert_eq!(
        admin(&sim, "GET", &format!("{folder}/file?path=/etc/none"), "")
            .await
            .0,
        404
    );
    assert_eq!(
        admin(&sim, "GET", &format!("{folder}/file?path=/etc/link"), "")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn an_interrupted_machine_is_locked_first_and_gone_later() {
    let sim = start(fast_world()).await;
    let id = ids(&call(
        &sim,
        "RunInstances",
        &launch(&[("SpotStrategy", "SpotAsPriceGo")]),
    )
    .await)
    .remove(0);

    admin(
        &sim,
        "POST",
        &format!("/_sim/instances/{id}/interrupt?after-ms=300"),
        "",
    )
    .await;

    let locked = call(&sim, "DescribeInstances", &[("LockReason", "Recycling")])
        .await
        .json();
    assert_eq!(
        locked["Instances"]["Instance"][0]["OperationLocks"]["LockReason"][0]["LockReason"],
        "Recycling"
    );
    eventually("its end", async || {
        (call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"] == 0).then_some(())
    })
    .await;
    assert_eq!(
        admin(&sim, "POST", "/_sim/instances/i-none/interrupt", "")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_planted_machine_runs_with_its_tags_and_a_strange_one_is_refused() {
    let sim = start(fast_world()).await;
    let planted = r#"{"instanceType": "ecs.g7.xlarge", "zone": "cn-hangzhou-h", "imageId": "m-1", "tags": {"a": "b"}}"#;

    assert_eq!(admin(&sim, "POST", "/_sim/instances", planted).await.0, 200);

    let state = state(&sim).await;
    let instance = &state["instances"][0];
    assert_eq!(instance["status"], "Running");
    assert_eq!(instance["tags"]["a"], "b");
    let strange = r#"{"instanceType": "ecs.none", "zone": "cn-hangzhou-h", "imageId": "m-1"}"#;
    let (status, text) = admin(&sim, "POST", "/_sim/instances", strange).await;
    assert_eq!(status, 400);
    assert!(text.contains("ecs.none"), "{text}");
}
