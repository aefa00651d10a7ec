//! Where policies change user data: the caller brings the function, and the join is checked afterwards.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::provider::bootstrap::UserDataPart;

/// One launch group: every machine that the user data has to serve. What the caller knows anyway (pool, labels, taints)
/// is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderQuestion {
    pub instance_type: String,
    /// `amd64` or `arm64`.
    pub architecture: &'static str,
    pub capacity_type: &'static str,
    pub image_id: String,
    /// What the class's first image term names; empty when it selects by id, name or tags.
    pub image_family: String,
    /// Pods per node that the kubelet is told.
    pub max_pods: u32,
    pub kubelet_json: String,
    /// What the bodies may have together, secrets and headers taken off.
    pub bytes_max: usize,
    /// The user's part, if there is one, then the join. Without secrets.
    pub parts: Vec<UserDataPart>,
    /// Those of `parts` that must come back once and unchanged.
    pub host_owned: Vec<UserDataPart>,
}

/// The parts to send, or why there are none.
pub type RenderFuture = Pin<Box<dyn Future<Output = Result<Vec<UserDataPart>, String>> + Send>>;

/// Asks the policies of a launch.
#[derive(Clone)]
pub struct Renderer(Arc<dyn Fn(RenderQuestion) -> RenderFuture + Send + Sync>);

impl Renderer {
    /// From the function that asks.
    #[must_use]
    pub fn new(ask: impl Fn(RenderQuestion) -> RenderFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) async fn render(
        &self,
        question: RenderQuestion,
    ) -> Result<Vec<UserDataPart>, String> {
        (self.0)(question).await
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").finish_non_exhaustive()
    }
}
