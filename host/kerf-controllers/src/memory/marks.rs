//! Unavailable offerings in the cloud's words and in the ConfigMap's. Pure.

use kerf_api::memory::UnavailableOffering;
use kerf_cloud::provider::unavailable::{Mark, Scope};
use kerf_core::instance_type::CapacityType;

/// As the ConfigMap keeps them.
pub(super) fn to_memory(marks: Vec<Mark>) -> Vec<UnavailableOffering> {
    marks.into_iter().map(entry).collect()
}

/// As the cloud asks about them, and how many entries name nothing that is known.
pub(super) fn from_memory(entries: &[UnavailableOffering]) -> (Vec<Mark>, usize) {
    let marks: Vec<Mark> = entries.iter().filter_map(mark).collect();
    let strange = entries.len() - marks.len();
    (marks, strange)
}

fn entry(mark: Mark) -> UnavailableOffering {
    let mut entry = UnavailableOffering {
        reason: mark.reason,
        until: mark.until,
        ..UnavailableOffering::default()
    };
    let mut capacity = None;
    match mark.scope {
        Scope::Offering {
            instance_type,
            zone_id,
            capacity_type,
        } => {
            (entry.instance_type, entry.zone) = (instance_type, zone_id);
            capacity = Some(capacity_type);
        }
        Scope::TypeInZone {
            instance_type,
            zone_id,
        } => (entry.instance_type, entry.zone) = (instance_type, zone_id),
        Scope::Type { instance_type } => entry.instance_type = instance_type,
        Scope::Zone { zone_id } => entry.zone = zone_id,
        Scope::VSwitch { vswitch_id } => entry.vswitch = vswitch_id,
        Scope::Family {
            family,
            capacity_type,
        } => {
            entry.family = family;
            capacity = Some(capacity_type);
        }
        Scope::Account { capacity_type } => capacity = Some(capacity_type),
    }
    entry.capacity_type = capacity.map_or_else(String::new, |it| it.as_str().to_owned());
    entry
}

fn mark(entry: &UnavailableOffering) -> Option<Mark> {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let capacity_type = match entry.capacity_type.as_str() {
        "" => None,
        text => Some(CapacityType::parse(text)?),
    };
    let named = (
        some(&entry.instance_type),
        some(&entry.family),
        some(&entry.zone),
        some(&entry.vswitch),
        capacity_type,
    );
    let scope = match named {
        (Some(instance_type), None, Some(zone_id), None, Some(capacity_type)) => Scope::Offering {
            instance_type,
            zone_id,
            capacity_type,
        },
        (Some(instance_type), None, Some(zone_id), None, None) => Scope::TypeInZone {
            instance_type,
            zone_id,
        },
        (Some(instance_type), None, None, None, None) => Scope::Type { instance_type },
        (None, None, Some(zone_id), None, None) => Scope::Zone { zone_id },
        (None, None, None, Some(vswitch_id), None) => Scope::VSwitch { vswitch_id },
        (None, Some(family), None, None, Some(capacity_type)) => Scope::Family {
            family,
            capacity_type,
        },
        (None, None, None, None, Some(capacity_type)) => Scope::Account { capacity_type },
        _ => return None,
    };
    Some(Mark {
        scope,
        until: entry.until,
        reason: entry.reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn every_kind_of_mark_survives_a_restart() {
        let name = str::to_owned;
        let capacity_type = CapacityType::Spot;
        let scopes = [
            Scope::Offering {
                instance_type: name("ecs.g7.large"),
                zone_id: name("h"),
                capacity_type,
            },
            Scope::TypeInZone {
                instance_type: name("ecs.g7.large"),
                zone_id: name("h"),
            },
            Scope::Type {
                instance_type: name("ecs.g7.large"),
            },
            Scope::Zone { zone_id: name("h") },
            Scope::VSwitch {
                vswitch_id: name("vsw-1"),
            },
            Scope::Family {
                family: name("ecs.g7"),
                capacity_type,
            },
            Scope::Account { capacity_type },
        ];
        let marks: Vec<Mark> = scopes
            .into_iter()
            .map(|scope| Mark {
                scope,
                until: Timestamp::UNIX_EPOCH,
                reason: name("OperationDenied.NoStock"),
            })
            .collect();

        assert_eq!(from_memory(&to_memory(marks.clone())), (marks, 0));
    }

    #[test]
    fn an_entry_that_names_nothing_known_is_counted_and_left_out() {
        let strange = UnavailableOffering {
            instance_type: "ecs.g7.large".to_owned(),
            zone: "h".to_owned(),
            capacity_type: "borrowed".to_owned(),
            ..UnavailableOffering::default()
        };

        assert_eq!(
            from_memory(&[strange, UnavailableOffering::default()]),
            (Vec::new(), 2)
        );
    }
}
