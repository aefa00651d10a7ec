//! The ECSNodeClass of the other Alibaba Cloud provider.

use serde_json::{Map, Value, json};

use super::Conversion;
use super::class::{Class, alone};
use super::source::Source;

/// What a data disk has there when it says nothing.
const DATA_DISK_SIZE: &str = "20Gi";

/// The class with the same disks, images and networks.
pub(super) fn class(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    for field in [
        "vSwitchSelectionPolicy",
        "resourceGroupId",
        "formatDataDisk",
        "userData",
        "keyPairName",
    ] {
        class.set_some(field, source.take(&format!("/spec/{field}")));
    }
    for field in ["vSwitchSelectorTerms", "securityGroupSelectorTerms"] {
        let terms = terms(field, &mut source);
        if !terms.is_empty() {
            class.set(field, terms);
        }
    }
    set_log_in(&mut class, &mut source);
    class.set_some("kubelet", source.take("/spec/kubeletConfiguration"));
    set_images(&mut class, &mut source);
    set_disks(&mut class, &mut source);
    let tags = source.map("/spec/tags");
    class.tags(tags, &mut source);
    alone(class.into_output(&name, source))
}

/// Terms in which an id stands alone: what stood beside it becomes a term of its own.
fn terms(field: &str, source: &mut Source) -> Vec<Value> {
    let mut terms = Vec::new();
    for (idx, item) in source
        .list(&format!("/spec/{field}"))
        .into_iter()
        .enumerate()
    {
        let mut part = Source::part(item, &format!("{field}[{idx}]."));
        let id = part.take("/id");
        let mut rest = Map::new();
        for name in ["tags", "name"] {
            if let Some(value) = part.take(&format!("/{name}")) {
                rest.insert(name.to_owned(), value);
            }
        }
        if id.is_some() && !rest.is_empty() {
            part.warn(
                "id",
                "stands alone in a term: the rest became a term of its own",
            );
        }
        terms.extend(id.map(|id| json!({"id": id})));
        terms.extend(Some(Value::from(rest)).filter(|rest| rest != &json!({})));
        source.absorb(part);
    }
    terms
}

fn set_log_in(class: &mut Class, source: &mut Source) {
    source.refuse(
        "/spec/password",
        "passwords are not written into objects: use keyPairName, sshKeySelectorTerms or passwordInherit",
    );
    let Some(inherits) = source.take("/spec/passwordInherit") else {
        return;
    };
    if inherits == true && class.spec.contains_key("keyPairName") {
        source.warn(
            "passwordInherit (true)",
            "is left out: an instance has one way to log in, and keyPairName is set",
        );
    } else {
        class.set("passwordInherit", inherits);
    }
}

fn set_images(class: &mut Class, source: &mut Source) {
    let mut images = Vec::new();
    for (idx, item) in source
        .list("/spec/imageSelectorTerms")
        .into_iter()
        .enumerate()
    {
        let mut part = Source::part(item, &format!("imageSelectorTerms[{idx}]."));
        if let Some(alias) = part.text("/alias") {
            let (family, version) = alias.split_once('@').unwrap_or((&alias, "latest"));
            if version != "latest" {
                part.warn(
                    &format!("alias ({alias})"),
                    "became the newest image of the family, as it was there: name an image by id to keep one",
                );
            }
            images.push(json!({"alias": format!("{family}@latest")}));
        }
        if let Some(id) = part.take("/id") {
            images.push(json!({"id": id}));
        }
        source.absorb(part);
    }
    if !images.is_empty() {
        class.set("imageSelectorTerms", images);
    }
}

fn set_disks(class: &mut Class, source: &mut Source) {
    let system = source.map("/spec/systemDisk");
    if !system.is_empty() {
        let mut part = Source::part(system.into(), "systemDisk.");
        let mut disk = Map::new();
        for field in ["categories", "volumeSize", "performanceLevel"] {
            if let Some(value) = part.take(&format!("/{field}")) {
                disk.insert(field.to_owned(), value);
            }
        }
        if disk.contains_key("volumeSize") {
            part.refuse("/size", "is left out: there volumeSize won over it");
        } else if let Some(size) = part.take("/size") {
            disk.insert("size".to_owned(), size);
        }
        source.absorb(part);
        class.set("systemDisk", disk);
    }
    let categories = source.take("/spec/dataDiskCategories");
    let mut data = Vec::new();
    for (idx, item) in source.list("/spec/dataDisks").into_iter().enumerate() {
        let mut part = Source::part(item, &format!("dataDisks[{idx}]."));
        let mut disk = Map::new();
        for field in ["volumeSize", "device"] {
            if let Some(value) = part.take(&format!("/{field}")) {
                disk.insert(field.to_owned(), value);
            }
        }
        disk.entry("volumeSize")
            .or_insert_with(|| DATA_DISK_SIZE.into());
        if let Some(categories) = &categories {
            disk.insert("categories".to_owned(), categories.clone());
        }
        source.absorb(part);
        data.push(Value::from(disk));
    }
    match categories {
        Some(categories) if data.is_empty() => source.warn(
            &format!("dataDiskCategories ({categories})"),
            "there are no data disks",
        ),
        None if !data.is_empty() => source.warn(
            "dataDisks",
            "were not attached there without dataDiskCategories: leave them out, or keep them as cloud_essd",
        ),
        _ => {}
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
}
