//! What a launch failure said cannot be had, for a time that depends on the kind.
//!
//! Each mark says exactly what the error spoke of: an offering, a type, a zone, a vSwitch, a family's quota. The
//! marks can be taken out and put back, so that a restart need not learn them again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_core::instance_type::CapacityType;

use crate::error::{CapacityScope, ErrorClass, Missing, QuotaScope};

/// No stock comes and goes within minutes.
const NO_STOCK_TTL: Duration = Duration::from_secs(180);
/// What is not sold in a zone stays so for long, but a wrong guess must heal within the hour.
const NOT_SOLD_TTL: Duration = Duration::from_secs(3600);
/// Addresses come back as nodes go.
const NO_ADDRESSES_TTL: Duration = Duration::from_secs(60);
/// A quota is raised by people.
const QUOTA_TTL: Duration = Duration::from_secs(600);
/// The spot price moves hourly.
const SPOT_PRICE_TTL: Duration = Duration::from_secs(600);
/// Anything else: long enough not to loop, short enough not to matter.
const OTHER_TTL: Duration = Duration::from_secs(60);
/// A market that takes one machine back takes others: longer than it takes to lose a replacement of the same offering.
const RECLAIMED_TTL: Duration = Duration::from_secs(900);
/// Marks at most; beyond it the ones that end first go.
const MARKS_MAX: usize = 5000;

/// What cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Offering {
        instance_type: String,
        zone_id: String,
        capacity_type: CapacityType,
    },
    TypeInZone {
        instance_type: String,
        zone_id: String,
    },
    Type {
        instance_type: String,
    },
    Zone {
        zone_id: String,
    },
    VSwitch {
        vswitch_id: String,
    },
    Family {
        family: String,
        capacity_type: CapacityType,
    },
    Account {
        capacity_type: CapacityType,
    },
}

/// One offering, as marks are asked about it.
#[derive(Debug, Clone, Copy)]
pub struct OfferingKey<'a> {
    pub instance_type: &'a str,
    pub family: &'a str,
    pub zone_id: &'a str,
    pub capacity_type: CapacityType,
}

/// A mark with its end and the code that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub scope: Scope,
    pub until: Timestamp,
    pub reason: String,
}

/// All marks.
#[derive(Debug, Default)]
pub struct UnavailableOfferings(Mutex<BTreeMap<Scope, (Timestamp, String)>>);

impl UnavailableOfferings {
    /// Marks what an error of a launch speaks of; does nothing for errors that speak of something else.
    pub fn mark_error(
        &self,
        class: ErrorClass,
        key: OfferingKey<'_>,
        vswitch_id: &str,
        reason: &str,
        now: Timestamp,
    ) {
        if let Some((scope, ttl)) = scope_of(class, key, vswitch_id) {
            self.mark(scope, ttl, reason, now);
        }
    }

    /// Marks a spot offering of which the market has just taken a machine back.
    pub fn mark_reclaimed(&self, instance_type: &str, zone_id: &str, now: Timestamp) {
        let scope = Scope::Offering {
            instance_type: instance_type.to_owned(),
            zone_id: zone_id.to_owned(),
            capacity_type: CapacityType::Spot,
        };
        self.mark(scope, RECLAIMED_TTL, "SpotReclaimed", now);
    }

    /// Marks a scope.
    pub fn mark(&self, scope: Scope, ttl: Duration, reason: &str, now: Timestamp) {
        let until = now + SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
        self.with(|marks| {
            marks.insert(scope, (until, reason.to_owned()));
            marks.retain(|_, (until, _)| *until > now);
            while marks.len() > MARKS_MAX {
                let first = marks.iter().min_by_key(|(_, (until, _))| *until);
                let Some(first) = first.map(|(scope, _)| scope.clone()) else {
                    break;
                };
                marks.remove(&first);
            }
        });
    }

