//! Instances as tests and people look at them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::clock;
use crate::world::Tags;

/// One instance from outside. `status` is `Gone` after its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceView {
    pub id: String,
    pub status: String,
    pub instance_type: String,
    pub zone: String,
    /// `on-demand` or `spot`.
    pub capacity_type: String,
    pub image_id: String,
    pub system_disk_category: String,
    pub system_disk_gib: u32,
    pub ip: String,
    pub tags: Tags,
    /// Parameters of the launch that have no field here, such as `KeyPairName` and `DataDisk.1.Category`.
    pub request: Tags,
    pub price_per_hour: f64,
    /// `Waiting`, `Running`, `Finished` or `Failed`: how its user data is getting on.
    pub boot: String,
    /// The node that it registered, if it did.
    pub node_name: Option<String>,
    pub created_at: String,
}

impl App {
    /// All instances that ever were, oldest first.
    pub(crate) fn views(&self) -> Vec<InstanceView> {
        let (state, now) = (self.state(), clock::now());
        let mut all: Vec<_> = state.instances.values().collect();
        all.sort_by_key(|instance| instance.sequence);
        all.into_iter()
            .map(|instance| InstanceView {
                id: instance.id.clone(),
                status: instance
                    .status(&state.world.timing, now)
                    .map_or("Gone", |status| status.as_str())
                    .to_owned(),
                instance_type: instance.spec.instance_type.id.clone(),
                zone: instance.spec.zone.clone(),
                capacity_type: instance.spec.capacity_type.as_str().to_owned(),
                image_id: instance.spec.image_id.clone(),
                system_disk_category: instance.spec.system_disk_category.clone(),
                system_disk_gib: instance.spec.system_disk_gib,
                ip: instance.ip.to_string(),
                tags: instance.spec.tags.clone(),
                request: instance.spec.request.clone(),
                price_per_hour: instance.spec.price_per_hour,
                boot: instance.boot.as_str().to_owned(),
                node_name: instance.node_name.clone(),
                created_at: instance.created_at.to_string(),
            })
            .collect()
    }

    /// The whole machine room at a glance.
    pub(crate) fn overview(&self) -> Value {
        let living: Vec<_> = self
            .views()
            .into_iter()
            .filter(|view| view.status != "Gone")
            .collect();
        let calls = self.calls().counts().clone();
        let state = self.state();
        json!({
            "region": state.world.region,
            "pricePerHour": state.price_per_hour(),
            "instances": living,
            "calls": calls,
            "held": self.faults().held(),
            "faults": self.faults().script(),
            "stock": state.world.stock,
        })
    }

    /// Halts a machine that is not deleted; it stays there. False where there is none.
    pub(crate) fn halt(&self, id: &str) -> bool {
        self.state().instances.get_mut(id).is_some_and(|instance| {
            instance.is_stopped = instance.deleted_at.is_none();
            instance.is_stopped
        })
    }
}
