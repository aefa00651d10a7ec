//! Launching, adopting and deleting.

use ecs_sim::{StockRule, World};
use futures::future::join_all;
use kerf_cloud::error::{CapacityScope, ErrorClass};
use kerf_cloud::provider::bootstrap::{RenderQuestion, Renderer, UserDataPart};
use kerf_cloud::provider::instance::{CapacityType, DeleteOutcome};
use kerf_cloud::provider::launch::{LaunchOutcome, NotReadyReason};
use kerf_cloud::provider::tags;

use crate::cloud::{Cloud, instance_of, launch, offering, on_demand};

fn sold_out(instance_type: &str, zone: &str) -> StockRule {
    StockRule {
        instance_type: Some(instance_type.to_owned()),
        zone: Some(format!("cn-hangzhou-{zone}")),
        capacity_type: None,
        count: 0,
        not_on_sale: false,
    }
}

#[tokio::test]
async fn a_launch_gives_what_the_first_offering_asks_for_with_our_tags() {
    let cloud = Cloud::start(World::default()).await;
    let request = cloud
        .request("a", &[offering("ecs.g7.xlarge", "i", CapacityType::Spot)])
        .await;

    let (outcome, attempts) = launch(&cloud.provider, &request).await;

    let instance = instance_of(&outcome);
    assert_eq!(instance.instance_type, "ecs.g7.xlarge");
    assert_eq!(instance.zone_id, "cn-hangzhou-i");
    assert_eq!(instance.capacity_type, CapacityType::Spot);
    assert_eq!(
        instance.provider_id(),
        format!("cn-hangzhou.{}", instance.id)
    );
    assert_eq!(instance.node_claim(), Some("a"));
    assert_eq!(instance.launch_group(), Some("group-a"));
    assert!(tags::is_ours(&instance.tags, crate::cloud::CLUSTER));
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].number, 1);
    let listed = cloud.provider.list_ours().await.unwrap();
    assert_eq!(listed.len(), 1);
}

#[tokio::test]
async fn a_process_whose_lease_has_run_out_sends_no_launch_and_says_why() {
    let cloud = Cloud::start(World::default()).await;
    let request = cloud.request("a", &[on_demand("ecs.g7.xlarge", "h")]).await;
    cloud.provider.client().ask_before_making(|| false);

    let (outcome, _) = launch(&cloud.provider, &request).await;

    assert!(
        format!("{outcome:?}").contains("the lease is no longer held"),
        "{outcome:?}"
    );
    assert_eq!((cloud.calls("RunInstances"), cloud.alive()), (0, 0));
}