    /// Why an offering cannot be had, if there is a mark on it.
    pub fn reason(&self, key: OfferingKey<'_>, now: Timestamp) -> Option<String> {
        let instance_type = key.instance_type.to_owned();
        let zone_id = key.zone_id.to_owned();
        let capacity_type = key.capacity_type;
        let scopes = [
            Scope::Offering {
                instance_type: instance_type.clone(),
                zone_id: zone_id.clone(),
                capacity_type,
            },
            Scope::TypeInZone {
                instance_type: instance_type.clone(),
                zone_id: zone_id.clone(),
            },
            Scope::Type { instance_type },
            Scope::Zone { zone_id },
            Scope::Family {
                family: key.family.to_owned(),
                capacity_type,
            },
            Scope::Account { capacity_type },
        ];
        self.with(|marks| scopes.iter().find_map(|scope| live(marks, scope, now)))
    }

    /// True if a vSwitch ran out of addresses or vanished.
    pub fn is_vswitch_blocked(&self, vswitch_id: &str, now: Timestamp) -> bool {
        let scope = Scope::VSwitch {
            vswitch_id: vswitch_id.to_owned(),
        };
        self.with(|marks| live(marks, &scope, now).is_some())
    }

    /// All marks that still hold, in order.
    pub fn snapshot(&self, now: Timestamp) -> Vec<Mark> {
        self.with(|marks| {
            let live = marks.iter().filter(|(_, (until, _))| *until > now);
            let mark = |(scope, (until, reason)): (&Scope, &(Timestamp, String))| Mark {
                scope: scope.clone(),
                until: *until,
                reason: reason.clone(),
            };
            live.map(mark).collect()
        })
    }

    /// Puts marks back that a predecessor took out.
    pub fn restore(&self, marks: Vec<Mark>) {
        self.with(|all| {
            for Mark {
                scope,
                until,
                reason,
            } in marks
            {
                all.insert(scope, (until, reason));
            }
        });
    }

