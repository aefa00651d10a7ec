//! The kinds whose conditions are shown, and what each of them says.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::condition::Condition;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::label;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;

use super::Labels;
use crate::metrics::termination::label_of;
use crate::watch::Watched;

/// As metrics name them.
pub(crate) const KINDS: [&str; 5] = [
    "nodeclaim",
    "nodepool",
    "node",
    "ecsnodeclass",
    "capacitybuffer",
];

/// What a condition says.
#[derive(Debug, Clone)]
pub struct Said<'a> {
    pub(super) type_: &'a str,
    pub(super) status: Status,
    pub(super) reason: &'a str,
    pub(super) since: Timestamp,
}

/// The three that there are, in a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    /// What is neither of the two is not known.
    fn of(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A kind whose conditions are shown.
pub trait Observed: Watched {
    /// Its place in [`KINDS`].
    const PLACE: usize;

    /// Its conditions.
    fn said(&self) -> Vec<Said<'_>>;

    /// Labels that its series have besides those of all kinds.
    fn more_labels(&self) -> Labels {
        Labels::new()
    }
}

impl Observed for NodeClaim {
    const PLACE: usize = 0;

    fn said(&self) -> Vec<Said<'_>> {
        of(self.conditions())
    }

    fn more_labels(&self) -> Labels {
        vec![
            ("nodepool", label_of(self, label::NODEPOOL)),
            ("nodeclass", self.spec.node_class_ref.name.clone()),
        ]
    }
}

impl Observed for NodePool {
    const PLACE: usize = 1;

    fn said(&self) -> Vec<Said<'_>> {
        of(self.conditions())
    }
}

impl Observed for Node {
    const PLACE: usize = 2;

    fn said(&self) -> Vec<Said<'_>> {
        let conditions = self.status.as_ref().and_then(|it| it.conditions.as_deref());
        let said = conditions.unwrap_or_default().iter().map(|it| Said {
            type_: &it.type_,
            status: Status::of(&it.status),
            reason: it.reason.as_deref().unwrap_or_default(),
            since: it
                .last_transition_time
                .as_ref()
                .map_or(Timestamp::UNIX_EPOCH, |it| it.0),
        });
        said.collect()
    }

    fn more_labels(&self) -> Labels {
        vec![
            ("nodepool", label_of(self, label::NODEPOOL)),
            ("nodeclass", label_of(self, label::ECSNODECLASS)),
            ("initialized", label_of(self, label::INITIALIZED)),
        ]
    }
}

impl Observed for EcsNodeClass {
    const PLACE: usize = 3;

    fn said(&self) -> Vec<Said<'_>> {
        of(self.conditions())
    }
}

impl Observed for CapacityBuffer {
    const PLACE: usize = 4;

    fn said(&self) -> Vec<Said<'_>> {
        of(self.status.as_ref().map_or(&[], |it| &it.conditions))
    }
}

fn of(conditions: &[Condition]) -> Vec<Said<'_>> {
    let said = conditions.iter().map(|it| Said {
        type_: &it.type_,
        status: Status::of(it.status.as_str()),
        reason: &it.reason,
        since: it.last_transition_time,
    });
    said.collect()
}
