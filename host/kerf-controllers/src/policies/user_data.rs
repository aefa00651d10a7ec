//! BootstrapUserData policies in a launch: the cloud's question in the host's words, and the answer back.

use std::sync::Arc;
use std::time::Instant;

use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::bootstrap::{NodeSettings, RenderQuestion, Renderer, UserDataPart};
use kerf_policy::{BootstrapInput, Chain, Node, Now, Part, Taint};
use kube::Client;
use tokio::sync::OnceCell;

use super::Policies;
use super::report::Reporter;
use crate::clock;
use crate::context::Context;
use crate::error::chain;

/// What a claim's launch asks its policies with.
struct Asker {
    chain: Arc<Chain>,
    node_class: String,
    node_pool: String,
    region: String,
    settings: NodeSettings,
    client: Client,
    kubernetes_version: Arc<OnceCell<String>>,
    reporter: Reporter,
}

impl Policies {
    /// What asks the policies of the claim's class about its user data; `None` when none applies. The policies are those
    /// of now, whatever is swapped while the launch is under way.
    #[must_use]
    pub fn renderer(
        &self,
        claim: &NodeClaim,
        node_pool: &str,
        settings: &NodeSettings,
        context: &Context,
    ) -> Option<Renderer> {
        let node_class = claim.spec.node_class_ref.name.clone();
        let chain = self.registry.chain(&node_class);
        if !chain.has_user_data_for(node_pool) {
            return None;
        }
        let asker = Arc::new(Asker {
            chain,
            node_class,
            node_pool: node_pool.to_owned(),
            region: context.settings.region.clone(),
            settings: settings.clone(),
            client: context.client.clone(),
            kubernetes_version: Arc::clone(&self.kubernetes_version),
            reporter: Reporter::of(context),
        });
        Some(Renderer::new(move |question| {
            let asker = Arc::clone(&asker);
            Box::pin(async move { asker.ask(question).await })
        }))
    }
}

impl Asker {
    async fn ask(&self, question: RenderQuestion) -> Result<Vec<UserDataPart>, String> {
        let version = self.kubernetes_version().await?;
        let input = self.input(question, version);
        let now = Now {
            instant: Instant::now(),
            unix_secs: u32::try_from(clock::now().as_second()).unwrap_or_default(),
        };
        let chain = Arc::clone(&self.chain);
        let rendered = tokio::task::spawn_blocking(move || chain.render(&input, now))
            .await
            .map_err(|error| format!("the policy host died while it wrote user data: {error}"))?;
        match rendered {
            Ok((parts, runs)) => {
                for run in &runs {
                    self.reporter.run(run, &self.node_class);
                }
                Ok(parts.into_iter().map(to_cloud).collect())
            }
            Err(error) => {
                self.reporter.stop(&error, &self.node_class);
                Err(error.to_string())
            }
        }
    }

    /// Major and minor; some servers add a plus to the minor one.
    async fn kubernetes_version(&self) -> Result<String, String> {
        let ask = || async {
            let info = self.client.apiserver_version().await?;
            let minor = info.minor.trim_end_matches('+');
            Ok::<_, kube::Error>(format!("{}.{minor}", info.major))
        };
        let version = self.kubernetes_version.get_or_try_init(ask).await;
        version
            .cloned()
            .map_err(|error| format!("cannot ask the API server's version: {}", chain(&error)))
    }

    fn input(&self, question: RenderQuestion, kubernetes_version: String) -> BootstrapInput {
        let taints = self.settings.taints.iter();
        let taints = taints.chain(&self.settings.startup_taints);
        let labels = self.settings.labels.iter();
        BootstrapInput {
            node: Node {
                node_pool: self.node_pool.clone(),
                node_class: self.node_class.clone(),
                region: self.region.clone(),
                instance_types: vec![question.instance_type],
                architecture: question.architecture.to_owned(),
                capacity_type: question.capacity_type.to_owned(),
                image_id: question.image_id,
                image_family: question.image_family,
                kubernetes_version,
                max_pods: question.max_pods,
                kubelet_json: question.kubelet_json,
                labels: labels
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
                taints: taints.map(to_policy_taint).collect(),
                max_bytes: u32::try_from(question.bytes_max).unwrap_or(u32::MAX),
            },
            parts: question.parts.into_iter().map(to_policy).collect(),
            host_owned: question.host_owned.into_iter().map(to_policy).collect(),
        }
    }
}

fn to_policy(part: UserDataPart) -> Part {
    Part {
        content_type: part.content_type,
        name: part.name,
        body: part.content,
    }
}

fn to_cloud(part: Part) -> UserDataPart {
    UserDataPart {
        content_type: part.content_type,
        name: part.name,
        content: part.body,
    }
}

fn to_policy_taint(taint: &kerf_core::taint::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.as_str().to_owned(),
    }
}