    fn with<T>(&self, update: impl FnOnce(&mut BTreeMap<Scope, (Timestamp, String)>) -> T) -> T {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn live(
    marks: &BTreeMap<Scope, (Timestamp, String)>,
    scope: &Scope,
    now: Timestamp,
) -> Option<String> {
    let (until, reason) = marks.get(scope)?;
    (*until > now).then(|| reason.clone())
}

fn scope_of(
    class: ErrorClass,
    key: OfferingKey<'_>,
    vswitch_id: &str,
) -> Option<(Scope, Duration)> {
    let capacity_type = key.capacity_type;
    let offering = || Scope::Offering {
        instance_type: key.instance_type.to_owned(),
        zone_id: key.zone_id.to_owned(),
        capacity_type,
    };
    let type_in_zone = || Scope::TypeInZone {
        instance_type: key.instance_type.to_owned(),
        zone_id: key.zone_id.to_owned(),
    };
    let type_anywhere = || Scope::Type {
        instance_type: key.instance_type.to_owned(),
    };
    let zone = || Scope::Zone {
        zone_id: key.zone_id.to_owned(),
    };
    let family = || Scope::Family {
        family: key.family.to_owned(),
        capacity_type,
    };
    let vswitch = || Scope::VSwitch {
        vswitch_id: vswitch_id.to_owned(),
    };
    Some(match class {
        ErrorClass::NoCapacity(CapacityScope::Offering) => (offering(), NO_STOCK_TTL),
        ErrorClass::NoCapacity(CapacityScope::TypeInZone) | ErrorClass::DiskCategory => {
            (type_in_zone(), NOT_SOLD_TTL)
        }
        ErrorClass::NoCapacity(CapacityScope::Type) => (type_anywhere(), NOT_SOLD_TTL),
        ErrorClass::NoCapacity(CapacityScope::Zone) => (zone(), NOT_SOLD_TTL),
        ErrorClass::SpotPrice => (offering(), SPOT_PRICE_TTL),
        ErrorClass::IpExhausted => (vswitch(), NO_ADDRESSES_TTL),
        ErrorClass::NotFound(Missing::VSwitch) => (vswitch(), QUOTA_TTL),
        ErrorClass::Quota(QuotaScope::Family) => (family(), QUOTA_TTL),
        ErrorClass::Quota(QuotaScope::Account) => (Scope::Account { capacity_type }, QUOTA_TTL),
        ErrorClass::ImageMismatch | ErrorClass::Invalid => (offering(), OTHER_TTL),
        // These speak of the class, the account's rights or the moment, not of an offering.
        ErrorClass::Quota(_)
        | ErrorClass::Auth(_)
        | ErrorClass::Billing
        | ErrorClass::NotFound(_)
        | ErrorClass::State(_)
        | ErrorClass::Throttled
        | ErrorClass::Idempotent(_)
        | ErrorClass::StaleSignature
        | ErrorClass::UserData
        | ErrorClass::DryRun
        | ErrorClass::Transient => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn key(
        instance_type: &'static str,
        zone_id: &'static str,
        capacity_type: CapacityType,
    ) -> OfferingKey<'static> {
        OfferingKey {
            instance_type,
            family: "ecs.g7",
            zone_id,
            capacity_type,
        }
    }

    /// Which of four offerings an error of the first one blocks.
    fn blocked(class: ErrorClass) -> [bool; 4] {
        let marks = UnavailableOfferings::default();
        let first = key("ecs.g7.large", "h", CapacityType::Spot);
        marks.mark_error(class, first, "vsw-1", "code", NOW);
        let others = [
            first,
            key("ecs.g7.large", "h", CapacityType::OnDemand),
            key("ecs.g7.large", "i", CapacityType::Spot),
            key("ecs.g7.xlarge", "h", CapacityType::Spot),
        ];
        others.map(|key| marks.reason(key, NOW).is_some())
    }

    #[test]
    fn an_error_marks_what_it_speaks_of_and_nothing_else() {
        let capacity = ErrorClass::NoCapacity;
        assert_eq!(
            blocked(capacity(CapacityScope::Offering)),
            [true, false, false, false]
        );
        assert_eq!(
            blocked(capacity(CapacityScope::TypeInZone)),
            [true, true, false, false]
        );
        assert_eq!(
            blocked(capacity(CapacityScope::Type)),
            [true, true, true, false]
        );
        assert_eq!(
            blocked(capacity(CapacityScope::Zone)),
            [true, true, false, true]
        );
        assert_eq!(
            blocked(ErrorClass::Quota(QuotaScope::Family)),
            [true, false, true, true]
        );
        assert_eq!(blocked(ErrorClass::IpExhausted), [false; 4]);
        assert_eq!(blocked(ErrorClass::Throttled), [false; 4]);
    }

    #[test]
    fn marks_end_and_survive_a_restart() {
        let marks = UnavailableOfferings::default();
        let offering = key("ecs.g7.large", "h", CapacityType::Spot);
        let class = ErrorClass::NoCapacity(CapacityScope::Offering);
        marks.mark_error(class, offering, "vsw-1", "OperationDenied.NoStock", NOW);

        let restarted = UnavailableOfferings::default();
        restarted.restore(marks.snapshot(NOW));

        let reason = restarted.reason(offering, NOW);
        assert_eq!(reason.as_deref(), Some("OperationDenied.NoStock"));
        let later = NOW + SignedDuration::from_secs(181);
        assert_eq!(restarted.reason(offering, later), None);
    }

    #[test]
    fn no_addresses_blocks_the_vswitch_only() {
        let marks = UnavailableOfferings::default();
        let offering = key("ecs.g7.large", "h", CapacityType::OnDemand);

        marks.mark_error(ErrorClass::IpExhausted, offering, "vsw-1", "code", NOW);

        assert!(marks.is_vswitch_blocked("vsw-1", NOW));
        assert!(!marks.is_vswitch_blocked("vsw-2", NOW));
    }
}
