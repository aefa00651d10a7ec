//! Resolving a class and listing its instance types.

use std::time::Duration;

use ecs_sim::{Planted, StockRule, World};
use kerf_cloud::provider::catalog::Catalog;
use kerf_cloud::provider::class::{
    Architecture, ImageTerm, ResolveKind, SecurityGroupTerm, VSwitchTerm,
};
use kerf_cloud::provider::config::{CniMode, ProviderConfig};
use kerf_cloud::provider::instance::{CapacityType, Instance};
use kerf_cloud::provider::offline;
use kerf_cloud::rpc::{Credentials, SignatureVersion};
use kerf_core::labels;

use crate::cloud::{CLUSTER, Cloud, quick_start};

#[tokio::test]
async fn the_quick_start_class_resolves_to_zones_groups_and_the_newest_image() {
    let cloud = Cloud::start(World::default()).await;

    let class = cloud.class().await;

    let zones = [
        "cn-hangzhou-h",
        "cn-hangzhou-i",
        "cn-hangzhou-j",
        "cn-hangzhou-k",
    ];
    assert_eq!(class.zone_ids(), zones);
    assert!(
        class
            .vswitches
            .iter()
            .all(|vswitch| vswitch.ips_available > 4000)
    );
    assert_eq!(class.security_groups.len(), 1);
    let image = class.image_for(Architecture::Amd64).unwrap();
    assert_eq!(image.id, "aliyun_3_x64_20G_alibase_20250629.vhd");
    assert!(class.image_for(Architecture::Arm64).is_none());
    assert_eq!(class.cluster_id, crate::cloud::CLUSTER);
    cloud.class().await;
    assert_eq!(
        cloud.calls("DescribeVSwitches"),
        1,
        "the second answer is from the cache"
    );
}

#[tokio::test]
async fn unknown_names_are_problems_that_say_where_and_what() {
    let cloud = Cloud::start(World::default()).await;
    let mut spec = quick_start();
    let vswitch = |id: &str| VSwitchTerm {
        id: id.to_owned(),
        ..VSwitchTerm::default()
    };
    spec.vswitch_selector_terms = vec![vswitch("vsw-gone")];
    spec.security_group_selector_terms.push(SecurityGroupTerm {
        id: "sg-gone".to_owned(),
        ..SecurityGroupTerm::default()
    });
    spec.image_selector_terms = vec![ImageTerm {
        id: "m-gone".to_owned(),
        ..ImageTerm::default()
    }];

    let problems = cloud.provider.resolve(&spec).await.unwrap_err();

    let seen: Vec<_> = problems
        .iter()
        .map(|it| {
            (
                it.kind,
                it.field.as_str(),
                it.value.as_str(),
                it.is_transient,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                ResolveKind::VSwitch,
                "spec.vSwitchSelectorTerms[0].id",
                "vsw-gone",
                false
            ),
            (
                ResolveKind::SecurityGroup,
                "spec.securityGroupSelectorTerms[1].id",
                "sg-gone",
                false
            ),
            (
                ResolveKind::Image,
                "spec.imageSelectorTerms[0].id",
                "m-gone",
                false
            ),
        ]
    );
}

#[tokio::test]
async fn a_term_that_finds_nothing_beside_one_that_does_is_a_warning() {
    let cloud = Cloud::start(World::default()).await;
    let mut spec = quick_start();
    spec.vswitch_selector_terms.push(VSwitchTerm {
        id: "vsw-gone".to_owned(),
        ..VSwitchTerm::default()
    });

    let class = cloud.provider.resolve(&spec).await.unwrap();

    assert_eq!(class.vswitches.len(), 4);
    assert_eq!(class.warnings[0].field, "spec.vSwitchSelectorTerms[1].id");
}

#[tokio::test]
async fn wrong_credentials_are_told_apart_from_a_cloud_out_of_reach() {
    let wrong = Credentials::access_key("LTAIsim", "wrong");
    let cloud =
        Cloud::start_with(World::default(), |config| config.credentials = wrong.into()).await;
    let away = Cloud::start_with(World::default(), |config| {
        // Nothing listens on the discard port.
        config
            .endpoints
            .values_mut()
            .for_each(|url| "http://127.0.0.1:9".clone_into(url));
        config.deadline = Duration::from_millis(500);
    })
    .await;

    let refused = cloud.provider.resolve(&quick_start()).await.unwrap_err();
    let unreachable = away.provider.resolve(&quick_start()).await.unwrap_err();

    assert!(
        refused[0].message.contains("SignatureDoesNotMatch"),
        "{}",
        refused[0].message
    );
    assert!(refused[0].message.contains("credentials"));
    assert!(refused.iter().all(|problem| !problem.is_transient));
    assert!(
        unreachable[0].message.contains("127.0.0.1:9"),
        "{}",
        unreachable[0].message
    );
    assert!(unreachable.iter().all(|problem| problem.is_transient));
}

