//! Taints of nodes and the tolerations of pods, with Kubernetes' matching rules.

use std::fmt;

use crate::labels::{DISRUPTED_TAINT, UNREGISTERED_TAINT};
use crate::planted::{self, Bug};

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away and running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The effect of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => return None,
        })
    }

    /// The effect's name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value; often empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

impl Taint {
    /// A taint without a value.
    pub fn new(key: &str, effect: TaintEffect) -> Self {
        Self {
            key: key.to_owned(),
            value: String::new(),
            effect,
        }
    }

    /// The taint of nodes that are being removed.
    pub fn disrupted() -> Self {
        Self::new(DISRUPTED_TAINT, TaintEffect::NoSchedule)
    }

    /// The taint that every node of ours is born with.
    pub fn unregistered() -> Self {
        Self::new(UNREGISTERED_TAINT, TaintEffect::NoExecute)
    }

    /// Whether it goes away by itself while a node of ours starts, so that planning may ignore it until then.
    pub fn is_ephemeral(&self) -> bool {
        match self.key.as_str() {
            "node.kubernetes.io/not-ready" => self.effect != TaintEffect::PreferNoSchedule,
            "node.kubernetes.io/unreachable" => self.effect == TaintEffect::NoSchedule,
            "node.cloudprovider.kubernetes.io/uninitialized" => {
                self.effect == TaintEffect::NoSchedule && self.value == "true"
            }
            UNREGISTERED_TAINT => self.effect == TaintEffect::NoExecute,
            key => key.starts_with("readiness.k8s.io/"),
        }
    }

    /// Whether both are about the same thing: a node has one taint per key and effect.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect.as_str())
    }
}

/// How a toleration compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    /// The taint's value is this one.
    Equal,
    /// Any value.
    Exists,
    /// The taint's value is an integer less than this.
    Lt,
    /// The taint's value is an integer greater than this.
    Gt,
}

impl TolerationOperator {
    /// The operator of that name; an empty name means `Equal`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "Equal" => Self::Equal,
            "Exists" => Self::Exists,
            "Lt" => Self::Lt,
            "Gt" => Self::Gt,
            _ => return None,
        })
    }
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// The taint's key; none tolerates every key.
    pub key: Option<String>,
    /// How values are compared.
    pub operator: TolerationOperator,
    /// The value to compare with.
    pub value: String,
    /// The taint's effect; none tolerates every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Tolerates every taint of an effect.
    pub fn every(effect: TaintEffect) -> Self {
        Self {
            key: None,
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: Some(effect),
        }
    }

    /// Whether it tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect_matches = self.effect.is_none_or(|effect| effect == taint.effect);
        let key_matches = self.key.as_ref().is_none_or(|key| *key == taint.key);
        effect_matches && key_matches && self.accepts_value(&taint.value)
    }

    fn accepts_value(&self, value: &str) -> bool {
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => {
                self.value == value || planted::is_on(Bug::TolerationIgnoresValue)
            }
            TolerationOperator::Lt => {
                compare(value, &self.value).is_some_and(std::cmp::Ordering::is_lt)
            }
            TolerationOperator::Gt => {
                compare(value, &self.value).is_some_and(std::cmp::Ordering::is_gt)
            }
        }
    }
}

fn compare(left: &str, right: &str) -> Option<std::cmp::Ordering> {
    Some(left.parse::<i64>().ok()?.cmp(&right.parse::<i64>().ok()?))
}

/// The first taint that none of the tolerations covers. `PreferNoSchedule` counts like the others.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        !tolerations
            .iter()
            .any(|toleration| toleration.tolerates(taint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: TolerationOperator, value: &str) -> Toleration {
        Toleration {
            key: Some(key.to_owned()),
            operator,
            value: value.to_owned(),
            effect: None,
        }
    }

    fn taint(value: &str) -> Taint {
        Taint {
            value: value.to_owned(),
            ..Taint::new("team", TaintEffect::NoSchedule)
        }
    }

    #[test]
    fn equal_compares_the_value_and_exists_does_not() {
        assert!(toleration("team", TolerationOperator::Equal, "a").tolerates(&taint("a")));
        assert!(!toleration("team", TolerationOperator::Equal, "a").tolerates(&taint("b")));
        assert!(toleration("team", TolerationOperator::Exists, "").tolerates(&taint("b")));
        assert!(!toleration("other", TolerationOperator::Exists, "").tolerates(&taint("b")));
    }

    #[test]
    fn numeric_operators_compare_the_taint_with_the_toleration() {
        assert!(toleration("team", TolerationOperator::Gt, "5").tolerates(&taint("6")));
        assert!(!toleration("team", TolerationOperator::Gt, "5").tolerates(&taint("5")));
        assert!(toleration("team", TolerationOperator::Lt, "5").tolerates(&taint("4")));
        assert!(!toleration("team", TolerationOperator::Lt, "5").tolerates(&taint("x")));
    }

    #[test]
    fn a_toleration_without_key_covers_every_key_of_its_effect() {
        let every = Toleration::every(TaintEffect::NoSchedule);
        assert!(every.tolerates(&taint("a")));
        assert!(!every.tolerates(&Taint::unregistered()));
    }

    #[test]
    fn start_up_taints_of_kubernetes_are_ephemeral() {
        assert!(Taint::unregistered().is_ephemeral());
        assert!(Taint::new("readiness.k8s.io/cni", TaintEffect::NoSchedule).is_ephemeral());
        assert!(
            !Taint::new("node.kubernetes.io/unreachable", TaintEffect::NoExecute).is_ephemeral()
        );
        assert!(!Taint::disrupted().is_ephemeral());
    }
}
