//! A node class and its instance types without a cloud: what the selectors would mean in an account that has everything.
//!
//! What only the account knows is assumed and told in the result's warnings: every selector that is well-formed finds
//! something. The capacity model, the labels and the form of the result are the live provider's.

use std::collections::BTreeSet;

use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::price::Price;
use kerf_core::unavailable::{Cause, Unavailability};

use crate::provider::catalog::{Catalog, CatalogType};
use crate::provider::class::{
    Architecture, Image, ImageTerm, NodeClassSpec, PrivatePools, ResolveKind, ResolveProblem,
    ResolvedNodeClass, SecurityGroup, VSwitch,
};
use crate::provider::config::{CniMode, ProviderConfig};
use crate::provider::instance_types::{NO_STOCK, assemble};

/// Addresses of an assumed vSwitch: a /20, of which the system keeps four.
const IPS_ASSUMED: u64 = 4092;
/// The least system disk of Alibaba Cloud's public images.
const IMAGE_GIB_ASSUMED: u32 = 20;

/// What is known of a class from its last look at the account; empty where it never was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// vSwitches of the class's status.
    pub vswitches: Vec<VSwitch>,
    /// Images of the class's status: architecture and id.
    pub images: Vec<(Architecture, String)>,
}

/// Finds what the selectors would mean.
///
/// # Errors
/// One problem per list of selectors that is empty or names something that does not exist anywhere.
pub fn resolve(
    class: &NodeClassSpec,
    catalog: &Catalog,
    known: &Known,
) -> Result<ResolvedNodeClass, Vec<ResolveProblem>> {
    let mut problems = Vec::new();
    let vswitches = if known.vswitches.is_empty() {
        assumed_vswitches(class, catalog, &mut problems)
    } else {
        known.vswitches.clone()
    };
    if class.security_group_selector_terms.is_empty() {
        problems.push(missing(
            ResolveKind::SecurityGroup,
            "securityGroupSelectorTerms",
        ));
    }
    let mut warnings = Vec::new();
    let images = if known.images.is_empty() {
        assumed_images(class, &mut problems, &mut warnings)
    } else {
        let images = known.images.iter();
        images.map(|(arch, id)| image(id, *arch)).collect()
    };
    let mut spec = class.clone();
    if class.private_pools.is_targeted() {
        let field = "spec.capacityReservationSelectorTerms";
        let message =
            "private pools cannot be looked up offline; planned as if they had room for everything";
        warnings.push(problem(
            ResolveKind::CapacityReservation,
            field,
            "",
            message,
        ));
        spec.private_pools = PrivatePools::default();
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(ResolvedNodeClass {
        spec,
        cluster_id: class.cluster_id.clone(),
        vswitches,
        security_groups: vec![SecurityGroup {
            id: "sg-assumed".to_owned(),
            name: String::new(),
            vpc_id: String::new(),
        }],
        images,
        key_pair_name: class.key_pair_name.clone(),
        private_pools: Vec::new(),
        warnings,
    })
}

/// Every type of the catalog that is sold in the class's zones, in name order.
#[must_use]
pub fn instance_types(
    class: &ResolvedNodeClass,
    catalog: &Catalog,
    cni: CniMode,
    config: &ProviderConfig,
) -> Vec<InstanceType> {
    let zones: BTreeSet<&str> = class.zone_ids().into_iter().collect();
    let types = catalog.types.iter();
    types
        .filter_map(|row| {
            let facts = row.facts()?;
            assemble(&facts, class, cni, config, offerings(row, &zones))
        })
        .collect()
}

/// A pulled catalog has the cloud's own reason; whoever wrote another one by hand knows why.
fn unavailability(text: &str) -> Unavailability {
    let cause = match text {
        NO_STOCK => Cause::Stock,
        _ => Cause::Other,
    };
    Unavailability::new(cause, text)
}

fn offerings(row: &CatalogType, zones: &BTreeSet<&str>) -> Vec<Offering> {
    let sold = row.offerings.iter();
    sold.filter(|it| zones.contains(it.zone.as_str()))
        .filter_map(|it| {
            let capacity_type = CapacityType::parse(&it.capacity_type)?;
            let price = it
                .price_per_hour
                .map_or(Price::UNKNOWN, Price::from_per_hour);
            let mut offering = Offering::new(it.zone.as_str(), capacity_type, price);
            offering.unavailable = it.unavailable.as_deref().map(unavailability);
            offering.is_stock_uncertain = it.is_stock_uncertain;
            Some(offering)
        })
        .collect()
}

/// One vSwitch per zone that a term may mean: its own zone, else every zone.
fn assumed_vswitches(
    class: &NodeClassSpec,
    catalog: &Catalog,
    problems: &mut Vec<ResolveProblem>,
) -> Vec<VSwitch> {
    let terms = &class.vswitch_selector_terms;
    if terms.is_empty() {
        problems.push(missing(ResolveKind::VSwitch, "vSwitchSelectorTerms"));
    }
    let mut zones: BTreeSet<&str> = BTreeSet::new();
    for (index, term) in terms.iter().enumerate() {
        let field = format!("spec.vSwitchSelectorTerms[{index}]");
        if term.id.is_empty() && term.tags.is_empty() {
            problems.push(problem(
                ResolveKind::VSwitch,
                &field,
                "",
                "needs an id or tags",
            ));
        } else if term.zone_id.is_empty() {
            zones.extend(catalog.zones.iter().map(String::as_str));
        } else if catalog.zones.contains(&term.zone_id) {
            zones.insert(&term.zone_id);
        } else {
            let message = format!(
                "{} has no zone {}; it has {}",
                catalog.region,
                term.zone_id,
                catalog.zones.join(", ")
            );
            let field = format!("{field}.zoneID");
            problems.push(problem(
                ResolveKind::VSwitch,
                &field,
                &term.zone_id,
                &message,
            ));
        }
    }
    let vswitch = |zone: &str| VSwitch {
        id: format!("vsw-assumed-{zone}"),
        zone_id: zone.to_owned(),
        vpc_id: String::new(),
        ips_available: IPS_ASSUMED,
    };
    zones.into_iter().map(vswitch).collect()
}

fn assumed_images(
    class: &NodeClassSpec,
    problems: &mut Vec<ResolveProblem>,
    warnings: &mut Vec<ResolveProblem>,
) -> Vec<Image> {
    let mut images = Vec::new();
    if class.image_selector_terms.is_empty() {
        problems.push(missing(ResolveKind::Image, "imageSelectorTerms"));
    }
    for (index, term) in class.image_selector_terms.iter().enumerate() {
        let field = format!("spec.imageSelectorTerms[{index}]");
        let (name, architectures) = match meaning(term) {
            Meaning::Nothing(why) => {
                problems.push(problem(ResolveKind::Image, &field, &term.alias, why));
                continue;
            }
            Meaning::Of(name, architectures) => (name, architectures),
            Meaning::Unknown(name) => {
                let message = format!(
                    "image {name} cannot be looked up offline; taken to exist for amd64 and arm64"
                );
                warnings.push(problem(ResolveKind::Image, &field, name, &message));
                (name, BOTH)
            }
        };
        images.extend(architectures.iter().map(|arch| image(name, *arch)));
    }
    images
}

const BOTH: &[Architecture] = &[Architecture::Amd64, Architecture::Arm64];

enum Meaning<'a> {
    /// These architectures, told by the name.
    Of(&'a str, &'static [Architecture]),
    /// Only the account knows.
    Unknown(&'a str),
    /// It can find nothing, and why.
    Nothing(&'static str),
}

fn meaning(term: &ImageTerm) -> Meaning<'_> {
    let alias = term.alias.split('@').next().unwrap_or("");
    if !alias.is_empty() {
        let is_known = ["AlibabaCloudLinux3", "ContainerOS"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(alias));
        return if is_known {
            Meaning::Of(&term.alias, BOTH)
        } else {
            Meaning::Nothing("this alias is not known; use AlibabaCloudLinux3 or ContainerOS")
        };
    }
    if term.image_family.is_empty() && term.name.is_empty() && !term.tags.is_empty() {
        return Meaning::Unknown("with these tags");
    }
    let given = [&term.image_family, &term.id, &term.name];
    let Some(name) = given.into_iter().find(|text| !text.is_empty()) else {
        return Meaning::Nothing("needs an id, imageFamily, alias or name");
    };
    if name.contains("arm64") {
        Meaning::Of(name, &BOTH[1..])
    } else if ["x64", "x86_64", "amd64"]
        .iter()
        .any(|it| name.contains(it))
    {
        Meaning::Of(name, &BOTH[..1])
    } else {
        Meaning::Unknown(name)
    }
}

fn image(name: &str, architecture: Architecture) -> Image {
    Image {
        id: name.to_owned(),
        name: name.to_owned(),
        architecture,
        created_at: String::new(),
        size_gib: IMAGE_GIB_ASSUMED,
    }
}

fn missing(kind: ResolveKind, list: &str) -> ResolveProblem {
    let field = format!("spec.{list}");
    problem(kind, &field, "", "is empty; name at least one")
}

fn problem(kind: ResolveKind, field: &str, value: &str, message: &str) -> ResolveProblem {
    ResolveProblem {
        kind,
        field: field.to_owned(),
        value: value.to_owned(),
        message: format!("{field}: {message}"),
        is_transient: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::class::{SecurityGroupTerm, SystemDisk, VSwitchTerm};

    fn class(image: &str) -> NodeClassSpec {
        NodeClassSpec {
            vswitch_selector_terms: vec![VSwitchTerm {
                id: "vsw-1".to_owned(),
                ..VSwitchTerm::default()
            }],
            security_group_selector_terms: vec![SecurityGroupTerm::default()],
            image_selector_terms: vec![ImageTerm {
                image_family: image.to_owned(),
                ..ImageTerm::default()
            }],
            system_disk: SystemDisk::default(),
            ..NodeClassSpec::default()
        }
    }

    #[test]
    fn a_class_gets_the_types_of_its_images_in_its_zones() {
        let catalog = Catalog::embedded("cn-hangzhou", &[]).unwrap();
        let config = ProviderConfig::new("cn-hangzhou", "c");
        let mut spec = class("acs:alibaba_cloud_linux_3_2104_lts_arm64");
        spec.vswitch_selector_terms[0].zone_id = "cn-hangzhou-k".to_owned();

        let resolved = resolve(&spec, &catalog, &Known::default()).unwrap();
        let types = instance_types(&resolved, &catalog, CniMode::TerwayShared, &config);

        assert!(types.len() > 20, "{}", types.len());
        for it in &types {
            let is_arm64 = it.requirements.allows(kerf_core::labels::ARCH, "arm64");
            assert!(is_arm64 || it.offerings.iter().all(|it| !it.is_available()));
            assert!(it.offerings.iter().all(|it| &*it.zone == "cn-hangzhou-k"));
        }
    }

    #[test]
    fn what_cannot_exist_is_told_with_its_field() {
        let catalog = Catalog::embedded("cn-hangzhou", &[]).unwrap();
        let mut spec = class("");
        spec.vswitch_selector_terms[0].zone_id = "cn-beijing-h".to_owned();
        spec.image_selector_terms[0].alias = "Ubuntu".to_owned();
        spec.security_group_selector_terms.clear();

        let problems = resolve(&spec, &catalog, &Known::default()).unwrap_err();

        let fields: Vec<&str> = problems.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.vSwitchSelectorTerms[0].zoneID",
                "spec.securityGroupSelectorTerms",
                "spec.imageSelectorTerms[0]"
            ]
        );
    }
}