#[tokio::test]
async fn a_stock_out_moves_on_to_the_next_offering_and_marks_only_the_failed_one() {
    let stock = vec![sold_out("ecs.g7.xlarge", "h")];
    let cloud = Cloud::start(World {
        stock,
        ..World::default()
    })
    .await;
    let offerings = [
        on_demand("ecs.g7.xlarge", "h"),
        on_demand("ecs.g7.xlarge", "i"),
    ];
    let request = cloud.request("a", &offerings).await;

    let (outcome, attempts) = launch(&cloud.provider, &request).await;
    let again = cloud.request("b", &offerings).await;
    let (second, attempts_after) = launch(&cloud.provider, &again).await;

    assert_eq!(instance_of(&outcome).zone_id, "cn-hangzhou-i");
    assert_eq!(
        attempts.iter().map(|it| it.number).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(instance_of(&second).zone_id, "cn-hangzhou-i");
    assert_eq!(
        attempts_after.len(),
        1,
        "the marked offering is not tried again"
    );
    let marks = cloud
        .provider
        .unavailable()
        .snapshot(jiff::Timestamp::now());
    assert_eq!(marks.len(), 1);
}

#[tokio::test]
async fn without_any_stock_every_offering_says_why() {
    let stock = vec![StockRule {
        zone: None,
        ..sold_out("ecs.g7.*", "h")
    }];
    let cloud = Cloud::start(World {
        stock,
        ..World::default()
    })
    .await;
    let offerings = [
        on_demand("ecs.g7.xlarge", "h"),
        on_demand("ecs.g7.large", "i"),
    ];
    let request = cloud.request("a", &offerings).await;

    let (outcome, _) = launch(&cloud.provider, &request).await;

    let LaunchOutcome::InsufficientCapacity {
        offerings: failures,
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(failures.len(), 2);
    let expected = Some(ErrorClass::NoCapacity(CapacityScope::Offering));
    assert!(
        failures.iter().all(|failure| failure.class == expected),
        "{failures:?}"
    );
    assert!(failures[0].message.contains("OperationDenied.NoStock"));
    assert_eq!(cloud.alive(), 0);
}

#[tokio::test]
async fn a_full_vswitch_is_passed_over_and_its_type_is_not_blamed() {
    let mut world = World::default();
    let mut second = world.vswitches[0].clone();
    second.id = "vsw-second".to_owned();
    second.cidr = ecs_sim::Cidr::try_from("10.0.64.0/20".to_owned()).unwrap();
    // Fewer free ones than the first, so that the first is picked first.
    second.available_ips = Some(50);
    world.vswitches.push(second);
    let cloud = Cloud::start(world).await;
    let request = cloud.request("a", &[on_demand("ecs.g7.xlarge", "h")]).await;
    cloud
        .sim
        .change_world(|world| world.vswitches[0].available_ips = Some(0));

    let (outcome, attempts) = launch(&cloud.provider, &request).await;

    assert_eq!(instance_of(&outcome).vswitch_id, "vsw-second");
    assert_eq!(attempts.len(), 2);
}

#[tokio::test]
async fn thirty_launches_at_once_make_thirty_instances_and_share_their_lookups() {
    let cloud = Cloud::start(World::default()).await;
    let mut requests = Vec::new();
    for number in 0..30 {
        let name = format!("n{number}");
        requests.push(
            cloud
                .request(&name, &[on_demand("ecs.g7.large", "h")])
                .await,
        );
    }

    let outcomes = join_all(
        requests
            .iter()
            .map(|request| launch(&cloud.provider, request)),
    )
    .await;

    let mut ids: Vec<_> = outcomes
        .iter()
        .map(|(it, _)| instance_of(it).id.clone())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 30);
    assert_eq!(cloud.alive(), 30);
    assert!(
        cloud.calls("DescribeInstances") <= 15,
        "{}",
        cloud.calls("DescribeInstances")
    );
}

#[tokio::test]
async fn a_crash_after_the_call_leads_to_adoption_and_not_to_a_second_instance() {
    let cloud = Cloud::start(World::default()).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let (first, attempts) = launch(&cloud.provider, &request).await;

    // What a new process finds in the claim: the attempt, but no provider id.
    request.last_attempt = attempts.last().cloned();
    let (second, attempts) = launch(&cloud.restarted(), &request).await;

    let LaunchOutcome::Launched(launched) = &second else {
        panic!("{second:?}")
    };
    assert!(launched.is_adopted);
    assert_eq!(launched.instance.id, instance_of(&first).id);
    assert_eq!(attempts, []);
    assert_eq!(cloud.alive(), 1);
}

#[tokio::test]
async fn a_crash_before_the_instance_shows_is_settled_by_token_and_tags() {
    let mut world = World::default();
    world.timing.visible_after_ms = 2000;
    let cloud = Cloud::start(world).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let recorded = std::sync::Mutex::new(None);
    let record = |attempt| {
        *recorded.lock().unwrap() = Some(attempt);
        async { Ok(()) }
    };
    // The process dies while it waits for the instance to show.
    let dying = cloud.provider.launch(&request, record);
    let until_made = async {
        while cloud.alive() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = dying => panic!("too fast: {outcome:?}"),
        () = until_made => {}
    }

    request.last_attempt = recorded.into_inner().unwrap();
    // The new process has another join token, so the server refuses the old client token instead of replaying it.
    let outcome = cloud
        .launch_until_decided(&cloud.restarted(), &request)
        .await;

    instance_of(&outcome);
    assert_eq!(cloud.alive(), 1);
}

#[tokio::test]
async fn nothing_is_sent_when_the_attempt_cannot_be_stored() {
    let cloud = Cloud::start(World::default()).await;
    let request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;

    let record = |_| async { Err("the API server is away".to_owned()) };
    let outcome = cloud.provider.launch(&request, record).await;

    assert!(
        matches!(outcome, LaunchOutcome::Retry { .. }),
        "{outcome:?}"
    );
    assert_eq!(cloud.calls("RunInstances"), 0);
}

#[tokio::test]
async fn surplus_instances_of_a_group_are_deleted() {
    let cloud = Cloud::start(World::default()).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let (_, attempts) = launch(&cloud.provider, &request).await;
    // A second machine of the same group, as a lost token might leave one.
    let twin = kerf_cloud::provider::launch::Attempt {
        number: 7,
        ..attempts[0].clone()
    };
    let (other, _) = launch(&cloud.provider, &request).await;
    tags_of(&cloud, &instance_of(&other).id, "group-a").await;

    request.last_attempt = Some(twin);
    let (outcome, _) = launch(&cloud.restarted(), &request).await;

    instance_of(&outcome);
    assert_eq!(cloud.alive_after_deletes().await, 1);
}

async fn tags_of(cloud: &Cloud, id: &str, group: &str) {
    let pair = (tags::LAUNCH_GROUP.to_owned(), group.to_owned());
    cloud.provider.tag(id, &[pair]).await.unwrap();
}

#[tokio::test]
async fn deleting_tells_gone_from_accepted_and_one_bad_id_spoils_nothing() {
    let cloud = Cloud::start(World::default()).await;
    let request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let (outcome, _) = launch(&cloud.provider, &request).await;
    let id = instance_of(&outcome).id.clone();
    cloud.until_running(&id).await;

    let ids = [
        id.clone(),
        "i-bp1unknown".to_owned(),
        String::new(),
        id.clone(),
    ];
    let outcomes = cloud.provider.delete(&ids).await;

    let gone = ("i-bp1unknown".to_owned(), DeleteOutcome::Gone);
    assert_eq!(outcomes, [(id, DeleteOutcome::Accepted), gone]);
    assert_eq!(cloud.alive_after_deletes().await, 0);
}

async fn running(cloud: &Cloud, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let offering = [on_demand("ecs.g7.large", "h")];
        let request = cloud.request(&format!("n{number}"), &offering).await;
        let (outcome, _) = launch(&cloud.provider, &request).await;
        ids.push(instance_of(&outcome).id.clone());
    }
    for id in &ids {
        cloud.until_running(id).await;
    }
    ids
}