#[tokio::test]
async fn instance_types_have_labels_prices_and_offerings_per_zone() {
    let cloud = Cloud::start(World {
        page_size_max: Some(90),
        ..World::default()
    })
    .await;
    let class = cloud.class().await;

    let types = cloud.provider.instance_types(&class).await.unwrap();

    assert!(types.len() > 300, "{}", types.len());
    assert!(
        cloud.calls("DescribeInstanceTypes") >= 7,
        "all pages are read"
    );
    let xlarge = types
        .iter()
        .find(|it| &*it.name == "ecs.g7.xlarge")
        .unwrap();
    let label = |key| {
        xlarge
            .requirements
            .on(key)
            .unwrap()
            .single_value()
            .unwrap()
            .to_owned()
    };
    assert_eq!(label(labels::ARCH), "amd64");
    assert_eq!(label(labels::INSTANCE_FAMILY), "ecs.g7");
    assert_eq!(label(labels::INSTANCE_MEMORY), "16384");
    assert_eq!(xlarge.offerings.len(), 8);
    assert!(
        xlarge
            .offerings
            .iter()
            .all(|it| it.is_available() && it.price.is_known())
    );
    // 45 addresses for pods on three interfaces, and three pods with the host's.
    assert_eq!(xlarge.capacity.pods(), 48);
    // The class has no image for the others, which are known all the same and say so.
    for it in types.iter() {
        let is_amd64 = it.requirements.allows(labels::ARCH, "amd64");
        assert!(is_amd64 || it.offerings.iter().all(|it| !it.is_available()));
    }
}

#[tokio::test]
async fn f30_what_is_sold_out_stays_known_and_what_is_not_sold_is_left_out() {
    let rule = |zone: &str, not_on_sale| StockRule {
        instance_type: Some("ecs.g7.xlarge".to_owned()),
        zone: Some(format!("cn-hangzhou-{zone}")),
        capacity_type: None,
        count: 0,
        not_on_sale,
    };
    let stock = vec![rule("h", false), rule("i", true)];
    let cloud = Cloud::start(World {
        stock,
        ..World::default()
    })
    .await;
    let class = cloud.class().await;

    let types = cloud.provider.instance_types(&class).await.unwrap();

    let xlarge = types
        .iter()
        .find(|it| &*it.name == "ecs.g7.xlarge")
        .unwrap();
    let on_demand = xlarge
        .offerings
        .iter()
        .filter(|it| it.capacity_type == CapacityType::OnDemand);
    let seen: Vec<_> = on_demand
        .map(|it| (it.zone.as_str(), it.unavailable.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("cn-hangzhou-h", Some("no stock")),
            ("cn-hangzhou-j", None),
            ("cn-hangzhou-k", None)
        ]
    );
}

#[tokio::test]
async fn every_read_works_with_the_old_signatures_too() {
    let cloud = Cloud::start_with(World::default(), |config| {
        config.signature = SignatureVersion::V1;
    })
    .await;
    let class = cloud.class().await;

    let types = cloud.provider.instance_types(&class).await.unwrap();

    assert!(types.len() > 300);
    assert!(cloud.provider.list_ours().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_catalog_that_was_pulled_says_what_the_live_account_says() {
    let rule = |instance_type: &str, count, not_on_sale| StockRule {
        instance_type: Some(instance_type.to_owned()),
        zone: None,
        capacity_type: None,
        count,
        not_on_sale,
    };
    let world = World {
        stock: vec![rule("ecs.g7.*", 0, false), rule("ecs.c7.large", 0, true)],
        ..World::default()
    };
    let cloud = Cloud::start(world).await;
    let class = cloud.class().await;

    let pulled = cloud.provider.catalog().await.unwrap();

    let written = serde_json::to_string(&pulled).unwrap();
    let read = Catalog::parse(&written).unwrap();
    let config = ProviderConfig::new("cn-hangzhou", crate::cloud::CLUSTER);
    let offline = offline::instance_types(&class, &read, CniMode::TerwayShared, &config);
    let live = cloud.provider.instance_types(&class).await.unwrap();
    assert!(live.len() > 500, "{}", live.len());
    assert!(offline.iter().eq(live.iter().map(|it| &**it)));
    assert!(
        read.source.contains("spot as of the market"),
        "{}",
        read.source
    );
    let of = |name: &str| read.types.iter().find(|it| it.name == name);
    assert!(of("ecs.c7.large").is_none());
    let sold_out = &of("ecs.g7.large").unwrap().offerings[0];
    assert_eq!(sold_out.unavailable.as_deref(), Some("no stock"));
    assert_eq!(cloud.calls("RunInstances") + cloud.calls("TagResources"), 0);
}

#[tokio::test]
async fn fifteen_hundred_instances_are_all_found_though_a_tag_filter_shows_a_thousand() {
    let cloud = Cloud::start(World::default()).await;
    let ours = [
        ("karpenter.sh/managed-by", "kerf"),
        ("karpenter.sh/cluster-id", CLUSTER),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.sh/nodeclaim", "default-1"),
        ("karpenter.alibabacloud.com/ecsnodeclass", "default"),
        ("karpenter.alibabacloud.com/launch-group", "g-1"),
    ];
    let plant = |tags: &[(&str, &str)]| {
        let tags = tags.iter();
        cloud.sim.plant(Planted {
            instance_type: "ecs.g7.large".to_owned(),
            zone: "cn-hangzhou-h".to_owned(),
            image_id: "m-1".to_owned(),
            is_spot: false,
            tags: tags
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        })
    };
    let planted = |_| plant(&ours).unwrap().id;
    let mut planted: Vec<String> = (0..1500).map(planted).collect();
    planted.sort_unstable();
    plant(&ours[..1]).unwrap();

    let first = cloud.provider.list_ours().await.unwrap();
    let pages = cloud.calls("ListTagResources");
    let again = cloud.provider.list_ours().await.unwrap();

    let ids = |found: &[Instance]| found.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), planted);
    assert_eq!(ids(&again), planted);
    assert_eq!(pages, 180, "fifty rows a page, six tags each");
    assert_eq!(
        cloud.calls("ListTagResources") - pages,
        8,
        "then a few at a time"
    );
    eprintln!(
        "{} found by {} DescribeInstances and {pages} ListTagResources, again by {} and 8",
        first.len(),
        cloud.calls("DescribeInstances") / 2,
        cloud.calls("DescribeInstances") / 2
    );
}
