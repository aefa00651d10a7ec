//! Node pools of ACK, as DescribeClusterNodePools answers.

use kerf_api::names::label;
use serde_json::{Map, Value, json};

use super::Conversion;
use super::class::Class;
use super::pool::Pool;
use super::source::Source;

/// Values of the cloud that are not the user's words.
const OF_THE_CLOUD: &[&str] = &[
    "/nodepool_info/nodepool_id",
    "/nodepool_info/created",
    "/nodepool_info/updated",
    "/nodepool_info/region_id",
    "/nodepool_info/type",
    "/nodepool_info/is_default",
    "/scaling_group/scaling_group_id",
];

/// All node pools of an answer.
pub(super) fn node_pools(document: Value) -> Conversion {
    let mut conversion = Conversion::default();
    let mut answer = Source::new(document);
    let mut pools = answer.list("/nodepools");
    if pools.is_empty() {
        pools.push(json!({
            "nodepool_info": answer.take("/nodepool_info"), "scaling_group": answer.take("/scaling_group"),
            "auto_scaling": answer.take("/auto_scaling"), "kubernetes_config": answer.take("/kubernetes_config"),
            "node_config": answer.take("/node_config"),
        }));
    }
    for pool in pools {
        convert(pool, &mut conversion);
    }
    let rest = answer.finish();
    if let Some(output) = conversion.outputs.last_mut() {
        output.comments.extend(rest);
    }
    conversion
}

fn convert(pool: Value, conversion: &mut Conversion) {
    let groups = pool["scaling_group"]["security_group_ids"].clone();
    let single = pool["scaling_group"]["security_group_id"].clone();
    let mut source = Source::new(pool);
    for pointer in OF_THE_CLOUD {
        source.refuse(pointer, "is the cloud's own, and is left out");
    }
    let name = source
        .text("/nodepool_info/name")
        .unwrap_or_else(|| "default".to_owned())
        .to_lowercase();
    let name = name.replace(|it: char| !(it.is_ascii_alphanumeric() || it == '-'), "-");
    let mut class = Class::default();
    source.take("/scaling_group/security_group_ids");
    let ids = |list: Vec<Value>| {
        Value::from(
            list.into_iter()
                .map(|id| json!({"id": id}))
                .collect::<Vec<_>>(),
        )
    };
    let groups = match groups {
        Value::Array(list) if !list.is_empty() => list,
        _ if single.is_string() => vec![single.clone()],
        _ => Vec::new(),
    };
    source.take("/scaling_group/security_group_id");
    if single.is_string() && !groups.contains(&single) {
        source.warn(
            &format!("security_group_id ({single})"),
            "is left out beside security_group_ids, which does not have it",
        );
    }
    class.set("securityGroupSelectorTerms", ids(groups));
    let switches = source.list("/scaling_group/vswitch_ids");
    class.set("vSwitchSelectorTerms", ids(switches));
    set_class(&mut class, &mut source);

    let mut pool = Pool {
        name: name.clone(),
        class: name.clone(),
        ..Pool::default()
    };
    set_pool(&mut pool, &mut class, &mut source);
    let class = class.into_output(&name, Source::part(Value::Null, ""));
    conversion.outputs.push(class);
    conversion.outputs.push(pool.into_output(source));
}

