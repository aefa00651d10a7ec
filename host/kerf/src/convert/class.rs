//! Node classes of other providers.

use kerf_api::names::label;
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Conversion, Output};

const IMAGE_DEFAULT: &str = "AlibabaCloudLinux3@latest";
/// Domains and beginnings of tags that the definition refuses.
const RESERVED_TAGS: &[&str] = &["kubernetes.io/cluster", "ecs:", "acs:", "aliyun"];
const OTHER_CLOUD_ID: &str = "an id of another cloud: select yours by id or tags";

/// A class that is being made.
#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) spec: Map<String, Value>,
}

impl Class {
    pub(super) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.spec.insert(field.to_owned(), value.into());
    }

    fn set_some(&mut self, field: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.set(field, value);
        }
    }

    pub(super) fn tags(&mut self, tags: Map<String, Value>, source: &mut Source) {
        let mut kept = Map::new();
        for (key, value) in tags {
            let is_reserved = RESERVED_TAGS.iter().any(|start| key.starts_with(start))
                || (key.contains("karpenter.") && key != "karpenter.sh/discovery");
            if is_reserved || key.is_empty() {
                source.warn(&format!("tags.{key}"), "is reserved, and is left out");
            } else {
                kept.insert(key, value);
            }
        }
        if !kept.is_empty() {
            self.set("tags", kept);
        }
    }

    /// The object. What must be there and was not said is filled with what is to be changed.
    pub(super) fn into_output(mut self, name: &str, mut source: Source) -> Output {
        for (field, what) in [
            ("vSwitchSelectorTerms", "vSwitches"),
            ("securityGroupSelectorTerms", "security groups"),
        ] {
            let is_there = self
                .spec
                .get(field)
                .and_then(Value::as_array)
                .is_some_and(|it| !it.is_empty());
            if !is_there {
                self.set(
                    field,
                    json!([{"tags": {"karpenter.sh/discovery": "CHANGE-ME"}}]),
                );
                source.warn(
                    field,
                    &format!("choose: tag your {what}, or name them by id"),
                );
            }
        }
        if !self.spec.contains_key("imageSelectorTerms") {
            self.set("imageSelectorTerms", json!([{"alias": IMAGE_DEFAULT}]));
            source.warn("imageSelectorTerms", "choose: AlibabaCloudLinux3@latest is the usual image, ContainerOS@latest the lean one");
        }
        Output {
            comments: source.finish(),
            object: json!({
                "apiVersion": format!("{}/v1alpha1", label::PROVIDER_DOMAIN), "kind": "ECSNodeClass",
                "metadata": {"name": name}, "spec": self.spec,
            }),
        }
    }
}

/// A class about which nothing is known.
pub(super) fn empty(name: &str) -> Output {
    Class::default().into_output(name, Source::part(Value::Null, ""))
}

fn alone(output: Output) -> Conversion {
    Conversion {
        outputs: vec![output],
        ..Conversion::default()
    }
}

/// Selector terms of another cloud: tags and names carry over, ids do not.
fn terms(list: Vec<Value>, field: &str, source: &mut Source) -> Vec<Value> {
    let mut terms = Vec::new();
    for (idx, item) in list.into_iter().enumerate() {
        let mut part = Source::part(item, &format!("{field}[{idx}]."));
        let mut term = Map::new();
        let tags = part.map("/tags");
        if !tags.is_empty() {
            term.insert("tags".to_owned(), tags.into());
        }
        if field == "securityGroupSelectorTerms"
            && let Some(name) = part.text("/name")
        {
            term.insert("name".to_owned(), name.into());
        }
        part.refuse("/id", OTHER_CLOUD_ID);
        source.absorb(part);
        if !term.is_empty() {
            terms.push(term.into());
        }
    }
    terms
}

/// `subnetSelector: {tag: value}`: one term of tags; ids and names as tags are taken apart.
fn selector(map: Map<String, Value>, field: &str, source: &mut Source) -> Vec<Value> {
    let mut tags = map;
    for key in ["aws-ids", "aws::ids"] {
        if let Some(ids) = tags.shift_remove(key) {
            source.warn(&format!("{field}.{key} ({ids})"), OTHER_CLOUD_ID);
        }
    }
    if tags.is_empty() {
        Vec::new()
    } else {
        vec![json!({"tags": tags})]
    }
}

