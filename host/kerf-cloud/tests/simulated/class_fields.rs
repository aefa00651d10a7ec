//! What a class asks for reaches the launch call, the machine and the types that are offered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ecs_sim::{KeyPair, PrivatePool, World};
use kerf_cloud::provider::class::{
    DataDisk, ImageTerm, KeyPairTerm, MetadataOptions, NodeClassSpec, PrivatePoolTerm,
    PrivatePools, SystemDisk,
};
use kerf_cloud::provider::instance::CapacityType;
use kerf_cloud::provider::launch::{LaunchOffering, LaunchOutcome};

use crate::cloud::{Cloud, instance_of, launch, offering, on_demand, quick_start};

fn tags(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

/// Launches from the class and gives the outcome with the id of the instance, if there is one.
async fn launch_as(
    cloud: &Cloud,
    spec: &NodeClassSpec,
    offers: &[LaunchOffering],
) -> LaunchOutcome {
    let mut request = cloud.request("a", offers).await;
    request.class = cloud.provider.resolve(spec).await.unwrap();
    launch(&cloud.provider, &request).await.0
}

/// The parameters with which the instance was made.
async fn asked_for(cloud: &Cloud, spec: &NodeClassSpec) -> BTreeMap<String, String> {
    let outcome = launch_as(cloud, spec, &[on_demand("ecs.g7.xlarge", "h")]).await;
    let id = &instance_of(&outcome).id;
    let views = cloud.sim.instances();
    views.into_iter().find(|it| it.id == *id).unwrap().request
}

/// A file of the machine, once its user data has ended.
async fn file_after_boot(cloud: &Cloud, id: &str, path: &str) -> String {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let views = cloud.sim.instances();
        let boot = views.into_iter().find(|it| it.id == id).unwrap().boot;
        if boot == "Finished" || boot == "Failed" {
            // Its last part fails, since there is no cluster here to join.
            let log = cloud.sim.boot_log(id).unwrap_or_default();
            let content = cloud.sim.read_file(id, path);
            return String::from_utf8(content.unwrap_or_else(|| panic!("{path}: {log}"))).unwrap();
        }
        assert!(tokio::time::Instant::now() < deadline, "still booting");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn every_setting_of_the_machine_is_in_the_launch_call() {
    let cloud = Cloud::start(World {
        launch_templates: vec!["lt-1".to_owned()],
        ..World::default()
    })
    .await;
    let spec = NodeClassSpec {
        role: "KubernetesWorkerRole".to_owned(),
        resource_group_id: "rg-1".to_owned(),
        launch_template_id: "lt-1".to_owned(),
        password_inherit: true,
        internet_charge_type: "PayByTraffic".to_owned(),
        internet_max_bandwidth_out: Some(2),
        metadata_options: MetadataOptions {
            http_endpoint: "enabled".to_owned(),
            http_tokens: "required".to_owned(),
            http_put_response_hop_limit: Some(2),
        },
        system_disk: SystemDisk {
            size_gib: 60,
            performance_level: "PL1".to_owned(),
            encrypted: true,
            kms_key_id: "key-1".to_owned(),
            ..SystemDisk::default()
        },
        data_disks: vec![DataDisk {
            categories: vec!["cloud_essd".to_owned()],
            size_gib: 100,
            performance_level: "PL2".to_owned(),
            device: "/dev/xvdb".to_owned(),
            snapshot_id: "s-1".to_owned(),
            encrypted: true,
            kms_key_id: "key-2".to_owned(),
            delete_with_instance: Some(false),
            ..DataDisk::default()
        }],
        private_pools: PrivatePools {
            preference: "none".to_owned(),
            selector_terms: Vec::new(),
        },
        ..quick_start()
    };

    let asked = asked_for(&cloud, &spec).await;

    for (name, value) in [
        ("RamRoleName", "KubernetesWorkerRole"),
        ("ResourceGroupId", "rg-1"),
        ("LaunchTemplateId", "lt-1"),
        ("PasswordInherit", "true"),
        ("InternetChargeType", "PayByTraffic"),
        ("InternetMaxBandwidthOut", "2"),
        ("HttpEndpoint", "enabled"),
        ("HttpTokens", "required"),
        ("HttpPutResponseHopLimit", "2"),
        ("SystemDisk.Category", "cloud_essd"),
        ("SystemDisk.Size", "60"),
        ("SystemDisk.PerformanceLevel", "PL1"),
        ("SystemDisk.Encrypted", "true"),
        ("SystemDisk.KMSKeyId", "key-1"),
        ("DataDisk.1.Category", "cloud_essd"),
        ("DataDisk.1.Size", "100"),
        ("DataDisk.1.PerformanceLevel", "PL2"),
        ("DataDisk.1.Device", "/dev/xvdb"),
        ("DataDisk.1.SnapshotId", "s-1"),
        ("DataDisk.1.Encrypted", "true"),
        ("DataDisk.1.KMSKeyId", "key-2"),
        ("DataDisk.1.DeleteWithInstance", "false"),
        ("PrivatePoolOptions.MatchCriteria", "None"),
    ] {
        assert_eq!(asked.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[tokio::test]
async fn the_first_key_pair_that_the_terms_find_is_used_and_none_stops_the_class() {
    let pair = |name: &str| KeyPair {
        name: name.to_owned(),
        tags: tags("team", "a"),
    };
    let cloud = Cloud::start(World {
        key_pairs: vec![pair("zed"), pair("ops")],
        ..World::default()
    })
    .await;
    let selecting = |term: KeyPairTerm| NodeClassSpec {
        key_pair_selector_terms: vec![term],
        ..quick_start()
    };

    let by_tags = selecting(KeyPairTerm {
        tags: tags("team", "*"),
        ..KeyPairTerm::default()
    });
    let absent = selecting(KeyPairTerm {
        name: "gone".to_owned(),
        ..KeyPairTerm::default()
    });

    assert_eq!(asked_for(&cloud, &by_tags).await["KeyPairName"], "ops");
    let problems = cloud.provider.resolve(&absent).await.unwrap_err();
    assert_eq!(problems[0].field, "spec.sshKeySelectorTerms[0].name");
}

#[tokio::test]
async fn images_are_selected_by_tags_and_owner() {
    let mut world = World::default();
    let mut own = world.images[0].clone();
    own.id = "m-own".to_owned();
    own.family = "golden".to_owned();
    own.owner_alias = "self".to_owned();
    own.owner_id = "42".to_owned();
    own.tags = tags("release", "7");
    let mut other = own.clone();
    other.id = "m-other".to_owned();
    other.owner_id = "43".to_owned();
    world.images.extend([own, other]);
    let cloud = Cloud::start(world).await;

    let found = async |term: ImageTerm| {
        let spec = NodeClassSpec {
            image_selector_terms: vec![term],
            ..quick_start()
        };
        let resolved = cloud.provider.resolve(&spec).await;
        resolved
            .map(|it| it.images[0].id.clone())
            .map_err(|it| it[0].field.clone())
    };

    let by_tags = ImageTerm {
        tags: tags("release", "*"),
        owner_id: "42".to_owned(),
        ..ImageTerm::default()
    };
    assert_eq!(found(by_tags).await, Ok("m-own".to_owned()));
    let by_owner = ImageTerm {
        image_family: "golden".to_owned(),
        owner_alias: "self".to_owned(),
        owner_id: "43".to_owned(),
        ..ImageTerm::default()
    };
    assert_eq!(found(by_owner).await, Ok("m-other".to_owned()));
    let of_the_cloud = ImageTerm {
        image_family: "golden".to_owned(),
        owner_alias: "system".to_owned(),
        ..ImageTerm::default()
    };
    let field = "spec.imageSelectorTerms[0].imageFamily".to_owned();
    assert_eq!(found(of_the_cloud).await, Err(field));
}

#[tokio::test]
async fn a_kind_of_data_disk_that_a_type_lacks_is_followed_by_the_next_kind() {
    let cloud = Cloud::start(World::default()).await;
    let spec = NodeClassSpec {
        data_disks: vec![DataDisk {
            categories: vec!["cloud".to_owned(), "cloud_essd".to_owned()],
            size_gib: 40,
            ..DataDisk::default()
        }],
        ..quick_start()
    };

    let asked = asked_for(&cloud, &spec).await;

    assert_eq!(asked["DataDisk.1.Category"], "cloud_essd");
    assert_eq!(asked["SystemDisk.Category"], "cloud_essd");
}

#[tokio::test]
async fn with_target_only_private_pools_with_room_are_bought_from() {
    let pool = PrivatePool {
        id: "crp-1".to_owned(),
        instance_type: "ecs.g7.xlarge".to_owned(),
        zone: "cn-hangzhou-i".to_owned(),
        count: 1,
        tags: tags("team", "a"),
    };
    let cloud = Cloud::start(World {
        private_pools: vec![pool],
        ..World::default()
    })
    .await;
    let spec = NodeClassSpec {
        private_pools: PrivatePools {
            preference: "target".to_owned(),
            selector_terms: vec![PrivatePoolTerm {
                tags: tags("team", "a"),
                ..PrivatePoolTerm::default()
            }],
        },
        ..quick_start()
    };
    let offers = [
        on_demand("ecs.g7.xlarge", "h"),
        on_demand("ecs.g7.xlarge", "i"),
    ];

    let class = cloud.provider.resolve(&spec).await.unwrap();
    let types = cloud.provider.instance_types(&class).await.unwrap();
    let first = launch_as(&cloud, &spec, &offers).await;
    let mut another = cloud.request("b", &offers).await;
    another.class = cloud.provider.resolve(&spec).await.unwrap();
    let (second, _) = launch(&cloud.provider, &another).await;

    let open: Vec<String> = types
        .iter()
        .flat_map(|it| it.offerings.iter().map(move |offering| (it, offering)))
        .filter(|(_, offering)| offering.is_available())
        .map(|(it, offering)| format!("{}/{}/{}", it.name, offering.zone, offering.capacity_type))
        .collect();
    assert_eq!(open, ["ecs.g7.xlarge/cn-hangzhou-i/on-demand"]);
    assert_eq!(instance_of(&first).zone_id, "cn-hangzhou-i");
    let views = cloud.sim.instances();
    assert_eq!(views[0].request["PrivatePoolOptions.Id"], "crp-1");
    let LaunchOutcome::InsufficientCapacity { offerings } = second else {
        panic!("launched beyond the pool: {second:?}");
    };
    assert!(
        offerings
            .iter()
            .all(|it| it.message.contains("private pool")),
        "{offerings:?}"
    );
}

#[tokio::test]
async fn data_disks_are_formatted_and_mounted_before_the_users_part_runs() {
    let cloud = Cloud::start(World::default()).await;
    let disk = |target: &str, file_system: &str| DataDisk {
        categories: vec!["cloud_essd".to_owned()],
        size_gib: 100,
        mount_target: target.to_owned(),
        file_system: file_system.to_owned(),
        ..DataDisk::default()
    };
    let spec = NodeClassSpec {
        data_disks: vec![
            disk("/var/lib/containerd", ""),
            disk("", ""),
            disk("/data", "xfs"),
        ],
        user_data: "#!/bin/bash\ncp /run/ecs-sim/mounts /srv/seen-by-the-user\n".to_owned(),
        ..quick_start()
    };

    let outcome = launch_as(&cloud, &spec, &[on_demand("ecs.g7.xlarge", "h")]).await;

    let id = &instance_of(&outcome).id;
    let mounts = file_after_boot(&cloud, id, "/srv/seen-by-the-user").await;
    assert_eq!(
        mounts,
        "UUID=sim-vdb /var/lib/containerd ext4 defaults,nofail 0 2\n\
         UUID=sim-vdd /data xfs defaults,nofail 0 2\n"
    );
}

#[tokio::test]
async fn local_disks_become_one_file_system_of_the_kubelet_and_its_size_is_planned_with() {
    let cloud = Cloud::start(World::default()).await;
    let spec = NodeClassSpec {
        instance_store_policy: "RAID0".to_owned(),
        ..quick_start()
    };

    let class = cloud.provider.resolve(&spec).await.unwrap();
    let types = cloud.provider.instance_types(&class).await.unwrap();
    let outcome = launch_as(&cloud, &spec, &[on_demand("ecs.i2ne.4xlarge", "h")]).await;

    let storage = |name: &str| {
        let it = types.iter().find(|it| *it.name == *name).unwrap();
        it.capacity.amount(kerf_core::resources::EPHEMERAL_STORAGE) >> 30
    };
    assert_eq!(
        (storage("ecs.i2ne.4xlarge"), storage("ecs.g7.xlarge")),
        (2 * 1788, 40)
    );
    let id = &instance_of(&outcome).id;
    let mounts = file_after_boot(&cloud, id, "/run/ecs-sim/mounts").await;
    assert!(mounts.starts_with("mdadm --create /dev/md/kerf --force --run --level=0 --raid-devices=2 /dev/nvme0n1 /dev/nvme1n1\n"), "{mounts}");
    assert!(
        mounts.contains("/mnt/instance-store/var/lib/kubelet /var/lib/kubelet none bind"),
        "{mounts}"
    );
}

#[tokio::test]
async fn a_join_template_gets_the_name_and_the_address_of_its_cluster() {
    let cloud = Cloud::start(World::default()).await;
    let spec = NodeClassSpec {
        cluster_name: "my-cluster".to_owned(),
        cluster_endpoint: "https://10.0.0.1:6443".to_owned(),
        join_template: "echo {{clusterName}} {{clusterEndpoint}} {{taints}} >/etc/joined"
            .to_owned(),
        ..quick_start()
    };
    let mut request = cloud.request("a", &[on_demand("ecs.g7.xlarge", "h")]).await;
    let mut class = (*cloud.provider.resolve(&spec).await.unwrap()).clone();
    // The controller of this test has an ACK cluster; a self-managed one has none.
    class.cluster_id = String::new();
    request.class = Arc::new(class);

    let (outcome, _) = launch(&cloud.provider, &request).await;

    let joined = file_after_boot(&cloud, &instance_of(&outcome).id, "/etc/joined").await;
    assert_eq!(
        joined,
        "my-cluster https://10.0.0.1:6443 karpenter.sh/unregistered:NoExecute\n"
    );
}

#[tokio::test]
async fn what_is_offered_for_spot_is_in_the_launch_call() {
    let cloud = Cloud::start(World::default()).await;
    let mut spec = quick_start();
    spec.spot.strategy = "SpotWithPriceLimit".to_owned();
    spec.spot.price_limit_per_hour = Some(100.0);

    let outcome = launch_as(
        &cloud,
        &spec,
        &[offering("ecs.g7.xlarge", "h", CapacityType::Spot)],
    )
    .await;

    assert_eq!(instance_of(&outcome).capacity_type, CapacityType::Spot);
}
