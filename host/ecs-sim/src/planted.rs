//! Machines that are there already, as another program launched them: running, joined, with that program's tags.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::app::App;
use crate::clock;
use crate::instance::{Boot, CapacityType, Spec};
use crate::state::State;
use crate::view::InstanceView;
use crate::world::Tags;

/// Long enough that no timing of a world calls the machine new.
const AGE: SignedDuration = SignedDuration::from_hours(24);
const SYSTEM_DISK_GIB: u32 = 40;

/// What to put there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Planted {
    /// Type and zone must exist, the zone with a vSwitch.
    pub instance_type: String,
    pub zone: String,
    /// Which it was started from.
    pub image_id: String,
    /// The market takes it back one day.
    #[serde(default)]
    pub is_spot: bool,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl App {
    /// The machine, whose node is to be called `<region>.<ip>`; the caller creates that node.
    pub(crate) fn plant(&self, planted: Planted) -> Result<InstanceView, String> {
        let id = self.state().plant(planted, clock::now())?;
        let mut views = self.views().into_iter();
        views
            .find(|view| view.id == id)
            .ok_or_else(|| format!("instance {id} is gone already"))
    }
}

impl State {
    fn plant(&mut self, planted: Planted, now: Timestamp) -> Result<String, String> {
        let spec = self.planted_spec(planted)?;
        let created_at = now.checked_sub(AGE).unwrap_or(now);
        let id = self
            .place(spec, created_at)
            .map_err(|error| format!("{error:?}"))?;
        let region = self.world.region.clone();
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.boot = Boot::Finished;
            instance.node_name = Some(format!("{region}.{}", instance.ip));
        }
        Ok(id)
    }

    fn planted_spec(&self, planted: Planted) -> Result<Spec, String> {
        let Planted {
            instance_type,
            zone,
            image_id,
            is_spot,
            tags,
        } = planted;
        let found = self.catalog.find(&instance_type).cloned();
        let found = found.ok_or_else(|| format!("no instance type {instance_type}"))?;
        let vswitch = self.world.vswitches.iter().find(|it| it.zone == zone);
        let vswitch = vswitch.ok_or_else(|| format!("no vSwitch in {zone}"))?;
        let region = &self.world.region;
        let (capacity_type, strategy, price) = if is_spot {
            let price = found.spot_price(region, &zone);
            (CapacityType::Spot, "SpotAsPriceGo", price)
        } else {
            (CapacityType::OnDemand, "NoSpot", found.price(region))
        };
        Ok(Spec {
            instance_type: found,
            vswitch_id: vswitch.id.clone(),
            zone,
            image_id,
            security_group_ids: self
                .world
                .security_groups
                .iter()
                .map(|it| it.id.clone())
                .take(1)
                .collect(),
            name: "node".to_owned(),
            host_name: String::new(),
            tags: Tags::from_iter(tags),
            user_data: Vec::new(),
            capacity_type,
            spot_strategy: strategy.to_owned(),
            spot_price_limit: 0.0,
            spot_duration: 1,
            key_pair: String::new(),
            ram_role: String::new(),
            http_tokens: "optional".to_owned(),
            system_disk_category: "cloud_essd".to_owned(),
            system_disk_gib: SYSTEM_DISK_GIB,
            request: Tags::new(),
            data_disks: 0,
            deletion_protection: false,
            price_per_hour: price.unwrap_or_default(),
        })
    }
}
