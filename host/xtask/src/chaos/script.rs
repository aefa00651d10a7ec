//! What happens in a run: acts drawn from a seed, each at its moment. Pure, so a seed says everything.

use std::fmt;

use crate::oracle::dice::Dice;

/// Nothing is done to the first wave of pods.
const QUIET_MS: u64 = 15_000;
/// Between two acts.
const PAUSE_MS: [i64; 2] = [2_000, 6_000];

/// Who or what is hit, and how. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// kill -9 of the acting controller.
    KillLeader,
    /// The same, at the moment when it asks for an instance.
    KillAtLaunch,
    /// The acting controller stands still for longer than its lease, and goes on while another one acts.
    FreezeLeader,
    RestartApiServer,
    RestartEtcd,
    CutCloud(u64),
    HoldUpCloud(u64),
    CutApiServer(u64),
    /// Connections end and may come again: watches miss events and see others twice.
    DropWatches,
    /// So many calls are throttled.
    Throttle(u32),
    /// So many calls take effect, and their answers are cut.
    CutAnswers(u32),
    SlowAnswers(u32),
    /// Launches fail for want of stock.
    NoStock(u32),
    /// Half of the spot machines are taken back.
    SpotStorm,
    /// Machines that are launched meanwhile do not start.
    NoBoot(u64),
    /// A Node of the wild pool says that it is not ready.
    NotReady(u64),
    DeleteClaim,
    DeleteNode,
    /// The policy of the wild pool's class is another one, or broken, or gone.
    Policy(Policy),
    /// The steady pool's template changes: its nodes are drifted.
    Roll,
    DeletePool,
    CreatePool,
    /// A Deployment of the wild pool has so many pods from now on.
    Scale(usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    One,
    Another,
    /// It traps in every call.
    Trap,
    /// These bytes are no component.
    Broken,
    /// Its ConfigMap is deleted.
    Gone,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// An act and its moment, in milliseconds from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at_ms: u64,
    pub(super) act: Act,
}

/// All acts of a run, which must end `until_ms` after its start.
pub(super) fn draw(seed: u64, until_ms: u64) -> Vec<Event> {
    let mut dice = Dice::new(seed);
    let mut events = Vec::new();
    let mut at_ms = QUIET_MS;
    while at_ms < until_ms {
        let act = draw_act(&mut dice);
        events.push(Event { at_ms, act });
        at_ms += between(&mut dice, PAUSE_MS[0], PAUSE_MS[1]);
    }
    events
}

fn between(dice: &mut Dice, least: i64, most: i64) -> u64 {
    u64::try_from(dice.between(least, most)).unwrap_or_default()
}

/// Scaling is drawn most often: without work nothing can go wrong.
fn draw_act(dice: &mut Dice) -> Act {
    if dice.percent(35) {
        return Act::Scale(dice.index(WILD_DEPLOYMENTS), dice.index(WILD_PODS_MAX + 1));
    }
    let calls = u32::try_from(dice.between(3, 15)).unwrap_or(3);
    let ms = between(dice, 3_000, 12_000);
    match dice.index(26) {
        0 => Act::KillLeader,
        1 | 2 | 22 | 23 | 24 => Act::KillAtLaunch,
        3 | 25 => Act::FreezeLeader,
        4 => Act::RestartApiServer,
        5 => Act::RestartEtcd,
        6 => Act::CutCloud(ms),
        7 => Act::HoldUpCloud(ms),
        8 => Act::CutApiServer(ms),
        9 => Act::DropWatches,
        10 => Act::Throttle(calls),
        11 => Act::CutAnswers(calls),
        12 => Act::SlowAnswers(calls),
        13 => Act::NoStock(calls),
        14 => Act::SpotStorm,
        15 => Act::NoBoot(ms),
        16 => Act::NotReady(ms),
        17 => {
            if dice.percent(50) {
                Act::DeleteClaim
            } else {
                Act::DeleteNode
            }
        }
        18 => Act::Policy(dice.pick(&[
            Policy::One,
            Policy::Another,
            Policy::Trap,
            Policy::Broken,
            Policy::Gone,
        ])),
        19 | 20 => Act::Roll,
        _ if dice.percent(50) => Act::DeletePool,
        _ => Act::CreatePool,
    }
}

/// Deployments whose pods go to the wild pool.
pub(super) const WILD_DEPLOYMENTS: usize = 4;
/// Pods of each: all of them together want more than the pool's limit.
pub(super) const WILD_PODS_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_says_everything_and_ten_seeds_try_every_act() {
        assert_eq!(draw(7, 150_000), draw(7, 150_000));
        assert_ne!(draw(7, 150_000), draw(8, 150_000));

        let all = (1..=10).flat_map(|seed| draw(seed, 150_000));
        let names: BTreeSet<String> = all
            .map(|event| format!("{:?}", event.act))
            .map(|text| text.split('(').next().unwrap_or_default().to_owned())
            .collect();

        assert_eq!(names.len(), 23, "{names:?}");
    }
}
