//! Settings of disruption. What is not set leaves Karpenter's behaviour as it is.

use jiff::SignedDuration;

use crate::plan::WorkBudget;
use crate::price::Price;

/// How disruption decides, for the whole controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisruptionSettings {
    /// The gate SpotToSpotConsolidation: whether a spot node may be replaced by a spot node.
    pub spot_to_spot: bool,
    /// What a consolidation must bring, where the NodePool says nothing.
    pub hysteresis: Hysteresis,
    /// For how long nothing goes back to the offering that it came from; none switches the guard off.
    pub flip_guard: Option<SignedDuration>,
    /// How much a pass may search.
    pub work: WorkBudget,
}

impl Default for DisruptionSettings {
    fn default() -> Self {
        Self {
            spot_to_spot: false,
            hysteresis: Hysteresis::default(),
            flip_guard: Some(FLIP_GUARD),
            work: WORK,
        }
    }
}

/// A day: prices and loads that swing do so by the day, and a node that comes back daily is only churn.
const FLIP_GUARD: SignedDuration = SignedDuration::from_hours(24);

/// Some ten seconds on one core; a pass over 5,000 nodes with 20 pods each takes a small part of it.
const WORK: WorkBudget = WorkBudget(400_000_000);

/// What a consolidation must bring. Nothing set: any saving is enough, as with Karpenter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hysteresis {
    /// The least saving per hour of a command.
    pub saving_min: Option<Price>,
    /// The least saving in percent of what its candidates cost.
    pub saving_min_percent: Option<u32>,
    /// The least age of a node.
    pub node_age_min: Option<SignedDuration>,
    /// How long a pool is left alone after its youngest node was made.
    pub cool_down: Option<SignedDuration>,
    /// Nodes whose scarcest resource is requested to more than that are left alone.
    pub utilization_max_percent: Option<u32>,
}

impl Hysteresis {
    /// The same with what `other` says where this says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            saving_min: self.saving_min.or(other.saving_min),
            saving_min_percent: self.saving_min_percent.or(other.saving_min_percent),
            node_age_min: self.node_age_min.or(other.node_age_min),
            cool_down: self.cool_down.or(other.cool_down),
            utilization_max_percent: self
                .utilization_max_percent
                .or(other.utilization_max_percent),
        }
    }
}
