//! Who hears that a policy begins to fail, or answers again.

use std::fmt;
use std::sync::Arc;

/// Called with the name of a NodeClass. It must not block: it is called in the midst of a decision.
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(&str) + Send + Sync>);

impl Listener {
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn tell(&self, node_class: &str) {
        (self.0)(node_class);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}
