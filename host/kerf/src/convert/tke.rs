//! TKEMachineNodeClass.

use serde_json::{Map, Value, json};

use super::Conversion;
use super::class::{Class, alone, set_terms, terms};
use super::source::Source;

/// The class with the same disks, address and keys.
pub(super) fn class(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    set_terms(&mut class, &mut source);
    let keys = source.list("/spec/sshKeySelectorTerms");
    let keys = terms(keys, "sshKeySelectorTerms", &mut source);
    if !keys.is_empty() {
        class.set("sshKeySelectorTerms", keys);
    }
    set_internet(&mut class, &mut source);
    let system = source.map("/spec/systemDisk");
    if !system.is_empty() {
        let disk = disk(system.into(), "systemDisk.", &mut source);
        class.set("systemDisk", disk);
    }
    let mut data = Vec::new();
    for (idx, item) in source.list("/spec/dataDisks").into_iter().enumerate() {
        data.push(Value::from(disk(
            item,
            &format!("dataDisks[{idx}]."),
            &mut source,
        )));
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
    for script in ["preInitScript", "postInitScript"] {
        source.refuse(
            &format!("/spec/lifecycleScript/{script}"),
            "is written for the images of another cloud: rewrite it as userData, which runs before the node joins",
        );
    }
    let tags = source.map("/spec/tags");
    class.tags(tags, &mut source);
    class.set_some("kubelet", source.take("/spec/kubelet"));
    alone(class.into_output(&name, source))
}

fn set_internet(class: &mut Class, source: &mut Source) {
    let internet = source.map("/spec/internetAccessible");
    if internet.is_empty() {
        return;
    }
    let mut part = Source::part(internet.into(), "internetAccessible.");
    let kind = part.text("/chargeType");
    let charge_type = match kind.as_deref() {
        None | Some("TrafficPostpaidByHour") => "PayByTraffic",
        Some("BandwidthPostpaidByHour") => "PayByBandwidth",
        Some(other) => {
            part.warn(
                &format!("chargeType ({other})"),
                "became PayByTraffic: there are PayByTraffic and PayByBandwidth",
            );
            "PayByTraffic"
        }
    };
    let bandwidth = part.take("/maxBandwidthOut").unwrap_or_else(|| 0.into());
    class.set(
        "internetAccessible",
        json!({"chargeType": charge_type, "maxBandwidthOut": bandwidth}),
    );
    source.absorb(part);
}

fn disk(disk: Value, at: &str, source: &mut Source) -> Map<String, Value> {
    let mut part = Source::part(disk, at);
    let kind = part.text("/type").unwrap_or_default();
    let category = match kind.as_str() {
        "CloudPremium" => "cloud_efficiency",
        "CloudSSD" => "cloud_ssd",
        _ => "cloud_essd",
    };
    part.warn(
        &format!("type ({kind})"),
        &format!("became {category}: newer instance types take cloud_essd only"),
    );
    let mut disk = Map::from_iter([("categories".to_owned(), json!([category, "cloud_essd"]))]);
    if category == "cloud_essd" {
        disk.insert("categories".to_owned(), json!([category]));
    }
    for field in ["size", "mountTarget", "fileSystem"] {
        if let Some(value) = part.take(&format!("/{field}")) {
            disk.insert(field.to_owned(), value);
        }
    }
    let file_system = disk.get("fileSystem").and_then(Value::as_str);
    if file_system.is_some_and(|it| !["ext4", "xfs"].contains(&it)) {
        let found = disk.shift_remove("fileSystem").unwrap_or_default();
        part.warn(
            &format!("fileSystem ({found})"),
            "became ext4: there are ext4 and xfs",
        );
    }
    source.absorb(part);
    disk
}
