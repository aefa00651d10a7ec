//! Calls that hang, break, lie or succeed without telling.

use std::time::Duration;

use ecs_sim::{Effect, Fault, World};
use kerf_cloud::error::{CloudError, ErrorClass};
use kerf_cloud::provider::launch::{LaunchOutcome, NotReadyReason};
use kerf_cloud::rpc::ClientConfig;

use crate::cloud::{Cloud, instance_of, launch, on_demand};

fn fault(action: &str, times: u32, after: bool, effect: Effect) -> Fault {
    Fault {
        action: action.to_owned(),
        when: [].into(),
        skip: 0,
        times,
        after,
        effect,
    }
}

fn refusal(status: u16, code: &str) -> Effect {
    Effect::Error {
        status,
        code: code.to_owned(),
    }
}

fn impatient(config: &mut ClientConfig) {
    config.read_timeout = Duration::from_millis(400);
    config.deadline = Duration::from_secs(8);
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_effect_makes_one_instance() {
    for effect in [Effect::Cut, Effect::Html502, Effect::Hang] {
        let cloud = Cloud::start_with(World::default(), impatient).await;
        let request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
        cloud
            .sim
            .add_fault(fault("RunInstances", 2, true, effect.clone()));

        let (outcome, attempts) = launch(&cloud.provider, &request).await;

        instance_of(&outcome);
        assert_eq!(cloud.alive(), 1, "{effect:?}");
        assert_eq!(attempts.len(), 1, "{effect:?}");
        assert_eq!(cloud.calls("RunInstances"), 3, "{effect:?}");
    }
}

#[tokio::test]
async fn answers_that_stay_away_leave_a_retry_that_finds_the_instance() {
    let cloud = Cloud::start_with(World::default(), |config| {
        impatient(config);
        config.deadline = Duration::from_secs(1);
    })
    .await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    cloud
        .sim
        .add_fault(fault("RunInstances", 100, true, Effect::Cut));

    let (outcome, attempts) = launch(&cloud.provider, &request).await;
    cloud.sim.clear_faults();
    request.last_attempt = attempts.last().cloned();
    let (second, _) = launch(&cloud.provider, &request).await;

    assert!(
        matches!(outcome, LaunchOutcome::Retry { .. }),
        "{outcome:?}"
    );
    instance_of(&second);
    assert_eq!(cloud.alive(), 1);
}

/// Another offering would be a second machine for the same claim.
#[tokio::test]
async fn no_stock_after_a_lost_answer_is_no_reason_for_another_offering() {
    let mut world = World::default();
    world.timing.visible_after_ms = 3000;
    let cloud = Cloud::start_with(world, impatient).await;
    let offerings = [
        on_demand("ecs.g7.large", "h"),
        on_demand("ecs.g7.xlarge", "h"),
    ];
    let mut request = cloud.request("a", &offerings).await;
    let no_stock = || {
        fault(
            "RunInstances",
            1,
            false,
            refusal(403, "OperationDenied.NoStock"),
        )
    };
    cloud
        .sim
        .add_fault(fault("RunInstances", 1, true, Effect::Cut));
    cloud.sim.add_fault(no_stock());

    let (first, attempts) = launch(&cloud.provider, &request).await;
    assert!(matches!(first, LaunchOutcome::Retry { .. }), "{first:?}");
    assert_eq!(attempts.len(), 1);

    // The same by a process that starts anew, while the machine does not show yet.
    cloud.sim.add_fault(no_stock());
    request.last_attempt = attempts.last().cloned();
    let anew = cloud.restarted();
    let (second, attempts) = launch(&anew, &request).await;
    assert!(matches!(second, LaunchOutcome::Retry { .. }), "{second:?}");
    assert_eq!(attempts, []);

    let outcome = cloud.launch_until_decided(&anew, &request).await;
    instance_of(&outcome);
    assert_eq!(cloud.alive(), 1);
}

#[tokio::test]
async fn throttling_is_waited_out_as_the_server_asks() {
    let cloud = Cloud::start(World::default()).await;
    let throttle = Effect::Throttle {
        status: 400,
        code: "Throttling.User".to_owned(),
        retry_after_ms: Some(300),
    };
    cloud
        .sim
        .add_fault(fault("DescribeInstances", 2, false, throttle));
    let started = tokio::time::Instant::now();

    let listed = cloud.provider.list_ours().await;

    assert_eq!(listed.unwrap().len(), 0);
    assert!(started.elapsed() >= Duration::from_millis(600));
    let stats = &cloud.provider.client().stats()["DescribeInstances"];
    assert_eq!(stats.attempts, 3);
    assert_eq!(stats.errors["Throttled"], 2);
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_typed_error_within_the_deadline() {
    let cloud = Cloud::start_with(World::default(), |config| {
        config.read_timeout = Duration::from_millis(100);
        config.deadline = Duration::from_millis(500);
    })
    .await;
    cloud
        .sim
        .add_fault(fault("DescribeInstances", 100, false, Effect::Hang));
    let started = tokio::time::Instant::now();

    let error = cloud.provider.list_ours().await.unwrap_err();

    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(matches!(error, CloudError::Deadline { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
}

#[tokio::test]
async fn a_body_that_trickles_in_too_slowly_is_cut_off() {
    let cloud = Cloud::start_with(World::default(), impatient).await;
    cloud.sim.add_fault(fault(
        "DescribeInstances",
        1,
        false,
        Effect::SlowBody { ms: 5000 },
    ));

    let listed = cloud.provider.list_ours().await;

    assert_eq!(listed.unwrap().len(), 0, "the second attempt is answered");
}

#[tokio::test]
async fn each_class_of_refusal_ends_as_it_should() {
    use NotReadyReason::{Billing, ClassResourceMissing, Unauthorized};
    let check = async |status, code: &str, expected: NotReadyReason| {
        let cloud = Cloud::start(World::default()).await;
        let offerings = [
            on_demand("ecs.g7.large", "h"),
            on_demand("ecs.g7.large", "i"),
        ];
        let request = cloud.request("a", &offerings).await;
        cloud
            .sim
            .add_fault(fault("RunInstances", 1, false, refusal(status, code)));

        let (outcome, attempts) = launch(&cloud.provider, &request).await;

        let LaunchOutcome::NotReady { reason, message } = outcome else {
            panic!("{code}: {outcome:?}");
        };
        assert_eq!(reason, expected, "{code}");
        assert!(message.contains(code), "{message}");
        assert_eq!(
            attempts.len(),
            1,
            "{code}: the other offering would fare no better"
        );
    };

    check(403, "Forbidden.RAM", Unauthorized).await;
    check(403, "InvalidAccountStatus.NotEnoughBalance", Billing).await;
    check(404, "InvalidImageId.NotFound", ClassResourceMissing).await;
    check(404, "InvalidSecurityGroupId.NotFound", ClassResourceMissing).await;
}

#[tokio::test]
async fn an_unknown_refusal_tries_the_next_offering() {
    let cloud = Cloud::start(World::default()).await;
    let offerings = [
        on_demand("ecs.g7.large", "h"),
        on_demand("ecs.g7.large", "i"),
    ];
    let request = cloud.request("a", &offerings).await;
    cloud.sim.add_fault(fault(
        "RunInstances",
        1,
        false,
        refusal(400, "Something.New"),
    ));

    let (outcome, _) = launch(&cloud.provider, &request).await;

    assert_eq!(instance_of(&outcome).zone_id, "cn-hangzhou-i");
}

#[tokio::test]
async fn a_disk_category_that_does_not_exist_there_is_replaced_by_the_next() {
    let cloud = Cloud::start(World::default()).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let mut class = (*request.class).clone();
    class.spec.system_disk.categories = vec!["cloud_auto".to_owned(), "cloud_essd".to_owned()];
    request.class = class.into();
    let code = "InvalidSystemDiskCategory.ValueNotSupported";
    cloud
        .sim
        .add_fault(fault("RunInstances", 1, false, refusal(400, code)));

    let (outcome, attempts) = launch(&cloud.provider, &request).await;

    instance_of(&outcome);
    assert_eq!(attempts.len(), 2);
    let disks: Vec<_> = cloud
        .sim
        .instances()
        .iter()
        .map(|it| it.system_disk_category.clone())
        .collect();
    assert_eq!(disks, ["cloud_essd"]);
}

#[tokio::test]
async fn a_missing_permission_for_stock_and_prices_degrades_and_stops_nothing() {
    let cloud = Cloud::start(World::default()).await;
    let class = cloud.class().await;
    for action in ["DescribeAvailableResource", "DescribeSpotAdvice"] {
        cloud
            .sim
            .add_fault(fault(action, 100, false, refusal(403, "Forbidden.RAM")));
    }

    let types = cloud.provider.instance_types(&class).await.unwrap();

    // Types that can be no node of the class (their architecture, their addresses) say so whatever the stock is.
    let usable = types
        .iter()
        .filter(|it| it.offerings.iter().all(|offering| offering.is_available()));
    assert!(usable.count() > 300);
    for it in types.iter() {
        let complaints = it
            .offerings
            .iter()
            .filter_map(|it| it.unavailable.as_deref());
        for complaint in complaints {
            let is_of_the_type =
                complaint.contains("no image for") || complaint.contains("pod addresses");
            assert!(is_of_the_type, "{}: {complaint}", it.name);
        }
    }
}

#[tokio::test]
async fn stock_and_prices_that_cannot_be_read_do_not_hold_up_a_class() {
    let cloud = Cloud::start_with(World::default(), |config| {
        // The pauses of the product: eight attempts would take half a minute.
        config.backoff_first = Duration::from_millis(250);
        config.backoff_max = Duration::from_secs(20);
    })
    .await;
    let class = cloud.class().await;
    for action in ["DescribeAvailableResource", "DescribeSpotAdvice"] {
        cloud
            .sim
            .add_fault(fault(action, 100, false, Effect::Html502));
    }
    let started = tokio::time::Instant::now();

    let types = cloud.provider.instance_types(&class).await.unwrap();
    cloud.provider.instance_types(&class).await.unwrap();

    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(!types.is_empty());
    assert_eq!(
        cloud.calls("DescribeSpotAdvice"),
        2,
        "one more attempt, then an estimate"
    );
    assert_eq!(cloud.calls("DescribeAvailableResource"), 4, "two markets");
}
