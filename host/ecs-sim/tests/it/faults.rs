//! Scripted trouble.

use ecs_sim::{Effect, Fault};

use crate::client::{call, eventually, fast_world, ids, launch, start, try_call};

fn fault(effect: Effect) -> Fault {
    Fault {
        action: "RunInstances".to_owned(),
        when: std::collections::BTreeMap::new(),
        skip: 0,
        times: 1,
        after: false,
        effect,
    }
}

#[tokio::test]
async fn a_scripted_error_comes_as_often_as_written() {
    let sim = start(fast_world()).await;
    let effect = Effect::Error {
        status: 403,
        code: "QuotaExceed.ElasticQuota".to_owned(),
    };
    sim.add_fault(Fault {
        times: 2,
        skip: 1,
        ..fault(effect)
    });

    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(call(&sim, "RunInstances", &launch(&[])).await.code());
    }

    assert_eq!(
        codes,
        [
            "200 OK",
            "403 QuotaExceed.ElasticQuota",
            "403 QuotaExceed.ElasticQuota",
            "200 OK"
        ]
    );
    assert_eq!(sim.calls()["RunInstances"].total, 4);
    assert_eq!(sim.calls()["RunInstances"].refused, 2);
}

#[tokio::test]
async fn a_fault_can_ask_for_a_parameter() {
    let sim = start(fast_world()).await;
    let when = [("InstanceType".to_owned(), "ecs.g7.large".to_owned())].into();
    sim.add_fault(Fault {
        when,
        ..fault(Effect::Html502)
    });

    assert_eq!(call(&sim, "RunInstances", &launch(&[])).await.status, 200);
    let hit = call(
        &sim,
        "RunInstances",
        &launch(&[("InstanceType", "ecs.g7.large")]),
    )
    .await;
    assert_eq!(hit.status, 502);
    assert!(hit.text.starts_with("<html>"));
}

#[tokio::test]
async fn a_cut_after_the_side_effect_leaves_a_launch_that_nobody_heard_of() {
    let sim = start(fast_world()).await;
    sim.add_fault(Fault {
        after: true,
        ..fault(Effect::Cut)
    });
    let params = launch(&[("ClientToken", "t-1")]);

    assert!(try_call(&sim, "RunInstances", &params).await.is_none());

    assert_eq!(ids(&call(&sim, "RunInstances", &params).await).len(), 1);
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        1
    );
}

#[tokio::test]
async fn throttling_says_when_to_come_back_if_the_script_does() {
    let sim = start(fast_world()).await;
    let throttle = |retry_after_ms| Effect::Throttle {
        status: 429,
        code: "Throttling.User".to_owned(),
        retry_after_ms,
    };
    sim.add_fault(fault(throttle(Some(1500))));
    sim.add_fault(fault(throttle(None)));

    let with = call(&sim, "RunInstances", &launch(&[])).await;
    let without = call(&sim, "RunInstances", &launch(&[])).await;

    assert_eq!(with.headers["x-acs-retry-after"], "1500");
    assert_eq!(without.code(), "429 Throttling.User");
    assert!(!without.headers.contains_key("x-acs-retry-after"));
}

#[tokio::test]
async fn a_rate_limit_throttles_what_goes_beyond_it() {
    let mut world = fast_world();
    world.rate_limits.insert("DescribeInstances".to_owned(), 2);
    let sim = start(world).await;

    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(call(&sim, "DescribeInstances", &[]).await.code());
    }

    // Six calls lie in two minutes of the clock at most, which let four of them pass.
    assert!(
        codes
            .iter()
            .filter(|code| *code == "400 Throttling.Api")
            .count()
            >= 2,
        "{codes:?}"
    );
}

#[tokio::test]
async fn a_held_reply_waits_until_it_is_released() {
    let sim = start(fast_world()).await;
    sim.add_fault(Fault {
        after: true,
        ..fault(Effect::Hold)
    });
    let params = launch(&[]);

    let (answer, ()) = tokio::join!(call(&sim, "RunInstances", &params), async {
        eventually("the hold", async || {
            (sim.held() == ["RunInstances"]).then_some(())
        })
        .await;
        assert_eq!(
            call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
            1
        );
        assert_eq!(sim.release_held(None), 1);
    });

    assert_eq!(ids(&answer).len(), 1);
}

#[tokio::test]
async fn a_slow_body_is_still_whole() {
    let sim = start(fast_world()).await;
    sim.add_fault(fault(Effect::SlowBody { ms: 100 }));

    assert_eq!(
        ids(&call(&sim, "RunInstances", &launch(&[])).await).len(),
        1
    );
}
