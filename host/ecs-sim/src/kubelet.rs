//! Nodes at the real API server: registered by a kubelet, removed by the cloud controller manager.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

/// While the API server is away, the controller manager tries again this often, and so many times.
const REMOVE_PAUSE: Duration = Duration::from_secs(1);
const REMOVE_ATTEMPTS: u32 = 120;

#[derive(Clone)]
pub(crate) struct Kubelet {
    nodes: Api<Node>,
}

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubelet")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    #[error("read the kubeconfig {}", path.display())]
    Kubeconfig {
        path: PathBuf,
        source: Box<KubeconfigError>,
    },
    #[error("make a client for the API server")]
    Client(#[source] Box<kube::Error>),
    #[error("the node object is malformed")]
    Malformed(#[from] serde_json::Error),
    #[error("register the node {name}")]
    Register {
        name: String,
        source: Box<kube::Error>,
    },
    #[error("the node {name} exists and is another machine's ({provider_id})")]
    Taken { name: String, provider_id: String },
}

impl Kubelet {
    pub(crate) async fn connect(kubeconfig: &Path) -> Result<Self, KubeletError> {
        // Fails if the process has one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let error = |source| KubeletError::Kubeconfig {
            path: kubeconfig.to_owned(),
            source: Box::new(source),
        };
        let file = Kubeconfig::read_from(kubeconfig).map_err(error)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(error)?;
        let client =
            Client::try_from(config).map_err(|source| KubeletError::Client(Box::new(source)))?;
        Ok(Self {
            nodes: Api::all(client),
        })
    }

    /// Creates the node; a machine that registers twice finds its own node.
    pub(crate) async fn register(&self, node: &Value) -> Result<(), KubeletError> {
        let node: Node = serde_json::from_value(node.clone())?;
        let name = node.metadata.name.clone().unwrap_or_default();
        let provider_id = |node: &Node| {
            node.spec
                .as_ref()
                .and_then(|spec| spec.provider_id.clone())
                .unwrap_or_default()
        };
        let error = |source| KubeletError::Register {
            name: name.clone(),
            source: Box::new(source),
        };
        match self.nodes.create(&PostParams::default(), &node).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let existing = self.nodes.get(&name).await.map_err(error)?;
                if provider_id(&existing) == provider_id(&node) {
                    return Ok(());
                }
                Err(KubeletError::Taken {
                    provider_id: provider_id(&existing),
                    name,
                })
            }
            Err(source) => Err(error(source)),
        }
    }

    /// Puts a condition beside those that the node has.
    pub(crate) async fn set_condition(
        &self,
        name: &str,
        condition: Value,
    ) -> Result<(), kube::Error> {
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let params = PatchParams::default();
        let written = self.nodes.patch_status(name, &params, &patch).await;
        written.map(drop)
    }

    /// Deletes a node if it is the given machine's, and goes on trying until that is certain.
    pub(crate) async fn remove_node(&self, name: &str, provider_id: &str) {
        for _ in 0..REMOVE_ATTEMPTS {
            match self.try_remove(name, provider_id).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(node = %name, %error, "remove a node"),
            }
            tokio::time::sleep(REMOVE_PAUSE).await;
        }
    }

    async fn try_remove(&self, name: &str, provider_id: &str) -> Result<(), kube::Error> {
        let Some(node) = self.nodes.get_opt(name).await? else {
            return Ok(());
        };
        if node
            .spec
            .and_then(|spec| spec.provider_id)
            .is_none_or(|found| found != provider_id)
        {
            return Ok(());
        }
        let preconditions = Preconditions {
            uid: node.metadata.uid,
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.nodes.delete(name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
