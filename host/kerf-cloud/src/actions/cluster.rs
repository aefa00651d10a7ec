//! The container service: how a node joins an ACK cluster, and what the cluster is like.

use serde::{Deserialize, Serialize};

use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request, reply};

/// What DescribeClusterAttachScripts takes. The fields are in the wire's order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AttachScript {
    /// `amd64` or `arm64`; the default is amd64 even where that is wrong.
    pub arch: &'static str,
    /// When the token in the script ends, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired: Option<i64>,
    pub format_disk: bool,
    pub keep_instance_name: bool,
    /// The node pool whose settings to take.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nodepool_id: String,
}

/// What is known of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClusterDetail {
    pub cluster_id: String,
    pub state: String,
    pub cluster_type: String,
    pub current_version: String,
    pub region_id: String,
    pub vpc_id: String,
    pub node_cidr_mask: String,
    pub ip_stack: String,
    /// JSON in a text; `Capabilities.Network` names the CNI.
    pub meta_data: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct MetaData {
    capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Capabilities {
    network: String,
}

impl ClusterDetail {
    /// The CNI plugin, for example `terway-eniip` or `Flannel`; empty if the cluster does not say.
    #[must_use]
    pub fn network_plugin(&self) -> String {
        let meta: MetaData = serde_json::from_str(&self.meta_data).unwrap_or_default();
        meta.capabilities.network
    }
}

/// Builds the call.
///
/// # Errors
/// Never in practice; the type is the encoder's.
pub fn attach_script_request(
    cluster_id: &str,
    script: &AttachScript,
) -> Result<Request, CloudError> {
    let body = serde_json::to_string(script).map_err(|error| CloudError::Config {
        detail: error.to_string(),
    })?;
    let path = format!("/clusters/{cluster_id}/attachscript");
    Ok(Request::roa_post(
        Action::DescribeClusterAttachScripts,
        path,
        body,
    ))
}

/// Builds the call.
#[must_use]
pub fn cluster_detail_request(cluster_id: &str) -> Request {
    let path = format!("/clusters/{cluster_id}");
    Request::roa_get(Action::DescribeClusterDetail, path, Params::new())
}

const ATTACH_SCRIPT: &str = Action::DescribeClusterAttachScripts.as_str();

impl Client {
    /// The script that joins a node, without carriage returns and surrounding white space. The reply may be the text
    /// itself or a JSON string of it.
    ///
    /// # Errors
    /// The API's, typed; an empty script is [`CloudError::Decode`].
    pub async fn cluster_attach_script(
        &self,
        cluster_id: &str,
        script: &AttachScript,
    ) -> Result<String, CloudError> {
        let text = self
            .send_text(&attach_script_request(cluster_id, script)?)
            .await?;
        read_script(&text)
    }

    /// What the cluster is like.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn cluster_detail(&self, cluster_id: &str) -> Result<ClusterDetail, CloudError> {
        self.send(&cluster_detail_request(cluster_id)).await
    }
}

fn read_script(text: &str) -> Result<String, CloudError> {
    let text = text.trim();
    let script = if text.starts_with('"') {
        reply::decode(ATTACH_SCRIPT, text)?
    } else {
        text.to_owned()
    };
    let script = script.replace('\r', "").trim().to_owned();
    if script.is_empty() {
        let detail = "the script is empty".to_owned();
        return Err(CloudError::Decode {
            action: ATTACH_SCRIPT,
            detail,
        });
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_text_or_as_json() {
        let expected = "curl http://x/attach_node.sh | bash -s -- \\\n--token a.b";

        for reply in [
            "\r\ncurl http://x/attach_node.sh | bash -s -- \\\r\n--token a.b\r\n",
            r#""curl http://x/attach_node.sh | bash -s -- \\\r\n--token a.b\n""#,
        ] {
            assert_eq!(read_script(reply).unwrap(), expected);
        }
        assert!(read_script("\"\"").is_err());
    }

    #[test]
    fn the_cni_comes_from_json_inside_a_text() {
        let detail = ClusterDetail {
            meta_data: r#"{"Capabilities":{"Network":"terway-eniip"},"Other":1}"#.to_owned(),
            ..ClusterDetail::default()
        };

        assert_eq!(detail.network_plugin(), "terway-eniip");
        assert_eq!(ClusterDetail::default().network_plugin(), "");
    }
}