#[tokio::test]
async fn deletions_at_the_same_moment_share_a_call() {
    let cloud = Cloud::start(World::default()).await;
    let ids = running(&cloud, 10).await;

    // As reconcilers do: each about its own, one of them twice.
    let asked = ids.iter().chain(&ids[..1]).map(std::slice::from_ref);
    let told = join_all(asked.map(|id| cloud.provider.delete(id))).await;

    let told: Vec<_> = told.into_iter().flatten().collect();
    assert_eq!(told.len(), 11);
    assert!(told.iter().all(|(_, it)| *it == DeleteOutcome::Accepted));
    assert_eq!(told[10].0, ids[0]);
    assert_eq!(cloud.calls("DeleteInstances"), 1);
    assert_eq!(cloud.calls("DeleteInstance"), 0);
    assert_eq!(cloud.alive_after_deletes().await, 0);
}

#[tokio::test]
async fn instances_that_went_together_are_gone_at_once_and_not_with_the_next_minute() {
    let cloud = Cloud::start(World::default()).await;
    let ids = running(&cloud, 3).await;
    cloud.provider.delete(&ids).await;
    assert_eq!(cloud.alive_after_deletes().await, 0);

    let told = cloud.provider.delete(&ids).await;

    assert!(told.iter().all(|(_, it)| *it == DeleteOutcome::Gone));
    assert_eq!(cloud.calls("DeleteInstances"), 1, "the second was a look");
    assert_eq!(cloud.calls("DeleteInstance"), 3, "what shows no more");
}