fn set_terms(class: &mut Class, source: &mut Source) {
    for (old, new) in [
        ("subnetSelector", "vSwitchSelectorTerms"),
        ("securityGroupSelector", "securityGroupSelectorTerms"),
    ] {
        let map = source.map(&format!("/spec/{old}"));
        let list = source.list(&format!("/spec/{old}Terms"));
        let mut all = selector(map, old, source);
        all.extend(terms(list, new, source));
        if !all.is_empty() {
            class.set(new, all);
        }
    }
}

/// AWSNodeTemplate, and EC2NodeClass v1beta1 and v1.
pub(super) fn aws(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    alone(aws_class(&name, source, Class::default()))
}

/// `spec.provider` and `spec.cluster` of a Provisioner.
pub(super) fn inline_provider(
    name: &str,
    provider: &Map<String, Value>,
    cluster: &Map<String, Value>,
) -> Output {
    let mut class = Class::default();
    class.set_some("clusterName", cluster.get("name").cloned());
    class.set_some("clusterEndpoint", cluster.get("endpoint").cloned());
    let mut source = Source::new(json!({"spec": provider}));
    for (key, value) in cluster {
        if key != "name" && key != "endpoint" {
            source.warn(
                &format!("cluster.{key} ({value})"),
                "has no equal here and is left out",
            );
        }
    }
    aws_class(name, source, class)
}

