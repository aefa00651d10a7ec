//! A pass of our disruption over the cluster of a replay.

use kerf_core::Preferences;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::disruption::{Command, DisruptionSettings, decide};
use kerf_core::labels;
use kerf_core::node::Replaced;
use kerf_core::plan::PlacementTarget;

use super::cluster::{Cluster, Made, Place, Start};

/// What starts now.
pub(super) fn pass(cluster: &Cluster) -> Vec<Start> {
    let snapshot = cluster.snapshot();
    let settings = DisruptionSettings::default();
    let decision = decide(&snapshot, &Preferences::none(), &settings, cluster.now());
    decision.commands.iter().map(start).collect()
}

fn start(command: &Command) -> Start {
    let made = command.replacements.iter().filter_map(|planned| {
        let replaced = planned.annotations.get(labels::REPLACED);
        Some(Made {
            replaced: replaced.map_or_else(Vec::new, |it| Replaced::parse_all(it)),
            ..Made::of(planned.offerings.first()?)
        })
    });
    let moves = command.promises.iter().map(|promise| {
        let place = match &promise.place {
            PromisedPlace::Node(PlacementTarget::Node(name)) => Place::Node(name.to_string()),
            PromisedPlace::Node(PlacementTarget::InFlight(name)) => Place::Node(name.to_string()),
            PromisedPlace::Replacement(idx) => Place::Made(*idx),
        };
        (promise.pod.clone(), place)
    });
    Start {
        candidates: command.claims().map(ToString::to_string).collect(),
        made: made.collect(),
        moves: moves.collect(),
    }
}