#[tokio::test]
async fn an_instance_that_is_still_being_made_is_deleted_later() {
    let mut world = World::default();
    world.timing.starting_after_ms = 60_000;
    world.timing.running_after_ms = 60_000;
    let cloud = Cloud::start(world).await;
    let request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let (outcome, _) = launch(&cloud.provider, &request).await;

    let outcomes = cloud
        .provider
        .delete(&[instance_of(&outcome).id.clone()])
        .await;

    assert_eq!(outcomes[0].1, DeleteOutcome::Requeue);
}

#[tokio::test]
async fn an_instance_that_ended_long_ago_is_not_given_back_by_its_token() {
    let cloud = Cloud::start(World::default()).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.large", "h")]).await;
    let (first, attempts) = launch(&cloud.provider, &request).await;
    let id = instance_of(&first).id.clone();
    cloud.until_running(&id).await;
    cloud.provider.delete(std::slice::from_ref(&id)).await;
    assert_eq!(cloud.alive_after_deletes().await, 0);

    let mut last = attempts[0].clone();
    last.at -= jiff::SignedDuration::from_mins(10);
    request.last_attempt = Some(last);
    let (second, attempts) = launch(&cloud.provider, &request).await;

    assert_ne!(instance_of(&second).id, id);
    assert_eq!(attempts[0].number, 2);
    assert_eq!(cloud.alive(), 1);
}

/// A renderer that does this to the parts.
fn renderer(change: fn(RenderQuestion) -> Result<Vec<UserDataPart>, String>) -> Option<Renderer> {
    Some(Renderer::new(move |question| {
        Box::pin(std::future::ready(change(question)))
    }))
}

fn marker() -> UserDataPart {
    UserDataPart {
        content_type: "text/x-shellscript".to_owned(),
        name: Some("marker.sh".to_owned()),
        content: "#!/bin/bash\necho by a policy >/etc/marker\n".to_owned(),
    }
}

#[tokio::test]
async fn what_a_policy_adds_runs_on_the_machine_before_it_joins() {
    let cloud = Cloud::start(World::default()).await;
    let mut request = cloud.request("a", &[on_demand("ecs.g7.xlarge", "h")]).await;
    request.renderer = renderer(|question| {
        assert_eq!(question.instance_type, "ecs.g7.xlarge");
        assert_eq!(question.parts, question.host_owned);
        assert!(question.bytes_max > 20_000 && question.bytes_max < 32_768);
        Ok([vec![marker()], question.parts].concat())
    });

    let (outcome, _) = launch(&cloud.provider, &request).await;

    let id = &instance_of(&outcome).id;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while cloud.sim.read_file(id, "/etc/marker").is_none() {
        let log = cloud.sim.boot_log(id);
        assert!(tokio::time::Instant::now() < deadline, "no marker: {log:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_policy_that_drops_or_fails_the_join_launches_nothing() {
    let cloud = Cloud::start(World::default()).await;
    for (change, expected) in [
        (
            (|_| Ok(vec![marker()])) as fn(RenderQuestion) -> Result<Vec<UserDataPart>, String>,
            "0 times",
        ),
        (
            |question| Ok([question.parts.clone(), question.parts].concat()),
            "2 times",
        ),
        (
            |_| Err("policy tuning crashed".to_owned()),
            "tuning crashed",
        ),
    ] {
        let mut request = cloud.request("a", &[on_demand("ecs.g7.xlarge", "h")]).await;
        request.renderer = renderer(change);

        let (outcome, attempts) = launch(&cloud.provider, &request).await;

        let LaunchOutcome::NotReady { reason, message } = outcome else {
            panic!("launched: {outcome:?}");
        };
        assert_eq!(reason, NotReadyReason::Policy);
        assert!(message.contains(expected), "{message}");
        assert!(attempts.is_empty());
    }
    assert_eq!(cloud.alive(), 0);
}
