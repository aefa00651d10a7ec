//! What the examples that users ask for do, on components that are built from their sources here.

use crate::guest::{ENGINE, question};
use crate::guests::example;
use kerf_policy::{
    Adjustment, BootstrapInput, CallLimits, FleetEntry, Hook, Node, Part, Policy, PricingContext,
    PricingInput, Selection, SelectionInput,
};
use std::collections::BTreeSet;

/// The capacity types of `question`, by index.
const ON_DEMAND: u16 = 0;
const SPOT: u16 = 1;

fn load(file: &str, hook: Hook) -> Policy {
    Policy::load(&ENGINE, &example(file), hook, None).unwrap()
}

fn select(file: &str, config: &str, input: &SelectionInput) -> Selection {
    let policy = load(file, Hook::InstanceSelection);
    assert_eq!(
        policy.validate_config(config, &CallLimits::default()),
        Ok(vec![])
    );
    let report = policy.select(config, &CallLimits::default(), input);
    report.result.unwrap()
}

/// A cheap burstable type, and one of two larger families.
fn types() -> SelectionInput {
    question(&[
        ("ecs.t6.large", "amd64", 10),
        ("ecs.c7.large", "amd64", 30),
        ("ecs.g7.large", "amd64", 40),
    ])
}

fn nodes(input: &mut SelectionInput, family: u16, capacity_type: u16, nodes: u32) {
    input.context.fleet.push(FleetEntry {
        zone: 0,
        capacity_type,
        family,
        nodes,
        total: input.context.demand.total,
    });
}

/// The capacity types that are left.
fn left(input: &SelectionInput, selection: &Selection) -> BTreeSet<u16> {
    let gone = |candidate, offering| {
        let mut all = selection.exclusions.iter();
        all.any(|it| it.candidate == candidate && it.offering.is_none_or(|it| it == offering))
    };
    let candidates = input.candidates.iter().enumerate();
    let offerings = candidates.flat_map(|(i, it)| {
        let own = it.offerings.iter().enumerate();
        own.map(move |(j, it)| (i, j, it.capacity_type))
    });
    let left = offerings.filter(|(i, j, _)| !gone(*i, *j));
    left.map(|(_, _, capacity_type)| capacity_type).collect()
}

#[test]
fn spot_share_buys_what_the_share_lacks() {
    let mut input = types();
    nodes(&mut input, 1, ON_DEMAND, 3);
    nodes(&mut input, 1, SPOT, 1);
    let config = r#"{"percent": 50}"#;
    let selection = select("spot_share.wasm", config, &input);
    assert_eq!(left(&input, &selection), BTreeSet::from([SPOT]));

    nodes(&mut input, 2, SPOT, 4);
    let selection = select("spot_share.wasm", config, &input);
    assert_eq!(left(&input, &selection), BTreeSet::from([ON_DEMAND]));
}

