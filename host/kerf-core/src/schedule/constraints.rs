//! Topology spread and pod (anti-)affinity of a class as groups.

use std::collections::BTreeSet;

use super::class::{ClassContext, Owned};
use super::sets::SetId;
use super::topology::{Filter, GroupId, GroupKey, GroupKind, Identity, Scope};
use crate::labels;
use crate::planted::{self, Bug};
use crate::pod::{
    NodeInclusionPolicy, PodAffinityTerm, PodSpec, TopologySpread, WhenUnsatisfiable,
};
use crate::selector::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
use crate::snapshot::PreferencePolicy;

/// The groups of a class by how binding they are.
#[derive(Debug, Default)]
pub(super) struct Constraints {
    pub(super) required: Vec<Owned>,
    /// Heaviest first.
    pub(super) preferred_affinity: Vec<Owned>,
    /// Heaviest first.
    pub(super) preferred_anti_affinity: Vec<Owned>,
    pub(super) schedule_anyway: Vec<Owned>,
    pub(super) inverse: Vec<GroupId>,
}

impl ClassContext<'_> {
    pub(super) fn constraints(&mut self, namespace: &str, spec: &PodSpec) -> Constraints {
        let mut constraints = Constraints::default();
        for spread in &spec.topology_spread {
            let owned = self.spread(namespace, spec, spread);
            match spread.when_unsatisfiable {
                WhenUnsatisfiable::DoNotSchedule => constraints.required.push(owned),
                WhenUnsatisfiable::ScheduleAnyway => constraints.schedule_anyway.push(owned),
            }
        }
        let scopes: Vec<Scope> = spec
            .affinity
            .iter()
            .map(|term| self.scope(namespace, spec, term))
            .collect();
        for term in &spec.affinity {
            let owned = self.own(
                namespace,
                spec,
                &term.topology_key,
                GroupKind::Affinity,
                scopes.clone(),
            );
            constraints.required.push(owned);
        }
        for term in &spec.anti_affinity {
            let scopes = vec![self.scope(namespace, spec, term)];
            let key = &term.topology_key;
            constraints.required.push(self.own(
                namespace,
                spec,
                key,
                GroupKind::AntiAffinity,
                scopes.clone(),
            ));
            constraints.inverse.push(self.inverse(key, scopes));
        }
        if self.snapshot.settings.preference_policy == PreferencePolicy::Respect {
            self.add_preferred(namespace, spec, &mut constraints);
        }
        constraints
    }

    fn add_preferred(&mut self, namespace: &str, spec: &PodSpec, constraints: &mut Constraints) {
        let both = [
            (
                &spec.preferred_affinity,
                GroupKind::Affinity,
                &mut constraints.preferred_affinity,
            ),
            (
                &spec.preferred_anti_affinity,
                GroupKind::AntiAffinity,
                &mut constraints.preferred_anti_affinity,
            ),
        ];
        for (terms, kind, owned) in both {
            let mut terms: Vec<_> = terms.iter().collect();
            terms.sort_by_key(|it| std::cmp::Reverse(it.weight));
            for weighted in terms {
                let scopes = vec![self.scope(namespace, spec, &weighted.term)];
                owned.push(self.own(namespace, spec, &weighted.term.topology_key, kind, scopes));
            }
        }
    }

    fn spread(&mut self, namespace: &str, spec: &PodSpec, spread: &TopologySpread) -> Owned {
        let kind = GroupKind::Spread {
            max_skew: spread.max_skew,
            min_domains: spread.min_domains.unwrap_or(1),
        };
        let selector = with_label_keys(
            spread.selector.as_ref(),
            &spec.labels,
            &spread.match_label_keys,
            &[],
        );
        let scope = Scope {
            namespaces: Some([namespace.to_owned()].into_iter().collect()),
            selector,
        };
        let mut filter = Filter::default();
        if spread.node_affinity_policy == NodeInclusionPolicy::Honor {
            let terms = super::daemon::strict_terms(spec)
                .into_iter()
                .map(|term| self.sets.intern(term));
            filter.terms = terms.filter(|term| *term != SetId::EMPTY).collect();
        }
        if spread.node_taints_policy == NodeInclusionPolicy::Honor
            && !planted::is_on(Bug::NodeTaintsPolicyIgnored)
        {
            filter.tolerations = Some(self.taints.tolerations(&spec.tolerations));
        }
        let identity = Identity {
            key: self.group_key(&spread.topology_key),
            kind,
            scopes: vec![scope],
            filter,
        };
        self.own_identity(namespace, spec, identity)
    }

    fn own(
        &mut self,
        namespace: &str,
        spec: &PodSpec,
        key: &str,
        kind: GroupKind,
        scopes: Vec<Scope>,
    ) -> Owned {
        let identity = Identity {
            key: self.group_key(key),
            kind,
            scopes,
            filter: Filter::default(),
        };
        self.own_identity(namespace, spec, identity)
    }

    fn own_identity(&mut self, namespace: &str, spec: &PodSpec, identity: Identity) -> Owned {
        let (group, _) = self.topology.group(identity);
        Owned {
            group,
            counts_itself: self.topology.groups[group].matches(namespace, &spec.labels),
        }
    }

    /// The group that keeps others away from the owners of an anti-affinity term.
    pub(super) fn inverse(&mut self, key: &str, scopes: Vec<Scope>) -> GroupId {
        let key = self.group_key(key);
        let identity = Identity {
            key,
            kind: GroupKind::InverseAntiAffinity,
            scopes,
            filter: Filter::default(),
        };
        self.topology.group(identity).0
    }

    fn group_key(&mut self, key: &str) -> GroupKey {
        match &*labels::normalize_key(key) {
            labels::HOSTNAME => GroupKey::Hostname,
            key => GroupKey::Label(self.domains.key(key)),
        }
    }

    pub(super) fn scope(&self, namespace: &str, spec: &PodSpec, term: &PodAffinityTerm) -> Scope {
        let keys = (&term.match_label_keys, &term.mismatch_label_keys);
        let selector = with_label_keys(term.selector.as_ref(), &spec.labels, keys.0, keys.1);
        if planted::is_on(Bug::TermNamespacesIgnored) {
            let namespaces = Some([namespace.to_owned()].into_iter().collect());
            return Scope {
                namespaces,
                selector,
            };
        }
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().cloned().collect();
        match &term.namespace_selector {
            Some(all) if *all == LabelSelector::default() => {
                return Scope {
                    namespaces: None,
                    selector,
                };
            }
            Some(some) => {
                let selected = self
                    .snapshot
                    .namespaces
                    .iter()
                    .filter(|(_, labels)| some.matches(labels));
                namespaces.extend(selected.map(|(name, _)| name.clone()));
            }
            None if namespaces.is_empty() => drop(namespaces.insert(namespace.to_owned())),
            None => {}
        }
        Scope {
            namespaces: Some(namespaces),
            selector,
        }
    }
}

/// A selector with the pod's own values of some labels added or excluded.
fn with_label_keys(
    selector: Option<&LabelSelector>,
    labels: &Labels,
    matching: &[String],
    mismatching: &[String],
) -> Option<LabelSelector> {
    let mut selector = selector?.clone();
    if planted::is_on(Bug::LabelKeysIgnored) {
        return Some(selector);
    }
    let keys = matching.iter().map(|key| (key, SelectorOperator::In));
    for (key, operator) in keys.chain(mismatching.iter().map(|key| (key, SelectorOperator::NotIn)))
    {
        if let Some(value) = labels.get(key) {
            let expression = SelectorExpression {
                key: key.clone(),
                operator,
                values: vec![value.clone()],
            };
            selector.match_expressions.push(expression);
        }
    }
    Some(selector)
}
