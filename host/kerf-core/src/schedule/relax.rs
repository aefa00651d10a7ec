//! The steps in which a class gives up its soft constraints, each a variant of it (behaviour §2.6).

use super::class::{ClassContext, Owned, Variant};
use super::constraints::Constraints;
use crate::pod::PodSpec;
use crate::requirements::Requirements;
use crate::snapshot::PreferencePolicy;
use crate::taint::{TaintEffect, Toleration};

impl ClassContext<'_> {
    /// The class as written, and then after each step of giving up (behaviour §2.6).
    pub(super) fn variants(&mut self, spec: &PodSpec, constraints: &Constraints) -> Vec<Variant> {
        let mut kept = Kept::all(spec, constraints, self.snapshot.settings.preference_policy);
        let mut variants = vec![self.variant(spec, constraints, &kept)];
        while kept.give_up_one(self.has_soft_taints) {
            variants.push(self.variant(spec, constraints, &kept));
        }
        // Upstream drops required terms before preferences, so that an earlier term is never tried without them.
        let terms = spec.required_node_terms.len();
        let all_terms = (1..=terms.max(1)).rev();
        if terms > 1 && variants.len() > terms {
            for required_terms in all_terms.clone() {
                variants.push(self.variant(
                    spec,
                    constraints,
                    &Kept {
                        required_terms,
                        ..kept
                    },
                ));
            }
        }
        if constraints
            .required
            .iter()
            .any(|owned| self.topology.groups[owned.group].is_label_spread())
        {
            for required_terms in all_terms {
                let variant = self.variant(
                    spec,
                    constraints,
                    &Kept {
                        required_terms,
                        ..kept
                    },
                );
                variants.push(Variant {
                    is_last_resort: true,
                    ..variant
                });
            }
        }
        variants
    }

    fn variant(&mut self, spec: &PodSpec, constraints: &Constraints, kept: &Kept) -> Variant {
        let mut set = Some(Requirements::from_labels(&spec.node_selector));
        let mut require = |term: Option<&Requirements>| {
            if let Some(term) = term {
                set = set.as_ref().and_then(|set| set.together(term));
            }
        };
        require(
            spec.required_node_terms.get(
                spec.required_node_terms
                    .len()
                    .saturating_sub(kept.required_terms),
            ),
        );
        let mut preferred: Vec<_> = spec.preferred_node_terms.iter().collect();
        preferred.sort_by_key(|it| std::cmp::Reverse(it.weight));
        require(
            preferred
                .get(preferred.len() - kept.node_terms)
                .map(|it| &it.term)
                .filter(|_| kept.node_terms > 0),
        );
        let mut owned = constraints.required.clone();
        owned.extend_from_slice(lightest(&constraints.preferred_affinity, kept.affinity));
        owned.extend_from_slice(lightest(
            &constraints.preferred_anti_affinity,
            kept.anti_affinity,
        ));
        owned.extend_from_slice(lightest(&constraints.schedule_anyway, kept.schedule_anyway));
        let mut tolerations = spec.tolerations.clone();
        if kept.tolerates_soft_taints {
            tolerations.push(Toleration::every(TaintEffect::PreferNoSchedule));
        }
        Variant {
            set: set.map(|set| self.sets.intern(set)),
            tolerations: self.taints.tolerations(&tolerations),
            owned,
            is_last_resort: false,
            keys: Vec::new(),
        }
    }
}

/// How much of its constraints a variant keeps.
#[derive(Debug, Clone, Copy)]
struct Kept {
    required_terms: usize,
    affinity: usize,
    anti_affinity: usize,
    node_terms: usize,
    schedule_anyway: usize,
    tolerates_soft_taints: bool,
}

impl Kept {
    fn all(spec: &PodSpec, constraints: &Constraints, policy: PreferencePolicy) -> Self {
        let soft = |count: usize| {
            if policy == PreferencePolicy::Respect {
                count
            } else {
                0
            }
        };
        Self {
            required_terms: spec.required_node_terms.len(),
            affinity: soft(constraints.preferred_affinity.len()),
            anti_affinity: soft(constraints.preferred_anti_affinity.len()),
            node_terms: soft(spec.preferred_node_terms.len()),
            schedule_anyway: soft(constraints.schedule_anyway.len()),
            tolerates_soft_taints: false,
        }
    }

    /// Gives up the next thing; false when nothing is left to give up.
    fn give_up_one(&mut self, has_soft_taints: bool) -> bool {
        if self.required_terms > 1 {
            self.required_terms -= 1;
            return true;
        }
        let soft = [
            &mut self.affinity,
            &mut self.anti_affinity,
            &mut self.node_terms,
            &mut self.schedule_anyway,
        ];
        for count in soft {
            if *count > 0 {
                *count -= 1;
                return true;
            }
        }
        let gives_in = has_soft_taints && !self.tolerates_soft_taints;
        self.tolerates_soft_taints |= gives_in;
        gives_in
    }
}

/// The last ones of a list whose first ones are given up first.
fn lightest(all: &[Owned], count: usize) -> &[Owned] {
    &all[all.len() - count.min(all.len())..]
}
