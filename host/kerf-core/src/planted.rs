//! Rule errors that a test can switch on, to prove that whatever guards the rules would find them.
//!
//! They exist in builds with debug assertions only: elsewhere the question is answered at compile time, so that no
//! release build has them whatever else is built beside it. The switch belongs to one thread and one call.

#[cfg(debug_assertions)]
use std::cell::Cell;

/// A rule error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A toleration with `Equal` covers every value.
    TolerationIgnoresValue,
    /// A spread constraint allows one pod more than `maxSkew`.
    SkewOffByOne,
    /// `minDomains` is not looked at.
    MinDomainsIgnored,
    /// `nodeTaintsPolicy: Honor` counts like `Ignore`.
    NodeTaintsPolicyIgnored,
    /// `matchLabelKeys` and `mismatchLabelKeys` add nothing to the selector.
    LabelKeysIgnored,
    /// Anti-affinity keeps only its owner away, not others from its owner.
    InverseAntiAffinityMissed,
    /// Two pods may have the same host port.
    HostPortsShared,
    /// New nodes are planned without room for daemons.
    DaemonsForgotten,
    /// Where a volume can be used is not looked at.
    VolumeZonesIgnored,
    /// How many volumes a node can attach is not looked at.
    AttachLimitsIgnored,
    /// Affinity terms speak of the pod's own namespace only.
    TermNamespacesIgnored,
    /// `Gt` lets its own bound through.
    GtInclusive,
    /// Pods that are bound to existing nodes take no room.
    BoundPodsWeightless,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::TolerationIgnoresValue,
        Self::SkewOffByOne,
        Self::MinDomainsIgnored,
        Self::NodeTaintsPolicyIgnored,
        Self::LabelKeysIgnored,
        Self::InverseAntiAffinityMissed,
        Self::HostPortsShared,
        Self::DaemonsForgotten,
        Self::VolumeZonesIgnored,
        Self::AttachLimitsIgnored,
        Self::TermNamespacesIgnored,
        Self::GtInclusive,
        Self::BoundPodsWeightless,
    ];
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Does the work with the rule error in it; without debug assertions, as it is right.
#[cfg(debug_assertions)]
pub fn with<T>(bug: Bug, work: impl FnOnce() -> T) -> T {
    let before = PLANTED.replace(Some(bug));
    let result = work();
    PLANTED.set(before);
    result
}

/// Does the work with the rule error in it; without debug assertions, as it is right.
#[cfg(not(debug_assertions))]
pub fn with<T>(_bug: Bug, work: impl FnOnce() -> T) -> T {
    work()
}

/// Whether the rule error is switched on.
#[cfg(debug_assertions)]
pub(crate) fn is_on(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether the rule error is switched on.
#[cfg(not(debug_assertions))]
pub(crate) const fn is_on(_bug: Bug) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_on_inside_its_call_only() {
        let inside = with(Bug::SkewOffByOne, || {
            (is_on(Bug::SkewOffByOne), is_on(Bug::GtInclusive))
        });

        assert_eq!(inside, (cfg!(debug_assertions), false));
        assert!(!is_on(Bug::SkewOffByOne));
    }
}
