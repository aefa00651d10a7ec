//! Where the cloud shows our instances to be: learnt from the list that garbage collection reads anyway, so that drift
//! costs no calls. An instance that is not in it yet is one of which nothing is known.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kerf_cloud::provider::instance::Instance;

/// The network of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The vSwitch that it is in.
    pub vswitch_id: String,
    /// The security groups that it is in, sorted.
    pub security_group_ids: Vec<String>,
}

/// The networks of all our instances, as they were last listed.
#[derive(Debug, Default)]
pub struct Networks {
    by_provider_id: RwLock<Arc<HashMap<String, Network>>>,
}

impl Networks {
    /// Forgets what was known in favour of a new list.
    pub fn replace(&self, instances: &[Instance]) {
        let networks = instances.iter().map(|instance| {
            let mut security_group_ids = instance.security_group_ids.clone();
            security_group_ids.sort_unstable();
            let network = Network {
                vswitch_id: instance.vswitch_id.clone(),
                security_group_ids,
            };
            (instance.provider_id(), network)
        });
        let networks = Arc::new(networks.collect());
        *self
            .by_provider_id
            .write()
            .unwrap_or_else(PoisonError::into_inner) = networks;
    }

    /// The list as it is now.
    #[must_use]
    pub fn all(&self) -> Arc<HashMap<String, Network>> {
        let networks = self
            .by_provider_id
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&networks)
    }
}
