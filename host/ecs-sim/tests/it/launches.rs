//! RunInstances: tokens, stock, addresses, and refusals that name what is wrong.

use ecs_sim::{StockRule, World};

use crate::client::{call, fast_world, ids, launch, start};

const H: &str = "cn-hangzhou-h";

fn stock(zone: &str, capacity_type: Option<&str>, count: u32) -> World {
    let rule = StockRule {
        instance_type: Some("ecs.g7.*".to_owned()),
        zone: Some(zone.to_owned()),
        capacity_type: capacity_type.map(str::to_owned),
        count,
        not_on_sale: false,
    };
    World {
        stock: vec![rule],
        ..fast_world()
    }
}

#[tokio::test]
async fn the_same_token_with_the_same_parameters_launches_once() {
    let sim = start(fast_world()).await;
    let params = launch(&[("ClientToken", "t-1"), ("Amount", "2")]);

    let first = call(&sim, "RunInstances", &params).await;
    let second = call(&sim, "RunInstances", &params).await;

    assert_eq!(ids(&first).len(), 2);
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        2
    );
}

#[tokio::test]
async fn the_same_token_with_other_parameters_is_a_mismatch() {
    let sim = start(fast_world()).await;
    call(&sim, "RunInstances", &launch(&[("ClientToken", "t-1")])).await;

    let other = call(
        &sim,
        "RunInstances",
        &launch(&[("ClientToken", "t-1"), ("Amount", "2")]),
    )
    .await;

    assert_eq!(other.code(), "400 IdempotentParameterMismatch");
}

#[tokio::test]
async fn a_refused_launch_leaves_its_token_unused() {
    let sim = start(stock(H, None, 0)).await;
    let params = launch(&[("ClientToken", "t-1")]);
    assert_eq!(
        call(&sim, "RunInstances", &params).await.code(),
        "403 OperationDenied.NoStock"
    );

    sim.change_world(|world| world.stock.clear());

    assert_eq!(ids(&call(&sim, "RunInstances", &params).await).len(), 1);
}

#[tokio::test]
async fn without_min_amount_it_is_all_or_nothing() {
    let sim = start(stock(H, None, 2)).await;

    let answer = call(&sim, "RunInstances", &launch(&[("Amount", "3")])).await;

    assert_eq!(answer.code(), "403 OperationDenied.NoStock");
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        0
    );
}

#[tokio::test]
async fn with_min_amount_the_reply_has_what_was_left() {
    let sim = start(stock(H, None, 2)).await;

    let answer = call(
        &sim,
        "RunInstances",
        &launch(&[("Amount", "3"), ("MinAmount", "1")]),
    )
    .await;

    assert_eq!(ids(&answer).len(), 2);
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "403 OperationDenied.NoStock"
    );
}

#[tokio::test]
async fn stock_is_per_zone_and_capacity_type_and_comes_back() {
    let sim = start(stock(H, Some("spot"), 1)).await;
    let spot = launch(&[("SpotStrategy", "SpotAsPriceGo")]);
    let first = ids(&call(&sim, "RunInstances", &spot).await);

    assert_eq!(
        call(&sim, "RunInstances", &spot).await.code(),
        "403 OperationDenied.NoStock"
    );
    assert_eq!(call(&sim, "RunInstances", &launch(&[])).await.status, 200);
    let elsewhere = launch(&[
        ("SpotStrategy", "SpotAsPriceGo"),
        ("VSwitchId", "vsw-bp1sim000000000000i"),
    ]);
    assert_eq!(call(&sim, "RunInstances", &elsewhere).await.status, 200);
    call(
        &sim,
        "DeleteInstances",
        &[("InstanceId.1", first[0].as_str()), ("Force", "true")],
    )
    .await;
    assert_eq!(call(&sim, "RunInstances", &spot).await.status, 200);
}

