//! Which vSwitch a launch takes: the one with most free addresses, counting launches that the API does not show yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::provider::class::VSwitch;

/// How long a launch's addresses are counted here: until the API's own number has surely followed.
const IN_FLIGHT_TTL: Duration = Duration::from_secs(120);

/// Addresses promised to launches, by vSwitch.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<BTreeMap<String, Vec<(Instant, u64)>>>);

impl InFlight {
    /// Counts addresses as used.
    pub(crate) fn take(&self, vswitch_id: &str, ips: u64) {
        self.with(|all| {
            all.entry(vswitch_id.to_owned())
                .or_default()
                .push((Instant::now(), ips));
        });
    }

    /// Gives back what a failed launch took.
    pub(crate) fn put_back(&self, vswitch_id: &str, ips: u64) {
        self.with(|all| {
            if let Some(taken) = all.get_mut(vswitch_id)
                && let Some(last) = taken.iter().rposition(|(_, amount)| *amount == ips)
            {
                taken.remove(last);
            }
        });
    }

    /// What is free now.
    pub(crate) fn free(&self, vswitch: &VSwitch) -> u64 {
        let taken = self.with(|all| {
            let Some(taken) = all.get_mut(&vswitch.id) else {
                return 0;
            };
            taken.retain(|(at, _)| at.elapsed() < IN_FLIGHT_TTL);
            taken.iter().map(|(_, ips)| ips).sum()
        });
        vswitch.ips_available.saturating_sub(taken)
    }

    /// The vSwitch of a zone with most free addresses, at least `ips_needed`; equal ones are settled by id.
    pub(crate) fn pick<'a>(
        &self,
        vswitches: &'a [VSwitch],
        zone_id: &str,
        ips_needed: u64,
        is_blocked: impl Fn(&str) -> bool,
    ) -> Option<&'a VSwitch> {
        let of_zone = vswitches
            .iter()
            .filter(|vswitch| vswitch.zone_id == zone_id);
        let usable = of_zone.filter(|vswitch| !is_blocked(&vswitch.id));
        let with_free = usable.map(|vswitch| (self.free(vswitch), vswitch));
        let enough = with_free.filter(|(free, _)| *free >= ips_needed);
        enough
            .min_by(|(a_free, a), (b_free, b)| b_free.cmp(a_free).then_with(|| a.id.cmp(&b.id)))
            .map(|(_, vswitch)| vswitch)
    }

    fn with<T>(&self, update: impl FnOnce(&mut BTreeMap<String, Vec<(Instant, u64)>>) -> T) -> T {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vswitch(id: &str, ips_available: u64) -> VSwitch {
        VSwitch {
            id: id.to_owned(),
            zone_id: "h".to_owned(),
            vpc_id: String::new(),
            ips_available,
        }
    }

    #[test]
    fn launches_spread_over_vswitches_by_what_is_left() {
        let vswitches = [vswitch("a", 3), vswitch("b", 5), vswitch("c", 0)];
        let in_flight = InFlight::default();

        let picks: Vec<_> = (0..9)
            .map(|_| {
                let pick = in_flight.pick(&vswitches, "h", 1, |_| false)?;
                in_flight.take(&pick.id, 1);
                Some(pick.id.as_str())
            })
            .map(|pick| pick.unwrap_or("-"))
            .collect();

        assert_eq!(picks.concat(), "bbababab-");
    }

    #[test]
    fn what_a_failed_launch_took_is_given_back() {
        let vswitches = [vswitch("a", 1)];
        let in_flight = InFlight::default();
        in_flight.take("a", 1);
        assert!(in_flight.pick(&vswitches, "h", 1, |_| false).is_none());

        in_flight.put_back("a", 1);

        assert!(in_flight.pick(&vswitches, "h", 1, |_| false).is_some());
        assert!(in_flight.pick(&vswitches, "h", 1, |id| id == "a").is_none());
        assert!(in_flight.pick(&vswitches, "i", 1, |_| false).is_none());
    }
}
