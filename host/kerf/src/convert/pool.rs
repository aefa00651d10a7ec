//! Provisioners and NodePools of other providers.

use kerf_api::names::label;
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Conversion, Output, class, requirement};

/// A pool that is being made.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) labels: Map<String, Value>,
    pub(super) requirements: Vec<Value>,
    /// Further fields of spec.template.spec.
    pub(super) template: Map<String, Value>,
    /// Further fields of spec.
    pub(super) spec: Map<String, Value>,
    pub(super) annotations: Map<String, Value>,
}

impl Pool {
    pub(super) fn into_output(self, mut source: Source) -> Output {
        let mut labels = Map::new();
        for (key, value) in self.labels {
            if requirement::is_refused(&key) {
                source.warn(
                    &format!("label {key}"),
                    "the controller sets labels of this domain itself",
                );
            } else {
                labels.insert(key, value);
            }
        }
        let mut spec = self.template;
        spec.insert("requirements".to_owned(), self.requirements.into());
        spec.insert(
            "nodeClassRef".to_owned(),
            json!({"group": label::PROVIDER_DOMAIN, "kind": "ECSNodeClass", "name": self.class}),
        );
        let mut metadata = Map::new();
        for (name, map) in [("labels", labels), ("annotations", self.annotations)] {
            if !map.is_empty() {
                metadata.insert(name.to_owned(), map.into());
            }
        }
        let mut template = Map::new();
        if !metadata.is_empty() {
            template.insert("metadata".to_owned(), metadata.into());
        }
        template.insert("spec".to_owned(), spec.into());
        let mut pool = Map::from_iter([("template".to_owned(), Value::from(template))]);
        pool.extend(self.spec);
        Output {
            comments: source.finish(),
            object: json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
                "metadata": {"name": self.name}, "spec": pool,
            }),
        }
    }
}

/// Provisioner v1alpha5, and the older form with `spec.cluster`.
pub(super) fn provisioner(document: Value) -> Conversion {
    let mut source = Source::new(document);
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    let class = source
        .text("/spec/providerRef/name")
        .unwrap_or_else(|| name.clone());
    source.take("/spec/providerRef/apiVersion");
    source.take("/spec/providerRef/kind");
    let mut conversion = Conversion::default();
    let cluster = source.map("/spec/cluster");
    let provider = source.map("/spec/provider");
    if !cluster.is_empty() || !provider.is_empty() {
        conversion
            .outputs
            .push(class::inline_provider(&class, &provider, &cluster));
    }
    if let Some(kubelet) = source.take("/spec/kubeletConfiguration") {
        conversion.kubelets.insert(class.clone(), kubelet);
    }
    let items = source.list("/spec/requirements");
    let mut pool = Pool {
        requirements: requirement::convert(items, true, &mut source),
        labels: source.map("/spec/labels"),
        annotations: source.map("/spec/annotations"),
        name,
        class,
        ..Pool::default()
    };
    for list in ["taints", "startupTaints"] {
        if let Some(taints) = source.take(&format!("/spec/{list}")) {
            pool.template.insert(list.to_owned(), taints);
        }
    }
    // Without it a Provisioner's nodes never expired; a NodePool's expire after 720h.
    let expire_after = source
        .text("/spec/ttlSecondsUntilExpired")
        .map_or_else(|| "Never".to_owned(), |seconds| format!("{seconds}s"));
    pool.template
        .insert("expireAfter".to_owned(), expire_after.into());
    let limits = source.map("/spec/limits/resources");
    if !limits.is_empty() {
        pool.spec.insert("limits".to_owned(), limits.into());
    }
    if let Some(weight) = source.take("/spec/weight") {
        pool.spec.insert("weight".to_owned(), weight);
    }
    let consolidates = match source.take("/spec/consolidation/enabled") {
        Some(Value::Bool(true)) => true,
        Some(other) => {
            source.warn(
                &format!("consolidation.enabled ({other})"),
                "is what holds without it",
            );
            false
        }
        None => false,
    };
    let empty_after = source.text("/spec/ttlSecondsAfterEmpty");
    if let Some(seconds) = empty_after.as_ref().filter(|_| consolidates) {
        source.warn(
            &format!("ttlSecondsAfterEmpty ({seconds})"),
            "is left out beside consolidation, which takes empty nodes away at once",
        );
    }
    let (policy, after) = match (consolidates, empty_after) {
        (true, _) => ("WhenEmptyOrUnderutilized", "0s".to_owned()),
        (false, Some(seconds)) => ("WhenEmpty", format!("{seconds}s")),
        (false, None) => ("WhenEmpty", "Never".to_owned()),
    };
    pool.spec.insert(
        "disruption".to_owned(),
        json!({"consolidationPolicy": policy, "consolidateAfter": after}),
    );
    conversion.outputs.push(pool.into_output(source));
    conversion
}

/// NodePool v1beta1 and v1, whichever provider its class is of.
pub(super) fn node_pool(document: Value) -> Conversion {
    let is_beta = document["apiVersion"] == "karpenter.sh/v1beta1";
    let mut source = Source::new(document);
    let name = source
        .text("/metadata/name")
        .unwrap_or_else(|| "default".to_owned());
    let reference = source.map("/spec/template/spec/nodeClassRef");
    let of = |key: &str| {
        reference
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = format!("{}{}", of("group"), of("apiVersion"));
    let is_foreign = !group.contains("alibabacloud");
    let items = source.list("/spec/template/spec/requirements");
    let mut conversion = Conversion::default();
    let mut pool = Pool {
        class: Some(of("name"))
            .filter(|name| !name.is_empty())
            .unwrap_or("default")
            .to_owned(),
        requirements: requirement::convert(items, is_foreign, &mut source),
        labels: source.map("/spec/template/metadata/labels"),
        annotations: source.map("/spec/template/metadata/annotations"),
        name,
        ..Pool::default()
    };
    if let Some(kubelet) = source.take("/spec/template/spec/kubelet") {
        conversion.kubelets.insert(pool.class.clone(), kubelet);
    }
    for field in [
        "taints",
        "startupTaints",
        "terminationGracePeriod",
        "expireAfter",
    ] {
        if let Some(value) = source.take(&format!("/spec/template/spec/{field}")) {
            pool.template.insert(field.to_owned(), value);
        }
    }
    if let Some(expire_after) = source.take("/spec/disruption/expireAfter") {
        pool.template.insert("expireAfter".to_owned(), expire_after);
    }
    for field in ["limits", "weight", "replicas"] {
        if let Some(value) = source.take(&format!("/spec/{field}")) {
            pool.spec.insert(field.to_owned(), value);
        }
    }
    let mut disruption = source.map("/spec/disruption");
    let policy = disruption.get("consolidationPolicy").cloned();
    if policy == Some("WhenUnderutilized".into()) {
        disruption.insert(
            "consolidationPolicy".to_owned(),
            "WhenEmptyOrUnderutilized".into(),
        );
    }
    if is_beta && !disruption.contains_key("consolidateAfter") {
        disruption.insert("consolidateAfter".to_owned(), "0s".into());
    }
    if !disruption.is_empty() {
        pool.spec.insert("disruption".to_owned(), disruption.into());
    }
    conversion.outputs.push(pool.into_output(source));
    conversion
}