#[tokio::test]
async fn a_vswitch_runs_out_of_addresses() {
    let mut world = fast_world();
    world.vswitches[0].available_ips = Some(1);
    let sim = start(world).await;

    assert_eq!(call(&sim, "RunInstances", &launch(&[])).await.status, 200);
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "403 InvalidVSwitchId.IpNotEnough"
    );
    let vswitches = call(
        &sim,
        "DescribeVSwitches",
        &[("VSwitchId", "vsw-bp1sim000000000000h")],
    )
    .await
    .json();
    assert_eq!(
        vswitches["VSwitches"]["VSwitch"][0]["AvailableIpAddressCount"],
        0
    );
}

#[tokio::test]
async fn each_mistake_has_its_code() {
    let sim = start(fast_world()).await;
    let rows = [
        (("VSwitchId", "vsw-none"), "404 InvalidVSwitchId.NotFound"),
        (("ImageId", "none.vhd"), "404 InvalidImageId.NotFound"),
        (
            ("ImageId", "aliyun_3_arm64_20G_alibase_20250629.vhd"),
            "403 ImageNotSupportInstanceType",
        ),
        (
            ("SecurityGroupId", "sg-none"),
            "404 InvalidSecurityGroupId.NotFound",
        ),
        (
            ("SecurityGroupIds.1", "sg-bp1sim0000000000000"),
            "400 InvalidParameter.Conflict",
        ),
        (
            ("InstanceType", "ecs.none.large"),
            "400 InvalidInstanceType.ValueNotSupported",
        ),
        (("InstanceType", ""), "400 MissingParameter"),
        (("Amount", "101"), "403 InvalidParam.Amount"),
        (
            ("UserData", "%%%"),
            "400 InvalidUserData.Base64FormatInvalid",
        ),
        (("Tag.1.Key", "acs:mine"), "400 InvalidTagKey.Malformed"),
        (
            ("SystemDisk.Category", "cloud_efficiency"),
            "400 InvalidSystemDiskCategory.ValueNotSupported",
        ),
        (
            ("SpotStrategy", "SpotWithPriceLimit"),
            "400 MissingParameter",
        ),
        (("RamRoleName", "none"), "404 InvalidRamRole.NotFound"),
        (("DryRun", "True"), "400 DryRunOperation"),
    ];

    for (parameter, code) in rows {
        assert_eq!(
            call(&sim, "RunInstances", &launch(&[parameter]))
                .await
                .code(),
            code,
            "{parameter:?}"
        );
    }
    assert_eq!(
        call(&sim, "DescribeInstances", &[]).await.json()["TotalCount"],
        0
    );
}

#[tokio::test]
async fn a_spot_limit_under_todays_price_is_refused() {
    let sim = start(fast_world()).await;

    let answer = call(
        &sim,
        "RunInstances",
        &launch(&[
            ("SpotStrategy", "SpotWithPriceLimit"),
            ("SpotPriceLimit", "0.001"),
        ]),
    )
    .await;

    assert_eq!(
        answer.code(),
        "400 InvalidSpotPriceLimit.LowerThanPublicPrice"
    );
}

#[tokio::test]
async fn an_image_family_means_its_newest_image() {
    let sim = start(fast_world()).await;

    let params = launch(&[
        ("ImageId", ""),
        ("ImageFamily", "acs:alibaba_cloud_linux_3_2104_lts_x64"),
    ]);
    call(&sim, "RunInstances", &params).await;

    let described = call(&sim, "DescribeInstances", &[]).await.json();
    assert_eq!(
        described["Instances"]["Instance"][0]["ImageId"],
        "aliyun_3_x64_20G_alibase_20250629.vhd"
    );
}

#[tokio::test]
async fn the_vcpu_quota_is_the_accounts() {
    let sim = start(World {
        vcpu_quota: Some(8),
        ..fast_world()
    })
    .await;

    assert_eq!(
        call(&sim, "RunInstances", &launch(&[("Amount", "3")]))
            .await
            .code(),
        "403 QuotaExceed.ElasticQuota"
    );
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[("Amount", "2")]))
            .await
            .code(),
        "200 OK"
    );
    assert_eq!(
        call(&sim, "RunInstances", &launch(&[])).await.code(),
        "403 QuotaExceed.ElasticQuota"
    );
}
