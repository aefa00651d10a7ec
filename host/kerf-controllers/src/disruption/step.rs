//! What a running command does next, from what is there. Pure: this is the whole state machine.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kerf_core::disruption::CommandKind;
use kerf_core::node::Node;
use kerf_core::pod::{OwnerKind, PodPhase};

/// How long the replacements may take: as long as any claim may take to register. Karpenter: differs, because its ten
/// minutes end before a replacement is given up by itself.
pub const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A claim that was just created may not be in the watch yet; one that is missing for longer does not exist.
pub const UNSEEN_MAX: Duration = Duration::from_secs(10);

/// How far a replacement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// Created, and not seen yet.
    Unseen,
    /// It was given up, deleted, or never created.
    Lost,
    /// On its way.
    Starting,
    /// Initialised.
    Ready,
}

/// A command as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Candidates that are there and not being deleted.
    pub staying: usize,
    /// Each replacement's name and state.
    pub replacements: Vec<(String, Replacement)>,
    /// How long ago the command was started.
    pub age: Duration,
}

impl Sight {
    /// Whether every replacement is known to exist. Before, the candidates must not count as going: provisioning would make
    /// nodes for their pods a second time.
    #[must_use]
    pub fn is_all_seen(&self) -> bool {
        let is_there =
            |state: Replacement| matches!(state, Replacement::Starting | Replacement::Ready);
        self.replacements.iter().all(|(_, state)| is_there(*state))
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet: these replacements are not ready.
    Wait(Vec<String>),
    /// Look at the candidates once more, and delete them.
    Finish,
    /// Give the candidates back.
    RollBack(Failure),
    /// Nothing is left to do.
    Done,
}

/// Why a command is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A replacement is gone.
    ReplacementLost(String),
    /// The replacements took too long.
    TooLate,
    /// The candidates may not go any more.
    Invalid(String),
    /// A step could not be carried out.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplacementLost(name) => {
                write!(f, "the replacement {name} did not become a node")
            }
            Self::TooLate => write!(
                f,
                "the replacements were not ready within {} min",
                TIMEOUT.as_secs() / 60
            ),
            Self::Invalid(why) | Self::Broken(why) => f.write_str(why),
        }
    }
}

/// The next step of a command.
#[must_use]
pub fn next(sight: &Sight) -> Step {
    if sight.staying == 0 {
        return Step::Done;
    }
    let lost = sight
        .replacements
        .iter()
        .find(|(_, state)| *state == Replacement::Lost);
    if let Some((name, _)) = lost {
        return Step::RollBack(Failure::ReplacementLost(name.clone()));
    }
    let missing: Vec<String> = sight
        .replacements
        .iter()
        .filter(|(_, state)| *state != Replacement::Ready)
        .map(|(name, _)| name.clone())
        .collect();
    if missing.is_empty() {
        return Step::Finish;
    }
    if sight.age >= TIMEOUT {
        return Step::RollBack(Failure::TooLate);
    }
    Step::Wait(missing)
}

/// What keeps a candidate from going at the last look, after its taint keeps new pods away.
#[must_use]
pub fn obstacle(kind: CommandKind, node: &Node, now: Timestamp) -> Option<String> {
    let name = node.display_name();
    if node.forbids_disruption {
        return Some(format!("node {name} forbids disruption now"));
    }
    let is_drift = matches!(kind, CommandKind::Drift | CommandKind::StaticDrift);
    if !is_drift && node.is_nominated(now) {
        return Some(format!("pods are expected on node {name} now"));
    }
    if kind == CommandKind::Empty && node.pods.iter().any(|pod| pod.is_reschedulable()) {
        return Some(format!("node {name} is not empty any more"));
    }
    // A deadline ends the drain of a drifted node whatever its pods say.
    if is_drift && node.termination_grace_period.is_some() {
        return None;
    }
    let forbidding = node.pods.iter().find(|pod| {
        pod.phase == PodPhase::Active
            && pod.spec.owner != OwnerKind::Node
            && pod.forbids_disruption(now)
    })?;
    Some(format!(
        "pod {}/{} on node {name} forbids disruption now",
        forbidding.namespace, forbidding.name
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use kerf_core::pod::{DoNotDisrupt, Pod, PodSpec};

    use super::*;

    fn sight(staying: usize, states: &[Replacement], age_secs: u64) -> Sight {
        let names = ["r-1", "r-2"].iter().map(|name| (*name).to_owned());
        Sight {
            staying,
            replacements: names.zip(states.iter().copied()).collect(),
            age: Duration::from_secs(age_secs),
        }
    }

    #[test]
    fn candidates_go_only_when_every_replacement_is_ready() {
        use Replacement::{Lost, Ready, Starting, Unseen};
        let wait = |name: &str| Step::Wait(vec![name.to_owned()]);
        let lost = |name: &str| Step::RollBack(Failure::ReplacementLost(name.to_owned()));

        for (staying, states, age, expected) in [
            (2, &[][..], 0, Step::Finish),
            (2, &[Ready, Ready], 0, Step::Finish),
            (2, &[Ready, Starting], 0, wait("r-2")),
            (2, &[Unseen, Ready], 0, wait("r-1")),
            (2, &[Ready, Lost], 0, lost("r-2")),
            (1, &[Ready, Starting], 900, Step::RollBack(Failure::TooLate)),
            (1, &[Ready, Ready], 9000, Step::Finish),
            (0, &[Starting], 9000, Step::Done),
        ] {
            assert_eq!(next(&sight(staying, states, age)), expected, "{states:?}");
        }
    }

    fn node_with(pod: Pod) -> Node {
        Node {
            name: Some("n".into()),
            pods: vec![Arc::new(pod)].into(),
            ..Node::default()
        }
    }

    fn pod(do_not_disrupt: DoNotDisrupt) -> Pod {
        let mut pod = Pod::new("web", PodSpec::requesting(100, 1));
        pod.do_not_disrupt = do_not_disrupt;
        pod
    }

    #[test]
    fn what_changed_since_the_decision_takes_the_command_back() {
        let now = Timestamp::from_second(100).unwrap();
        let plain = node_with(pod(DoNotDisrupt::No));
        let held = node_with(pod(DoNotDisrupt::Forever));
        let limited = Node {
            termination_grace_period: Some(SignedDuration::from_secs(60)),
            ..held.clone()
        };
        let wanted = Node {
            nominated_until: Timestamp::from_second(101).ok(),
            ..plain.clone()
        };
        let forbidding = Node {
            forbids_disruption: true,
            ..plain.clone()
        };

        for (kind, node, is_kept) in [
            (CommandKind::Multi, &plain, false),
            (CommandKind::Empty, &plain, true),
            (CommandKind::Single, &held, true),
            (CommandKind::Drift, &held, true),
            (CommandKind::Drift, &limited, false),
            (CommandKind::Single, &limited, true),
            (CommandKind::Multi, &wanted, true),
            (CommandKind::Drift, &wanted, false),
            (CommandKind::Drift, &forbidding, true),
        ] {
            assert_eq!(obstacle(kind, node, now).is_some(), is_kept, "{kind:?}");
        }
    }
}
