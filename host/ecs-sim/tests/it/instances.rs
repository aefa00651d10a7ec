//! Reading and deleting instances, and the other Describe actions.

use std::collections::BTreeSet;

use ecs_sim::{Timing, World};

use crate::client::{call, eventually, fast_world, ids, launch, start};

fn slow(timing: Timing) -> World {
    World {
        timing,
        ..fast_world()
    }
}

#[tokio::test]
async fn a_new_instance_is_not_seen_at_once() {
    let sim = start(slow(Timing {
        visible_after_ms: 60_000,
        ..fast_world().timing
    }))
    .await;

    call(&sim, "RunInstances", &launch(&[])).await;

    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        0
    );
}

#[tokio::test]
async fn a_pending_instance_cannot_be_deleted() {
    let sim = start(slow(Timing {
        starting_after_ms: 60_000,
        running_after_ms: 60_000,
        ..fast_world().timing
    }))
    .await;
    let launched = ids(&call(&sim, "RunInstances", &launch(&[])).await);

    let answer = call(
        &sim,
        "DeleteInstances",
        &[("InstanceId.1", launched[0].as_str()), ("Force", "true")],
    )
    .await;

    assert_eq!(answer.code(), "403 IncorrectInstanceStatus.Initializing");
}

#[tokio::test]
async fn a_running_instance_is_deleted_with_force_only() {
    let sim = start(fast_world()).await;
    let launched = ids(&call(&sim, "RunInstances", &launch(&[])).await);
    let id = ("InstanceId.1", launched[0].as_str());

    assert_eq!(
        call(&sim, "DeleteInstances", &[id]).await.code(),
        "403 IncorrectInstanceStatus"
    );
    assert_eq!(
        call(&sim, "DeleteInstances", &[id, ("Force", "True")])
            .await
            .code(),
        "200 OK"
    );
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        0
    );
    assert_eq!(
        call(&sim, "DeleteInstances", &[id, ("Force", "true")])
            .await
            .code(),
        "404 InvalidInstanceId.NotFound"
    );
}

#[tokio::test]
async fn one_unknown_id_keeps_the_others_from_being_deleted() {
    let sim = start(fast_world()).await;
    let launched = ids(&call(&sim, "RunInstances", &launch(&[])).await);

    let params = [
        ("InstanceId.1", launched[0].as_str()),
        ("InstanceId.2", "i-none"),
        ("Force", "true"),
    ];

    assert_eq!(
        call(&sim, "DeleteInstances", &params).await.code(),
        "404 InvalidInstanceId.NotFound"
    );
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        1
    );
}

