use super::*;
use crate::provider::class::DataDisk;

fn facts(cpus: u32, memory_gib: u64, enis: u32, ips_per_eni: u32) -> TypeFacts {
    TypeFacts {
        cpus,
        memory_mib: memory_gib * 1024,
        enis,
        ips_per_eni,
        ..TypeFacts::plain("ecs.g7.xlarge")
    }
}

fn config() -> ProviderConfig {
    ProviderConfig::new("cn-hangzhou", "c-1")
}

#[test]
fn cpu_reserve_equals_the_published_rows() {
    let rows = [
        (2, 70),
        (4, 80),
        (8, 90),
        (16, 110),
        (32, 150),
        (64, 230),
        (128, 390),
        (256, 710),
    ];
    for (cpus, milli) in rows {
        assert_eq!(cpu_reserved_milli(cpus), milli, "{cpus} cores");
    }
}

#[test]
fn memory_reserve_equals_the_published_rows() {
    for (pods, mib) in [(15, 420), (48, 783), (213, 2598), (423, 4908), (453, 5238)] {
        assert_eq!(memory_reserved_mib(1 << 20, pods), mib, "{pods} pods");
    }
    assert_eq!(memory_reserved_mib(2048, 110), 512, "a quarter at most");
}

#[test]
fn f38_pods_follow_the_network() {
    let kubelet = KubeletSettings::default();
    let shared = |enis, ips| max_pods(&facts(4, 16, enis, ips), &kubelet, CniMode::TerwayShared);
    let exclusive = |enis| max_pods(&facts(4, 16, enis, 15), &kubelet, CniMode::TerwayExclusive);

    assert_eq!(shared(4, 15), 48);
    assert_eq!(shared(3, 10), 23, "ecs.g6.xlarge");
    assert_eq!(shared(3, 6), 15);
    assert_eq!(exclusive(8), 10);
    let flannel = CniMode::Flannel { node_cidr_mask: 26 };
    assert_eq!(max_pods(&facts(4, 16, 0, 0), &kubelet, flannel), 64);
    assert_eq!(max_pods(&facts(4, 16, 0, 0), &kubelet, CniMode::Other), 110);
}

#[test]
fn f38_a_type_with_too_few_pod_addresses_cannot_join_and_says_why() {
    let shared = |enis, ips| cannot_join(&facts(2, 2, enis, ips), CniMode::TerwayShared);
    let exclusive = |enis| cannot_join(&facts(4, 16, enis, 15), CniMode::TerwayExclusive);

    assert_eq!(shared(3, 6), None, "12 addresses are just enough");
    assert_eq!(
        shared(2, 2).unwrap(),
        "2 pod addresses, and Terway wants more than 11"
    );
    assert!(shared(0, 0).is_some(), "an unknown number of interfaces");
    assert_eq!(exclusive(8), None);
    assert!(exclusive(7).is_some());
    assert_eq!(cannot_join(&facts(2, 2, 0, 0), CniMode::Other), None);
}

#[test]
fn f06_a_small_node_keeps_back_what_ack_keeps_back_and_no_more() {
    let class = NodeClassSpec::default();
    let node = node_capacity(
        &facts(4, 8, 4, 15),
        &class,
        CniMode::TerwayShared,
        &config(),
    );

    let allocatable = {
        let mut all = node.capacity.clone();
        all.subtract(&node.overhead());
        all
    };
    assert_eq!(node.max_pods, 48);
    assert_eq!(allocatable.cpu_milli(), 4000 - 80);
    // What the machine shows, less 783 MiB and the eviction threshold: a pod of 3,600m and 5 GiB fits.
    let shown_mib = node.capacity.memory_bytes() >> 20;
    let left_mib = allocatable.memory_bytes() >> 20;
    assert!(shown_mib - left_mib >= 783, "{shown_mib} {left_mib}");
    assert!(Resources::of(3600, 5 << 30).fits_in(&allocatable));
    assert!(!Resources::of(3600, 8 << 30).fits_in(&allocatable));
}

