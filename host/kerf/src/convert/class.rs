//! Node classes of other providers.

use kerf_api::names::label;
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Conversion, Output};

const IMAGE_DEFAULT: &str = "AlibabaCloudLinux3@latest";
/// Domains and beginnings of tags that the definition refuses.
const RESERVED_TAGS: &[&str] = &["kubernetes.io/cluster", "ecs:", "acs:", "aliyun"];
/// Mbit/s of a public address about which only its existence is known.
const BANDWIDTH_OUT: u32 = 5;
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

    pub(super) fn set_some(&mut self, field: &str, value: Option<Value>) {
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

pub(super) fn alone(output: Output) -> Conversion {
    Conversion {
        outputs: vec![output],
        ..Conversion::default()
    }
}

/// Selector terms of another cloud: tags and names carry over, ids do not.
pub(super) fn terms(list: Vec<Value>, field: &str, source: &mut Source) -> Vec<Value> {
    let mut terms = Vec::new();
    for (idx, item) in list.into_iter().enumerate() {
        let mut part = Source::part(item, &format!("{field}[{idx}]."));
        let mut term = Map::new();
        let tags = part.map("/tags");
        if !tags.is_empty() {
            term.insert("tags".to_owned(), tags.into());
        }
        if ["securityGroupSelectorTerms", "sshKeySelectorTerms"].contains(&field)
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

pub(super) fn set_terms(class: &mut Class, source: &mut Source) {
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
    set_machine(&mut class, &mut source);
    let mut metadata = Map::new();
    for field in ["httpEndpoint", "httpPutResponseHopLimit", "httpTokens"] {
        if let Some(value) = source.take(&format!("/spec/metadataOptions/{field}")) {
            metadata.insert(field.to_owned(), value);
        }
    }
    if !metadata.is_empty() {
        class.set("metadataOptions", metadata);
    }
    set_disks(&mut class, &mut source);
    class.into_output(name, source)
}

/// What concerns the machine itself.
fn set_machine(class: &mut Class, source: &mut Source) {
    match source.text("/spec/instanceStorePolicy").as_deref() {
        Some("RAID0") => class.set("instanceStorePolicy", "RAID0"),
        Some(other) => source.warn(
            &format!("instanceStorePolicy ({other})"),
            "is not known here: RAID0 is",
        ),
        None => {}
    }
    match source.take("/spec/associatePublicIPAddress") {
        Some(Value::Bool(true)) => {
            class.set(
                "internetAccessible",
                json!({"chargeType": "PayByTraffic", "maxBandwidthOut": BANDWIDTH_OUT}),
            );
            source.warn(
                "associatePublicIPAddress (true)",
                "became internetAccessible: choose how traffic is paid for, and maxBandwidthOut in Mbit/s",
            );
        }
        Some(other) => source.warn(
            &format!("associatePublicIPAddress ({other})"),
            "is what holds without it: instances have no public address",
        ),
        None => {}
    }
    for (index, term) in source
        .list("/spec/capacityReservationSelectorTerms")
        .iter()
        .enumerate()
    {
        source.warn(
            &format!("capacityReservationSelectorTerms[{index}] ({term})"),
            "names capacity of another cloud: choose capacityReservationPreference, with target also the terms of your private pools",
        );
    }
}

/// The disk that holds what pods write becomes the system disk, which here holds the operating system too.
fn set_disks(class: &mut Class, source: &mut Source) {
    let mappings = source.list("/spec/blockDeviceMappings");
    let root = mappings
        .iter()
        .position(|it| it["rootVolume"] == true)
        .unwrap_or_default();
    let mut data = Vec::new();
    for (idx, item) in mappings.into_iter().enumerate() {
        let mut part = Source::part(item, &format!("blockDeviceMappings[{idx}]."));
        part.refuse(
            "/deviceName",
            "disks are attached in the order in which they are written, the system disk first",
        );
        part.refuse(
            "/rootVolume",
            "the system disk holds what pods write, unless a data disk is mounted for that",
        );
        let mut disk = aws_disk(&mut part);
        if idx == root {
            part.refuse(
                "/ebs/deleteOnTermination",
                "the system disk always ends with its instance",
            );
            class.set("systemDisk", disk);
        } else {
            if let Some(is_deleted) = part.take("/ebs/deleteOnTermination") {
                disk.insert("deleteWithInstance".to_owned(), is_deleted);
            }
            data.push(Value::from(disk));
        }
        source.absorb(part);
    }
    if !data.is_empty() {
        class.set("dataDisks", data);
    }
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

/// The helm values of an AWS installation: what they say about nodes.
pub(super) fn helm_values(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let mut class = Class::default();
    // Since 0.19, since 0.33, and before.
    for at in ["/settings/aws", "/settings", "/controller", ""] {
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
        for part in ["defaultInstanceProfile", "aws/defaultInstanceProfile"] {
            source.refuse(
                &format!("{at}/{part}"),
                "a profile of another cloud: name a RAM role in role",
            );
        }
    }
    alone(class.into_output("default", source))
}

/// Whether a document without a kind is the values of a chart.
pub(super) fn is_helm_values(document: &Value) -> bool {
    let names = ["settings", "clusterName", "clusterEndpoint"];
    names.iter().any(|name| document.get(name).is_some())
}
