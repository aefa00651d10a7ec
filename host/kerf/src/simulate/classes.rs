//! Node classes without an account: what each would resolve to, and what its pools could launch.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_cloud::provider::catalog::Catalog as TypeCatalog;
use kerf_cloud::provider::class::{Architecture, VSwitch};
use kerf_cloud::provider::config::{CniMode, ProviderConfig};
use kerf_cloud::provider::offline::{self, Known};
use kerf_core::ids::NodePoolName;
use kerf_state::{Catalog, PoolOffers};

use crate::simulate::args::{Cni, Source, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;
use crate::simulate::what_if;

/// ACK's default block of a Flannel node.
const FLANNEL_MASK: u8 = 26;
/// The cluster that nothing is launched in.
const CLUSTER: &str = "simulated";

/// Resolves the classes, marks each as ready or says why it is not, and says what each pool can launch.
pub(crate) fn resolve(
    objects: &mut Objects,
    types: &TypeCatalog,
    source: &Source,
    what_if: &WhatIf,
    notes: &mut Vec<Complaint>,
) -> Result<Catalog, Vec<Complaint>> {
    let config = ProviderConfig::new(types.region.as_str(), CLUSTER);
    let cni = cni_mode(source.cni);
    let mut by_class: BTreeMap<String, PoolOffers> = BTreeMap::new();
    for (_, class) in &mut objects.node_classes {
        let name = class.metadata.name.clone().unwrap_or_default();
        let spec = kerf_controllers::node_class::spec::spec(class, "");
        let trouble = match offline::resolve(&spec, types, &known(class)) {
            Ok(resolved) => {
                let warnings = resolved.warnings.iter();
                notes
                    .extend(warnings.map(|it| {
                        Complaint::note(&format!("ECSNodeClass {name}: {}", it.message))
                    }));
                let found = offline::instance_types(&resolved, types, cni, &config);
                let mut found: Vec<_> = found.into_iter().map(Arc::new).collect();
                what_if::leave_out(&mut found, what_if)?;
                let offers = PoolOffers {
                    instance_types: Arc::new(found),
                    free_ips: kerf_controllers::node_class::catalog::free_ips(&resolved),
                    is_zone_balanced: kerf_controllers::node_class::catalog::is_zone_balanced(
                        class,
                    ),
                };
                by_class.insert(name, offers);
                None
            }
            Err(problems) => {
                let messages: Vec<String> = problems.into_iter().map(|it| it.message).collect();
                Some(messages.join("; "))
            }
        };
        set_ready(class, trouble);
    }
    let offers = objects.node_pools.iter().filter_map(|(_, pool)| {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let class = &pool.spec.template.spec.node_class_ref.name;
        Some((NodePoolName::from(name), by_class.get(class)?.clone()))
    });
    Ok(offers.collect())
}

fn cni_mode(cni: Cni) -> CniMode {
    match cni {
        Cni::Terway => CniMode::TerwayShared,
        Cni::TerwayExclusive => CniMode::TerwayExclusive,
        Cni::Flannel => CniMode::Flannel {
            node_cidr_mask: FLANNEL_MASK,
        },
        Cni::Other => CniMode::Other,
    }
}

/// What a class of a live cluster knows already.
fn known(class: &EcsNodeClass) -> Known {
    let Some(status) = &class.status else {
        return Known::default();
    };
    let vswitch = |it: &kerf_api::ecsnodeclass::status::VSwitchStatus| VSwitch {
        id: it.id.clone(),
        zone_id: it.zone_id.clone(),
        vpc_id: String::new(),
        ips_available: it
            .available_ip_address_count
            .and_then(|it| u64::try_from(it).ok())
            .unwrap_or_default(),
    };
    let architecture = |text: &str| {
        [Architecture::Amd64, Architecture::Arm64]
            .into_iter()
            .find(|it| it.as_str() == text)
    };
    Known {
        vswitches: status.v_switches.iter().map(vswitch).collect(),
        images: status
            .images
            .iter()
            .filter_map(|it| Some((architecture(&it.architecture)?, it.id.clone())))
            .collect(),
    }
}

fn set_ready(class: &mut EcsNodeClass, trouble: Option<String>) {
    let status = class.status.get_or_insert_default();
    status.conditions = vec![Condition {
        type_: "Ready".to_owned(),
        status: if trouble.is_none() {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        },
        last_transition_time: Timestamp::UNIX_EPOCH,
        reason: "Simulated".to_owned(),
        message: trouble.unwrap_or_default(),
        observed_generation: None,
    }];
}
