//! Feature gates: Karpenter's names. Pure.

use std::str::FromStr;

/// What is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGates {
    /// Broken nodes are replaced.
    pub node_repair: bool,
    /// Reserved capacity is used. No offering of Alibaba Cloud is of this kind yet, so that both values do the same.
    pub reserved_capacity: bool,
    /// NodeOverlays change prices and capacities.
    pub node_overlay: bool,
    /// NodePools with `replicas` keep that many nodes.
    pub static_capacity: bool,
    /// CapacityBuffers keep room free.
    pub capacity_buffer: bool,
    /// Spot nodes are replaced by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
}

/// Karpenter: same.
impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            spot_to_spot_consolidation: false,
        }
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    /// Reads `NodeRepair=true,ReservedCapacity=false`; what is not named keeps its default.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        let parts = text.split(',').map(str::trim);
        for part in parts.filter(|part| !part.is_empty()) {
            let form = || format!("{part:?} is not of the form NodeRepair=true");
            let (name, value) = part.split_once('=').ok_or_else(form)?;
            let is_open = value.trim().to_lowercase().parse().map_err(|_| form())?;
            match name.trim() {
                "NodeRepair" => gates.node_repair = is_open,
                "ReservedCapacity" => gates.reserved_capacity = is_open,
                "NodeOverlay" => gates.node_overlay = is_open,
                "StaticCapacity" => gates.static_capacity = is_open,
                "CapacityBuffer" => gates.capacity_buffer = is_open,
                "SpotToSpotConsolidation" => gates.spot_to_spot_consolidation = is_open,
                // Karpenter ignores it; here nobody waits for what a misspelt gate promises.
                name => {
                    return Err(format!(
                        "no feature gate is called {name:?}; there are NodeRepair, ReservedCapacity, NodeOverlay, StaticCapacity, CapacityBuffer, SpotToSpotConsolidation"
                    ));
                }
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_that_are_not_named_keep_their_default() {
        let gates: FeatureGates = "NodeRepair=true, SpotToSpotConsolidation=true,"
            .parse()
            .unwrap();

        assert!(gates.node_repair && gates.reserved_capacity);
        assert!(gates.spot_to_spot_consolidation && !gates.capacity_buffer);
        assert_eq!("".parse(), Ok(FeatureGates::default()));
    }

    #[test]
    fn a_gate_that_would_do_nothing_is_refused() {
        for text in ["Nodeoverlay=false", "NodeRepair", "NodeRepair=on"] {
            assert!(text.parse::<FeatureGates>().is_err(), "{text}");
        }
    }
}