#[test]
fn spot_share_takes_what_there_is_where_the_other_cannot_be_had() {
    let mut input = types();
    for it in &mut input.candidates {
        it.offerings.retain(|it| it.capacity_type == ON_DEMAND);
    }

    let selection = select("spot_share.wasm", r#"{"percent": 100}"#, &input);

    assert_eq!(left(&input, &selection), BTreeSet::from([ON_DEMAND]));
}

#[test]
fn spread_families_puts_the_family_with_fewer_nodes_first() {
    let mut input = types();
    nodes(&mut input, 0, SPOT, 6);
    nodes(&mut input, 1, SPOT, 2);

    let order = |tolerance: u32| {
        let config = format!("{{\"tolerance\": {tolerance}}}");
        select("spread_families.wasm", &config, &input).order()
    };

    assert_eq!(order(1), [2, 1, 0]);
    assert_eq!(order(3), [1, 2, 0], "2 and 0 nodes are alike");
}

#[test]
fn avoid_burstable_puts_them_last_or_excludes_them() {
    let mut input = types();
    input.candidates[0].burstable = true;

    let last = select("avoid_burstable.wasm", "{}", &input);
    let never = select("avoid_burstable.wasm", r#"{"never": true}"#, &input);

    assert_eq!(last.order(), [1, 2, 0]);
    assert_eq!(never.order(), [1, 2]);
}

#[test]
fn price_per_pod_prefers_the_large_node_where_each_pod_is_cheaper() {
    let mut input = question(&[
        ("ecs.c7.large", "amd64", 300),
        ("ecs.c7.4xlarge", "amd64", 900),
    ]);
    input.context.demand.daemon_overhead = kerf_policy::Resources {
        cpu_milli: 900,
        pods: 0,
        ..input.context.demand.daemon_overhead
    };
    // 1,000 of 3,900 - 900 are 3 pods for 300; of 15,900 - 900 they are 15 for 900, but memory holds 14.
    input.candidates[1].allocatable.cpu_milli = 15_900;
    input.candidates[1].allocatable.memory_mib = 30_800;

    assert_eq!(select("price_per_pod.wasm", "{}", &input).order(), [1, 0]);
    let few = select("price_per_pod.wasm", r#"{"maxPodsPerNode": 3}"#, &input);
    assert_eq!(few.order(), [0, 1]);
}

#[test]
fn prefer_reserved_uses_reservations_first_and_the_named_one_before_the_others() {
    let mut input = types();
    input.candidates[1].offerings[0].reservation = Some("crp-1".into());
    input.candidates[2].offerings[0].reservation = Some("crp-2".into());

    assert_eq!(
        select("prefer_reserved.wasm", "{}", &input).order(),
        [1, 2, 0]
    );
    let named = select("prefer_reserved.wasm", r#"{"first": ["crp-2"]}"#, &input);
    assert_eq!(named.order(), [2, 1, 0]);
}

#[test]
fn gpu_model_prefers_and_excludes_by_model() {
    let mut input = types();
    input.candidates[1].gpu_model = Some("T4".into());
    input.candidates[2].gpu_model = Some("A10".into());

    let prefer = select("gpu_model.wasm", r#"{"weights": {"A10": 5}}"#, &input);
    assert_eq!(prefer.order(), [2, 0, 1]);
    let only = r#"{"weights": {"A10": 5}, "onlyThese": true}"#;
    assert_eq!(select("gpu_model.wasm", only, &input).order(), [2, 0]);
}

#[test]
fn business_hours_make_spot_dearer_on_working_days_only() {
    let policy = load("business_hours.wasm", Hook::PricingPreference);
    assert_eq!(policy.metadata().time_step_secs, 3600);
    let SelectionInput {
        context,
        candidates,
    } = types();
    let ask = |as_of_unix_s| -> Vec<Adjustment> {
        let context = PricingContext {
            node_class: "default".into(),
            region: "cn-hangzhou".into(),
            as_of_unix_s,
            vocabulary: context.vocabulary.clone(),
        };
        let candidates = candidates.clone();
        let input = PricingInput {
            context,
            candidates,
        };
        let config = policy.metadata().default_config.to_string();
        let report = policy.adjust(&config, &CallLimits::default(), &input);
        report.result.unwrap()
    };
    // Thursday, 26 November 2026, 02:00 UTC: ten o'clock in China. Then two in the morning, and Saturday at ten.
    let (thursday, night, saturday) = (1_795_658_400, 1_795_629_600, 1_795_831_200);

    let dear = ask(thursday);
    assert_eq!(dear.len(), 6, "three types in two zones: {dear:?}");
    assert!(
        dear.iter()
            .all(|it| candidates[it.candidate].offerings[it.offering].capacity_type == SPOT)
    );
    assert_eq!(dear[0].price_micros, 20);
    assert_eq!(ask(night), []);
    assert_eq!(ask(saturday), []);
}

fn boot(file: &str, config: &str) -> Result<Vec<Part>, String> {
    let join = Part {
        content_type: "text/x-shellscript".into(),
        name: Some("join.sh".into()),
        body: "#!/bin/bash\njoin\n".into(),
    };
    let input = BootstrapInput {
        node: Node {
            node_pool: "default".into(),
            node_class: "default".into(),
            region: "cn-hangzhou".into(),
            instance_types: vec!["ecs.g7.large".into()],
            architecture: "amd64".into(),
            capacity_type: "on-demand".into(),
            image_id: "m-1".into(),
            image_family: "acs:alibaba_cloud_linux_3_2104_lts_x64".into(),
            kubernetes_version: "1.36".into(),
            max_pods: 64,
            kubelet_json: "{}".into(),
            labels: vec![],
            taints: vec![],
            max_bytes: 16 << 10,
        },
        parts: vec![join.clone()],
        host_owned: vec![join],
    };
    let policy = load(file, Hook::BootstrapUserData);
    let errors = policy
        .validate_config(config, &CallLimits::default())
        .unwrap();
    if let Some(error) = errors.first() {
        return Err(error.to_string());
    }
    let report = policy.render(config, &CallLimits::default(), &input);
    report.result.map_err(|error| error.to_string())
}

#[test]
fn containerd_proxy_comes_before_the_node_joins_and_refuses_what_is_no_address() {
    let parts = boot(
        "containerd_proxy.wasm",
        r#"{"proxy": "http://10.1.2.3:3128", "noProxy": [".svc", "10.0.0.0/8"]}"#,
    )
    .unwrap();

    assert_eq!(parts.len(), 2);
    assert!(
        parts[0]
            .body
            .contains("Environment=HTTPS_PROXY=http://10.1.2.3:3128\n"),
        "{}",
        parts[0].body
    );
    assert!(
        parts[0]
            .body
            .contains("Environment=NO_PROXY=.svc,10.0.0.0/8\n"),
        "{}",
        parts[0].body
    );
    let error = boot(
        "containerd_proxy.wasm",
        r#"{"proxy": "http://x\nEND\nrm -rf /"}"#,
    )
    .unwrap_err();
    assert!(error.starts_with("/proxy"), "{error}");
}

#[test]
fn mount_data_disk_mounts_before_the_node_joins_and_refuses_what_is_no_path() {
    let parts = boot(
        "mount_data_disk.wasm",
        r#"{"device": "/dev/vdc", "mountPoint": "/data", "fileSystem": "xfs"}"#,
    );
    let parts = parts.unwrap();

    assert_eq!(parts.len(), 2);
    assert!(
        parts[0]
            .body
            .contains("blkid /dev/vdc > /dev/null || mkfs -t xfs /dev/vdc\n"),
        "{}",
        parts[0].body
    );
    let error = boot("mount_data_disk.wasm", r#"{"mountPoint": "/data; reboot"}"#).unwrap_err();
    assert!(error.starts_with("/mountPoint"), "{error}");
}