#[test]
fn max_pods_of_the_class_is_capped_by_the_addresses() {
    let kubelet = KubeletSettings {
        max_pods: Some(200),
        ..KubeletSettings::default()
    };
    let few = KubeletSettings {
        pods_per_core: Some(5),
        ..KubeletSettings::default()
    };

    assert_eq!(
        max_pods(&facts(4, 16, 4, 15), &kubelet, CniMode::TerwayShared),
        48
    );
    assert_eq!(
        max_pods(&facts(4, 16, 4, 15), &kubelet, CniMode::Other),
        200
    );
    assert_eq!(
        max_pods(&facts(4, 16, 4, 15), &few, CniMode::TerwayShared),
        20
    );
}

#[test]
fn capacity_is_what_the_machine_shows() {
    let class = NodeClassSpec::default();

    let node = node_capacity(
        &facts(4, 8, 4, 15),
        &class,
        CniMode::TerwayShared,
        &config(),
    );

    // 8192 MiB less 7.5 %, rounded down to a MiB.
    assert_eq!(node.capacity.memory_bytes(), 7577 << 20);
    assert_eq!(node.capacity.cpu_milli(), 4000);
    assert_eq!(node.capacity.pods(), 48);
    assert_eq!(node.capacity.amount(EPHEMERAL_STORAGE), 40 << 30);
    let overhead = node.overhead();
    assert_eq!(overhead.cpu_milli(), 80);
    assert_eq!(overhead.memory_bytes(), (783 + 100) << 20);
}

#[test]
fn settings_of_the_class_replace_the_formula_and_reach_the_kubelet() {
    let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut class = NodeClassSpec::default();
    class.kubelet.kube_reserved = texts(&[("cpu", "500m")]);
    class.kubelet.eviction_hard = texts(&[("memory.available", "5%")]);

    let node = node_capacity(&facts(4, 8, 0, 0), &class, CniMode::Other, &config());
    let kubelet = kubelet_config(&node, &class, &config());

    assert_eq!(node.kube_reserved.cpu_milli(), 500);
    assert_eq!(node.eviction.memory_bytes(), (7577_i64 << 20) / 20);
    assert_eq!(kubelet.kube_reserved["cpu"], "500m");
    // 11 MiB for each of 110 pods and 255 MiB is 1465 MiB, in two parts.
    assert_eq!(kubelet.kube_reserved["memory"], "733Mi");
    assert_eq!(kubelet.system_reserved["memory"], "732Mi");
    assert_eq!(kubelet.system_reserved["cpu"], "40m");
    assert_eq!(kubelet.eviction_hard["memory.available"], "5%");
    assert_eq!(kubelet.eviction_hard["imagefs.available"], "15%");
    assert_eq!(kubelet.max_pods, Some(110));
}

#[test]
fn ephemeral_storage_is_of_the_disk_that_holds_it() {
    let data_disks = vec![DataDisk {
        size_gib: 200,
        ..DataDisk::default()
    }];
    let mut class = NodeClassSpec {
        data_disks,
        ..NodeClassSpec::default()
    };
    let storage = |class: &NodeClassSpec| {
        let node = node_capacity(&facts(4, 8, 0, 0), class, CniMode::Other, &config());
        node.capacity.amount(EPHEMERAL_STORAGE) >> 30
    };

    assert_eq!(storage(&class), 40);
    class.format_data_disk = true;
    assert_eq!(storage(&class), 200);
}

#[test]
fn whole_gpus_are_offered_by_maker() {
    let mut gpu = facts(8, 30, 0, 0);
    gpu.gpus = 1;
    gpu.gpu_spec = "NVIDIA A10".to_owned();
    let class = NodeClassSpec::default();

    let node = node_capacity(&gpu, &class, CniMode::Other, &config());

    assert_eq!(node.capacity.amount("nvidia.com/gpu"), 1);
}
