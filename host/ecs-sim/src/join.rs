//! What a machine says when it joins, read as strictly as the kubelet reads its flags.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::params::Params;

/// Labels in Kubernetes' own domains that a kubelet may set on its node; others make it exit.
const KUBERNETES_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
const KUBERNETES_LABEL_DOMAINS: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Join {
    pub(crate) instance_id: String,
    pub(crate) token: String,
    pub(crate) endpoint: String,
    /// The architecture that the attach script was made for.
    pub(crate) arch: String,
    pub(crate) runtime: String,
    pub(crate) runtime_version: String,
    pub(crate) node_name_mode: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) kubelet: KubeletConfig,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// The part of `--node-config` that decides how large a node is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KubeletConfig {
    pub(crate) max_pods: Option<u32>,
    pub(crate) kube_reserved: Option<BTreeMap<String, String>>,
    pub(crate) system_reserved: Option<BTreeMap<String, String>>,
    pub(crate) eviction_hard: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeConfig {
    kubelet_config: KubeletConfig,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("the flag --{0} is missing")]
    MissingFlag(&'static str),
    #[error("label {0:?} is not key=value")]
    ParseLabel(String),
    #[error("unknown 'kubernetes.io' or 'k8s.io' label specified with --node-labels: {0}")]
    ForbiddenLabel(String),
    #[error("taint {0:?} is not key=value:Effect")]
    ParseTaint(String),
    #[error("--node-config is not base64 of JSON: {0}")]
    ParseNodeConfig(String),
    #[error("there is no instance {0} that runs")]
    UnknownInstance(String),
    #[error("the token is not valid: it was not given out, or it has expired")]
    RefuseToken,
    #[error("no API server answers at {given}; the cluster's is {expected}")]
    WrongEndpoint { given: String, expected: String },
    #[error("the attach script is for {script}, the machine is {machine}")]
    WrongArchitecture {
        script: String,
        machine: &'static str,
    },
    #[error("the runtime {0} is not supported; the cluster has containerd")]
    WrongRuntime(String),
    #[error(
        "{instance_type} has {pods} addresses for pods; shared interfaces need more than {needed}"
    )]
    TooFewAddresses {
        instance_type: String,
        pods: u32,
        needed: u32,
    },
    #[error("there is no cluster to register the node in")]
    NoCluster,
}

impl Join {
    pub(crate) fn read(form: &Params) -> Result<Self, JoinError> {
        let flag = |name: &'static str| form.text(name).map(str::to_owned);
        let required = |name: &'static str| flag(name).ok_or(JoinError::MissingFlag(name));
        Ok(Self {
            instance_id: required("instance-id")?,
            token: required("token")?,
            endpoint: required("endpoint")?,
            arch: flag("arch").unwrap_or_default(),
            runtime: flag("runtime").unwrap_or_else(|| "containerd".to_owned()),
            runtime_version: flag("runtime-version").unwrap_or_default(),
            node_name_mode: flag("node-name-mode").unwrap_or_default(),
            labels: labels(form.text("labels").unwrap_or_default())?,
            taints: taints(form.text("taints").unwrap_or_default())?,
            kubelet: form
                .text("node-config")
                .map(kubelet_config)
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

fn labels(list: &str) -> Result<BTreeMap<String, String>, JoinError> {
    items(list)
        .map(|item| {
            let (key, value) = item
                .split_once('=')
                .ok_or_else(|| JoinError::ParseLabel(item.to_owned()))?;
            if is_forbidden(key) {
                return Err(JoinError::ForbiddenLabel(key.to_owned()));
            }
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect()
}

fn is_forbidden(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let is_in = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    is_kubernetes
        && !KUBERNETES_LABELS.contains(&key)
        && !KUBERNETES_LABEL_DOMAINS
            .iter()
            .any(|allowed| is_in(allowed))
}

fn taints(list: &str) -> Result<Vec<Taint>, JoinError> {
    items(list)
        .map(|item| {
            let error = || JoinError::ParseTaint(item.to_owned());
            let (pair, effect) = item.rsplit_once(':').ok_or_else(error)?;
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if key.is_empty() || !EFFECTS.contains(&effect) {
                return Err(error());
            }
            Ok(Taint {
                key: key.to_owned(),
                value: value.to_owned(),
                effect: effect.to_owned(),
            })
        })
        .collect()
}

fn kubelet_config(encoded: &str) -> Result<KubeletConfig, JoinError> {
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|error| JoinError::ParseNodeConfig(error.to_string()))?;
    let config: NodeConfig = serde_json::from_slice(&bytes)
        .map_err(|error| JoinError::ParseNodeConfig(error.to_string()))?;
    Ok(config.kubelet_config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(pairs: &[(&str, &str)]) -> Params {
        let needed = [("instance-id", "i-1"), ("token", "t"), ("endpoint", "e")];
        needed
            .iter()
            .chain(pairs)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn labels_taints_and_limits_are_read_from_their_flags() {
        let config = STANDARD.encode(r#"{"kubelet_config":{"maxPods":48,"kubeReserved":{"cpu":"40m"},"clusterDNS":["1.2.3.4"]}}"#);
        let join = Join::read(&form(&[
            (
                "labels",
                "karpenter.sh/nodepool=default,node.kubernetes.io/x=y,",
            ),
            (
                "taints",
                "karpenter.sh/unregistered:NoExecute,a/b=c:NoSchedule",
            ),
            ("node-config", &config),
        ]))
        .unwrap();

        assert_eq!(join.labels["karpenter.sh/nodepool"], "default");
        assert_eq!(
            join.taints[0],
            Taint {
                key: "karpenter.sh/unregistered".to_owned(),
                value: String::new(),
                effect: "NoExecute".to_owned()
            }
        );
        assert_eq!(join.taints[1].value, "c");
        assert_eq!(join.kubelet.max_pods, Some(48));
    }

    #[test]
    fn a_label_that_the_kubelet_would_refuse_is_refused() {
        let error =
            Join::read(&form(&[("labels", "node-role.kubernetes.io/worker=")])).unwrap_err();

        assert_eq!(
            error,
            JoinError::ForbiddenLabel("node-role.kubernetes.io/worker".to_owned())
        );
    }

    #[test]
    fn bad_flags_are_named() {
        assert!(matches!(
            Join::read(&form(&[("taints", "a=b")])),
            Err(JoinError::ParseTaint(_))
        ));
        assert!(matches!(
            Join::read(&form(&[("labels", "a")])),
            Err(JoinError::ParseLabel(_))
        ));
        assert!(matches!(
            Join::read(&form(&[("node-config", "e30")])),
            Err(JoinError::ParseNodeConfig(_))
        ));
        assert!(matches!(
            Join::read(&form(&[(
                "node-config",
                "eyJrdWJlbGV0X2NvbmZpZyI6eyJtYXhQb2RzIjoiNDgifX0="
            )])),
            Err(JoinError::ParseNodeConfig(_))
        ));
        assert_eq!(
            Join::read(&Params::default()),
            Err(JoinError::MissingFlag("instance-id"))
        );
    }
}