#[tokio::test]
async fn a_deleted_instance_is_stopping_for_a_while() {
    let sim = start(slow(Timing {
        released_after_ms: 300,
        ..fast_world().timing
    }))
    .await;
    let launched = ids(&call(&sim, "RunInstances", &launch(&[])).await);
    call(
        &sim,
        "DeleteInstances",
        &[("InstanceId.1", launched[0].as_str()), ("Force", "true")],
    )
    .await;

    let described = call(&sim, "DescribeInstances", &[]).await.json();

    assert_eq!(described["Instances"]["Instance"][0]["Status"], "Stopping");
    eventually("release", async || {
        (call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn pages_by_token_show_every_instance_once() {
    let sim = start(World {
        page_size_max: Some(3),
        ..fast_world()
    })
    .await;
    let launched: BTreeSet<_> =
        ids(&call(&sim, "RunInstances", &launch(&[("Amount", "10")])).await)
            .into_iter()
            .collect();

    let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = call(
            &sim,
            "DescribeInstances",
            &[("MaxResults", "100"), ("NextToken", &token)],
        )
        .await
        .json();
        let instances = page["Instances"]["Instance"].as_array().unwrap();
        seen.extend(
            instances
                .iter()
                .map(|instance| instance["InstanceId"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        token = page["NextToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }

    assert_eq!((pages, seen.len()), (4, 10));
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), launched);
}

#[tokio::test]
async fn pages_by_number_end_with_an_empty_one() {
    let sim = start(fast_world()).await;

    let first = call(
        &sim,
        "DescribeVSwitches",
        &[("PageNumber", "1"), ("PageSize", "3")],
    )
    .await
    .json();
    let second = call(
        &sim,
        "DescribeVSwitches",
        &[("PageNumber", "2"), ("PageSize", "3")],
    )
    .await
    .json();
    let third = call(
        &sim,
        "DescribeVSwitches",
        &[("PageNumber", "3"), ("PageSize", "3")],
    )
    .await
    .json();

    let count = |page: &serde_json::Value| page["VSwitches"]["VSwitch"].as_array().unwrap().len();
    assert_eq!([count(&first), count(&second), count(&third)], [3, 1, 0]);
    assert_eq!(third["TotalCount"], 4);
}

#[tokio::test]
async fn instances_are_found_by_id_and_by_tag() {
    let sim = start(fast_world()).await;
    let tagged = launch(&[("Tag.1.Key", "claim"), ("Tag.1.Value", "a b+c*默认")]);
    let first = ids(&call(&sim, "RunInstances", &tagged).await);
    let second = ids(&call(&sim, "RunInstances", &launch(&[])).await);

    let by_tag = call(
        &sim,
        "DescribeInstances",
        &[("Tag.1.Key", "claim"), ("Tag.1.Value", "a b+c*默认")],
    )
    .await
    .json();
    let by_id = call(
        &sim,
        "DescribeInstances",
        &[("InstanceIds", &format!("[\"{}\",\"i-none\"]", second[0]))],
    )
    .await
    .json();

    assert_eq!(by_tag["Instances"]["Instance"][0]["InstanceId"], first[0]);
    assert_eq!(
        by_tag["Instances"]["Instance"][0]["Tags"]["Tag"][0]["TagKey"],
        "claim"
    );
    assert_eq!(by_id["TotalCount"], 1);
    assert_eq!(by_id["Instances"]["Instance"][0]["InstanceId"], second[0]);
}

#[tokio::test]
async fn tags_can_be_added_later() {
    let sim = start(fast_world()).await;
    let id = ids(&call(&sim, "RunInstances", &launch(&[])).await).remove(0);

    let params = [
        ("ResourceType", "instance"),
        ("ResourceId.1", id.as_str()),
        ("Tag.1.Key", "k"),
        ("Tag.1.Value", "v"),
    ];
    assert_eq!(call(&sim, "TagResources", &params).await.code(), "200 OK");

    let listed = call(
        &sim,
        "ListTagResources",
        &[("ResourceType", "instance"), ("ResourceId.1", id.as_str())],
    )
    .await
    .json();
    assert_eq!(listed["TagResources"]["TagResource"][0]["TagValue"], "v");
}

#[tokio::test]
async fn types_come_in_pages() {
    let sim = start(fast_world()).await;

    let first = call(&sim, "DescribeInstanceTypes", &[("MaxResults", "900")])
        .await
        .json();
    let token = first["NextToken"].as_str().unwrap().to_owned();
    let second = call(
        &sim,
        "DescribeInstanceTypes",
        &[("MaxResults", "900"), ("NextToken", &token)],
    )
    .await
    .json();

    let count = |page: &serde_json::Value| {
        page["InstanceTypes"]["InstanceType"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!([count(&first), count(&second)], [900, 23]);
    assert_eq!(second["NextToken"], "");
}

#[tokio::test]
async fn sold_out_types_are_listed_as_sold_out() {
    let rule = r#"stock: [{instanceType: ecs.g7.xlarge, zone: cn-hangzhou-h}]"#;
    let sim = start(World {
        stock: World::parse(rule).unwrap().stock,
        ..fast_world()
    })
    .await;

    let params = [
        ("DestinationResource", "InstanceType"),
        ("InstanceType", "ecs.g7.xlarge"),
    ];
    let zones = call(&sim, "DescribeAvailableResource", &params)
        .await
        .json();

    let status = |zone: usize| {
        zones["AvailableZones"]["AvailableZone"][zone]["AvailableResources"]["AvailableResource"][0]
            ["SupportedResources"]["SupportedResource"][0]["StatusCategory"]
            .clone()
    };
    assert_eq!([status(0), status(1)], ["WithoutStock", "WithStock"]);
}

#[tokio::test]
async fn every_other_describe_action_answers() {
    let sim = start(fast_world()).await;
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let rows: &[Row<'_>] = &[
        (
            "DescribeZones",
            &[("Verbose", "false")],
            "/Zones/Zone/3/ZoneId",
        ),
        ("DescribeRegions", &[], "/Regions/Region/0/RegionId"),
        (
            "DescribeSecurityGroups",
            &[("Tag.1.Key", "karpenter.sh/discovery")],
            "/SecurityGroups/SecurityGroup/0/SecurityGroupId",
        ),
        (
            "DescribeImages",
            &[("Architecture", "arm64"), ("PageSize", "100")],
            "/Images/Image/1/ImageId",
        ),
        ("DescribeKeyPairs", &[], "/KeyPairs/KeyPair/0/KeyPairName"),
        (
            "DescribePrice",
            &[("InstanceType", "ecs.g7.xlarge")],
            "/PriceInfo/Price/DetailInfos/DetailInfo/0/TradePrice",
        ),
        (
            "DescribeSpotPriceHistory",
            &[("InstanceType", "ecs.g7.xlarge"), ("NetworkType", "vpc")],
            "/SpotPrices/SpotPriceType/7/SpotPrice",
        ),
        (
            "DescribeSpotAdvice",
            &[("InstanceTypes.1", "ecs.g7.xlarge")],
            "/AvailableSpotZones/AvailableSpotZone/0/AvailableSpotResources/AvailableSpotResource/0/AverageSpotDiscount",
        ),
    ];

    for (action, params, pointer) in rows {
        let answer = call(&sim, action, params).await.json();
        assert!(answer.pointer(pointer).is_some(), "{action}: {answer}");
    }
}
