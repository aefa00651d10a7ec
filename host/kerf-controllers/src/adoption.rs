//! What the other providers for Alibaba Cloud left behind, and which of it is ours to look after. Pure.
//!
//! The group of a class reference cannot change, neither in a NodeClaim nor in a NodePool. A pool of the CloudPilot
//! provider stands for our ECSNodeClass of the same name: its new claims refer to ours. A claim that that provider made
//! is kept, drained and deleted with its instance; it is never launched, and nothing that it was made from is compared
//! with today's: that class is not ours to read. Claims of the AliyunContainerService provider refer to
//! our own group. docs/decisions has the hand-over and the way back.

use kerf_api::names::label;
use kerf_api::requirement::NodeClassReference;

/// The group of the CloudPilot provider's classes.
pub const OTHER_GROUP: &str = label::ADOPTED_DOMAIN;

const NODE_CLASS_KIND: &str = "ECSNodeClass";

/// Whether the class is of our own group.
#[must_use]
pub fn is_ours(class: &NodeClassReference) -> bool {
    class.group == label::PROVIDER_DOMAIN && class.kind == NODE_CLASS_KIND
}

/// Whether the class is of a provider that we take over from: its claims are kept until something
/// ends them.
#[must_use]
pub fn is_adopted(class: &NodeClassReference) -> bool {
    class.group == OTHER_GROUP && class.kind == NODE_CLASS_KIND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_both_alibaba_providers_are_looked_after_and_those_of_other_clouds_are_not() {
        let class = |group: &str, kind: &str| NodeClassReference {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: "default".to_owned(),
        };

        assert!(is_ours(&class(
            "karpenter.alibabacloud.com",
            "ECSNodeClass"
        )));
        assert!(is_adopted(&class(OTHER_GROUP, "ECSNodeClass")));
        for strange in [
            class("karpenter.k8s.aws", "EC2NodeClass"),
            class(OTHER_GROUP, "Other"),
        ] {
            assert!(!is_ours(&strange) && !is_adopted(&strange));
        }
    }
}