fn aws_class(name: &str, mut source: Source, mut class: Class) -> Output {
    set_terms(&mut class, &mut source);
    let family = source.text("/spec/amiFamily").unwrap_or_default();
    if family == "Bottlerocket" {
        class.set(
            "imageSelectorTerms",
            json!([{"alias": "ContainerOS@latest"}]),
        );
        source.warn(
            "amiFamily",
            "Bottlerocket became ContainerOS, the lean image of this cloud",
        );
    } else if !family.is_empty() {
        class.set("imageSelectorTerms", json!([{"alias": IMAGE_DEFAULT}]));
        source.warn("amiFamily", &format!("{family} became {IMAGE_DEFAULT}"));
    }
    source.refuse(
        "/spec/amiSelector",
        "images of another cloud: select yours in imageSelectorTerms",
    );
    source.refuse(
        "/spec/amiSelectorTerms",
        "images of another cloud: select yours in imageSelectorTerms",
    );
    source.refuse(
        "/spec/role",
        "a role of another cloud: name a RAM role in role",
    );
    source.refuse(
        "/spec/instanceProfile",
        "a profile of another cloud: name a RAM role in role",
    );
    source.refuse(
        "/spec/userData",
        "is written for the images of another cloud: rewrite it as userData",
    );
    let tags = source.map("/spec/tags");
    class.tags(tags, &mut source);
    class.set_some("kubelet", source.take("/spec/kubelet"));
    let mut metadata = Map::new();
    for field in ["httpEndpoint", "httpPutResponseHopLimit", "httpTokens"] {
        if let Some(value) = source.take(&format!("/spec/metadataOptions/{field}")) {
            metadata.insert(field.to_owned(), value);
        }
    }
    if !metadata.is_empty() {
        class.set("metadataOptions", metadata);
    }
    let mut data = Vec::new();
    for (idx, item) in source
        .list("/spec/blockDeviceMappings")
        .into_iter()
        .enumerate()
    {
        let mut part = Source::part(item, &format!("blockDeviceMappings[{idx}]."));
        let is_system = idx == 0 || part.take("/rootVolume") == Some(Value::Bool(true));
        part.take("/deviceName");
        let mut disk = aws_disk(&mut part);
        if !is_system {
            if let Some(is_deleted) = part.take("/ebs/deleteOnTermination") {
                disk.insert("deleteWithInstance".to_owned(), is_deleted);
            }
            data.push(Value::from(disk));
        } else {
            part.take("/ebs/deleteOnTermination");
            class.set("systemDisk", disk);
        }
        source.absorb(part);
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
    class.into_output(name, source)
}

fn aws_disk(part: &mut Source) -> Map<String, Value> {
    let mut disk = Map::new();
    disk.insert("category".to_owned(), "cloud_essd".into());
    if let Some(kind) = part.text("/ebs/volumeType") {
        part.warn(
            &format!("volumeType ({kind})"),
            "became cloud_essd: choose performanceLevel",
        );
    }
    if let Some(size) = part.take("/ebs/volumeSize") {
        disk.insert("volumeSize".to_owned(), size);
    }
    if let Some(encrypted) = part.take("/ebs/encrypted") {
        disk.insert("encrypted".to_owned(), encrypted);
    }
    part.refuse(
        "/ebs/kmsKeyID",
        "a key of another cloud: name yours in kmsKeyID",
    );
    disk
}

/// TKEMachineNodeClass.
pub(super) fn tke(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    set_terms(&mut class, &mut source);
    source.refuse(
        "/spec/sshKeySelectorTerms",
        "keys are named here: set keyPairName",
    );
    source.refuse(
        "/spec/internetAccessible",
        "instances have no public address here: give the vSwitches a NAT gateway",
    );
    let system = source.map("/spec/systemDisk");
    if !system.is_empty() {
        let disk = tke_disk(system.into(), "systemDisk.", &mut source);
        class.set("systemDisk", disk);
    }
    let mut data = Vec::new();
    for (idx, mut item) in source.list("/spec/dataDisks").into_iter().enumerate() {
        for field in ["mountTarget", "fileSystem"] {
            if let Some(value) = item.as_object_mut().and_then(|it| it.shift_remove(field)) {
                class.set("formatDataDisk", true);
                source.warn(
                    &format!("dataDisks[{idx}].{field} ({value})"),
                    "the join script formats and mounts the disk for container data (formatDataDisk); another place or file system needs userData",
                );
            }
        }
        data.push(Value::from(tke_disk(
            item,
            &format!("dataDisks[{idx}]."),
            &mut source,
        )));
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
    let tags = source.map("/spec/tags");
    class.tags(tags, &mut source);
    class.set_some("kubelet", source.take("/spec/kubelet"));
    alone(class.into_output(&name, source))
}

fn tke_disk(disk: Value, at: &str, source: &mut Source) -> Map<String, Value> {
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
    if let Some(size) = part.take("/size") {
        disk.insert("size".to_owned(), size);
    }
    source.absorb(part);
    disk
}

/// The ECSNodeClass of the other Alibaba Cloud provider.
pub(super) fn other_alibaba(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    for field in [
        "vSwitchSelectorTerms",
        "vSwitchSelectionPolicy",
        "securityGroupSelectorTerms",
        "resourceGroupId",
        "formatDataDisk",
        "userData",
        "keyPairName",
        "passwordInherit",
    ] {
        class.set_some(field, source.take(&format!("/spec/{field}")));
    }
    class.set_some("kubelet", source.take("/spec/kubeletConfiguration"));
    source.refuse(
        "/spec/password",
        "passwords are not written into objects: use keyPairName, or passwordInherit",
    );
    let images: Vec<Value> = source
        .list("/spec/imageSelectorTerms")
        .into_iter()
        .map(|mut term| {
            if let Some(alias) = term["alias"].as_str().filter(|alias| !alias.contains('@')) {
                term["alias"] = format!("{alias}@latest").into();
            }
            term
        })
        .collect();
    if !images.is_empty() {
        class.set("imageSelectorTerms", images);
    }
    let mut system = source.map("/spec/systemDisk");
    if system.contains_key("volumeSize") {
        // There volumeSize wins over size.
        system.shift_remove("size");
    }
    if !system.is_empty() {
        class.set("systemDisk", system);
    }
    let categories = source.take("/spec/dataDiskCategories");
    let mut data = source.list("/spec/dataDisks");
    for disk in data.iter_mut().filter_map(Value::as_object_mut) {
        disk.entry("volumeSize").or_insert_with(|| "20Gi".into());
        if let Some(categories) = &categories {
            disk.insert("categories".to_owned(), categories.clone());
        }
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
    let tags = source.map("/spec/tags");
    class.tags(tags, &mut source);
    alone(class.into_output(&name, source))
}

/// The helm values of an AWS installation: what they say about nodes.
pub(super) fn helm_values(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    for at in ["/settings/aws", "/settings"] {
        class.set_some(
            "clusterEndpoint",
            source.take(&format!("{at}/clusterEndpoint")),
        );
        if let Some(name) = source.take(&format!("{at}/clusterName")) {
            for field in ["vSwitchSelectorTerms", "securityGroupSelectorTerms"] {
                class.set(field, json!([{"tags": {"karpenter.sh/discovery": name}}]));
            }
            class.set("clusterName", name);
        }
        source.refuse(
            &format!("{at}/defaultInstanceProfile"),
            "a profile of another cloud: name a RAM role in role",
        );
    }
    alone(class.into_output("default", source))
}