fn set_class(class: &mut Class, source: &mut Source) {
    let image_type = source.text("/scaling_group/image_type").unwrap_or_default();
    source.refuse("/scaling_group/platform", "follows from the image");
    if let Some(id) = source.text("/scaling_group/image_id") {
        if image_type.is_empty() || image_type.to_lowercase().contains("custom") {
            class.set("imageSelectorTerms", json!([{"id": id}]));
        } else {
            source.warn("image_id", &format!("{id} became the newest image of its family: pin it with imageSelectorTerms: [{{id: {id}}}]"));
        }
    }
    match image_type.as_str() {
        "ContainerOS" => class.set(
            "imageSelectorTerms",
            json!([{"alias": "ContainerOS@latest"}]),
        ),
        "" | "AliyunLinux3" | "AliyunLinux3Arm64" | "custom" | "Custom" => {}
        other => source.warn(
            &format!("image_type ({other})"),
            "has no alias here: select its images by family, name or id in imageSelectorTerms",
        ),
    }
    set_internet(class, source);
    let disk = disk(source, "/scaling_group/system_disk_");
    if !disk.is_empty() {
        class.set("systemDisk", disk);
    }
    let mut data = Vec::new();
    for (idx, item) in source
        .list("/scaling_group/data_disks")
        .into_iter()
        .enumerate()
    {
        let mut part = Source::part(item, &format!("data_disks[{idx}]."));
        data.push(Value::from(self::disk(&mut part, "/")));
        source.absorb(part);
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
    for (old, new) in [
        ("/scaling_group/key_pair", "keyPairName"),
        ("/nodepool_info/resource_group_id", "resourceGroupId"),
        ("/scaling_group/ram_role_name", "role"),
    ] {
        if let Some(value) = source.text(old) {
            class.set(new, value);
        }
    }
    source.refuse(
        "/scaling_group/login_password",
        "passwords are not written into objects: use keyPairName",
    );
    source.refuse(
        "/kubernetes_config/user_data",
        "runs besides the join script: decode it from base64 and set userData",
    );
    let tags = pairs(source.list("/scaling_group/tags"));
    class.tags(tags, source);
}

fn set_internet(class: &mut Class, source: &mut Source) {
    let charge_type = source.text("/scaling_group/internet_charge_type");
    let bandwidth = source.text("/scaling_group/internet_max_bandwidth_out");
    let bandwidth = bandwidth.and_then(|text| text.parse::<i64>().ok());
    match (charge_type, bandwidth) {
        (_, Some(bandwidth)) if bandwidth < 0 => {}
        (Some(charge_type), bandwidth) => class.set(
            "internetAccessible",
            json!({"chargeType": charge_type, "maxBandwidthOut": bandwidth.unwrap_or_default()}),
        ),
        (None, Some(bandwidth)) => {
            class.set("internetAccessible", json!({"maxBandwidthOut": bandwidth}));
        }
        (None, None) => {}
    }
}

fn disk(source: &mut Source, at: &str) -> Map<String, Value> {
    let mut disk = Map::new();
    for (old, new) in [
        ("category", "category"),
        ("categories", "categories"),
        ("performance_level", "performanceLevel"),
        ("encrypted", "encrypted"),
        ("kms_key_id", "kmsKeyID"),
        ("snapshot_id", "snapshotID"),
        ("device", "device"),
    ] {
        let value = source.take(&format!("{at}{old}"));
        let value = value.filter(|it| it != "" && *it != json!([]));
        match value {
            Some(Value::String(text)) if new == "encrypted" => {
                disk.insert(new.to_owned(), (text == "true").into());
            }
            Some(value) => {
                disk.insert(new.to_owned(), value);
            }
            None => {}
        }
    }
    if disk.contains_key("categories")
        && let Some(category) = disk.shift_remove("category")
    {
        source.warn(
            &format!("category ({category})"),
            "is left out beside categories",
        );
    }
    if let Some(size) = source
        .text(&format!("{at}size"))
        .and_then(|size| size.parse::<i32>().ok())
    {
        disk.insert("size".to_owned(), size.into());
    }
    disk
}

fn set_pool(pool: &mut Pool, class: &mut Class, source: &mut Source) {
    let types = source.list("/scaling_group/instance_types");
    if !types.is_empty() {
        pool.requirements
            .push(json!({"key": label::INSTANCE_TYPE, "operator": "In", "values": types}));
    }
    let spot = source
        .text("/scaling_group/spot_strategy")
        .filter(|it| it != "NoSpot");
    if let Some(kind) = source.text("/scaling_group/instance_charge_type")
        && kind != "PostPaid"
    {
        source.warn(
            &format!("instance_charge_type ({kind})"),
            "became pay-as-you-go: nodes that come and go are not subscribed to",
        );
    }
    let capacity = if spot.is_some() { "spot" } else { "on-demand" };
    pool.requirements
        .push(json!({"key": label::CAPACITY_TYPE, "operator": "In", "values": [capacity]}));
    let prices = source.list("/scaling_group/spot_price_limit");
    let number = |it: &Value| {
        it["price_limit"]
            .as_f64()
            .or_else(|| it["price_limit"].as_str()?.parse().ok())
    };
    let highest = prices.iter().filter_map(number).reduce(f64::max);
    if spot.as_deref() != Some("SpotWithPriceLimit") && !prices.is_empty() {
        source.warn(
            &format!("spot_price_limit ({})", Value::from(prices.clone())),
            "is left out: it counts with SpotWithPriceLimit only",
        );
    }
    if let Some(spot) = spot {
        if spot == "SpotWithPriceLimit"
            && let Some(highest) = highest
        {
            class.set("spotStrategy", spot);
            class.set("spotPriceLimit", highest);
            if !prices.is_empty() {
                source.warn(
                    &format!("spot_price_limit ({})", Value::from(prices)),
                    "one limit counts for all types here: the highest was taken",
                );
            }
        } else {
            class.set("spotStrategy", "SpotAsPriceGo");
        }
    }
    pool.labels = pairs(source.list("/kubernetes_config/labels"));
    let taints = source.list("/kubernetes_config/taints");
    if !taints.is_empty() {
        pool.template.insert("taints".to_owned(), taints.into());
    }
    if let Some(most) = source.text("/auto_scaling/max_instances") {
        pool.spec
            .insert("limits".to_owned(), json!({"nodes": most}));
    }
    source.refuse(
        "/auto_scaling/min_instances",
        "pools grow from nothing: keep room with a CapacityBuffer",
    );
    source.refuse(
        "/auto_scaling/enable",
        "a pool here always scales: set limits to keep it from growing",
    );
    set_kubelet(class, source);
}

/// The kubelet's settings have the same names there.
fn set_kubelet(class: &mut Class, source: &mut Source) {
    const SAME: [&str; 9] = [
        "systemReserved",
        "kubeReserved",
        "evictionHard",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "maxPods",
        "cpuCFSQuota",
    ];
    let mut kubelet = Map::new();
    for field in SAME {
        if let Some(value) = source.take(&format!("/node_config/kubelet_configuration/{field}")) {
            kubelet.insert(field.to_owned(), value);
        }
    }
    if !kubelet.is_empty() {
        class.set("kubelet", kubelet);
    }
}

fn pairs(list: Vec<Value>) -> Map<String, Value> {
    list.into_iter()
        .filter_map(|pair| Some((pair["key"].as_str()?.to_owned(), pair["value"].clone())))
        .collect()
}
