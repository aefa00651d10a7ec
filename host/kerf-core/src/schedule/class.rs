//! Pods in equivalence classes, and the steps in which each class gives up its soft constraints.
//!
//! Pods with equal specs (and namespaces) are one class: every question about them is asked once.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::daemon::with_one_pod;
use super::domains::{Domains, KeyId};
use super::sets::{SetId, SetTable};
use super::taints::{TaintTable, TolerationsId};
use super::topology::{Filter, GroupId, GroupKey, GroupKind, Identity, Scope, Topology};
use super::vector::{ResourceIndex, Vector};
use crate::labels;
use crate::pod::{
    NodeInclusionPolicy, Pod, PodAffinityTerm, PodSpec, TopologySpread, WhenUnsatisfiable,
};
use crate::requirements::Requirements;
use crate::selector::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
use crate::snapshot::{PreferencePolicy, Snapshot};
use crate::taint::{TaintEffect, Toleration};

/// Resource names that count attached volumes, by CSI driver.
pub(super) const ATTACHMENTS_PREFIX: &str = "attachable-volumes-csi-";

/// Pods that are alike.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) namespace: Arc<str>,
    pub(super) spec: Arc<PodSpec>,
    /// What a pod asks of an existing node.
    pub(super) request: Vector,
    /// What a pod asks of a new node: the same with its volumes counted.
    pub(super) claim_request: Vector,
    /// What its volumes ask of a node: one of these.
    pub(super) alternatives: Vec<SetId>,
    /// The class with all its preferences, then with one less each.
    pub(super) variants: Vec<Variant>,
    /// Groups that count it.
    pub(super) counted: Vec<GroupId>,
    /// Anti-affinity of others that keeps it away.
    pub(super) blocked_by: Vec<GroupId>,
    /// Its own anti-affinity, as it holds for others.
    pub(super) inverse: Vec<GroupId>,
    /// How many placements there were when it was last tried in vain.
    pub(super) failed_at: Option<usize>,
}

/// A class with some of its preferences.
#[derive(Debug)]
pub(super) struct Variant {
    /// What it asks of a node's labels; none when that is contradictory.
    pub(super) set: Option<SetId>,
    pub(super) tolerations: TolerationsId,
    pub(super) owned: Vec<Owned>,
    /// Whether spreads count only the domains that have nodes, as kube-scheduler does. Upstream counts all domains that
    /// could have some, which spreads better but can leave a pod without a place that would have had one.
    pub(super) is_last_resort: bool,
    /// Label keys whose value a node must have settled on once the pod is there.
    pub(super) keys: Vec<KeyId>,
}

/// A class in one of its variants, looking for a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest<'a> {
    pub(super) class: &'a Class,
    pub(super) variant: &'a Variant,
}

/// A constraint that a pod has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owned {
    pub(super) group: GroupId,
    /// Whether the pod is one of those that the constraint speaks of.
    pub(super) counts_itself: bool,
}

impl Class {
    /// Whether nothing but its requests and its node requirements decides where it can be.
    pub(super) fn is_plain(&self) -> bool {
        let is_counted = !self.counted.is_empty() || !self.inverse.is_empty();
        !is_counted
            && !self.depends_on_others()
            && self.spec.host_ports.is_empty()
            && self.variants.len() == 1
    }

    /// Whether its fate can change while others are placed.
    pub(super) fn depends_on_others(&self) -> bool {
        !self.blocked_by.is_empty()
            || self
                .variants
                .iter()
                .any(|variant| !variant.owned.is_empty())
    }
}

/// What classes are made with.
pub(super) struct ClassContext<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) resources: &'a ResourceIndex,
    pub(super) sets: &'a mut SetTable,
    pub(super) taints: &'a mut TaintTable,
    pub(super) domains: &'a mut Domains,
    pub(super) topology: &'a mut Topology,
    /// Whether some pool has a `PreferNoSchedule` taint.
    pub(super) has_soft_taints: bool,
}

/// All classes of a round.
#[derive(Debug, Default)]
pub(super) struct ClassTable {
    pub(super) classes: Vec<Class>,
}

/// Gives each pod its class, in the order of the pods.
pub(super) fn classify(pods: &[Arc<Pod>], ctx: &mut ClassContext<'_>) -> (ClassTable, Vec<usize>) {
    let mut table = ClassTable::default();
    let mut ids: FxHashMap<(&str, &PodSpec), usize> = FxHashMap::default();
    let of_pod = pods.iter().map(|pod| {
        *ids.entry((&pod.namespace, &pod.spec)).or_insert_with(|| {
            table.classes.push(ctx.class(&pod.namespace, &pod.spec));
            table.classes.len() - 1
        })
    });
    let of_pod = of_pod.collect();
    (table, of_pod)
}

impl ClassTable {
    /// Finds the groups that each class is counted in or kept away by. All groups must exist.
    pub(super) fn join_groups(&mut self, topology: &Topology) {
        for class in &mut self.classes {
            for id in topology.groups_of(&class.namespace, &class.spec.labels) {
                match topology.groups[id].identity.kind {
                    GroupKind::InverseAntiAffinity => class.blocked_by.push(id),
                    GroupKind::Spread { .. } | GroupKind::Affinity | GroupKind::AntiAffinity => {
                        class.counted.push(id);
                    }
                }
            }
            let of_all: Vec<GroupId> = class
                .counted
                .iter()
                .chain(&class.blocked_by)
                .chain(&class.inverse)
                .copied()
                .collect();
            for variant in &mut class.variants {
                let groups = of_all
                    .iter()
                    .copied()
                    .chain(variant.owned.iter().map(|owned| owned.group));
                let keys: BTreeSet<KeyId> = groups
                    .filter_map(|id| match topology.groups[id].identity.key {
                        GroupKey::Label(key) => Some(key),
                        GroupKey::Hostname => None,
                    })
                    .collect();
                variant.keys = keys.into_iter().collect();
            }
        }
    }
}

impl ClassContext<'_> {
    fn class(&mut self, namespace: &Arc<str>, spec: &Arc<PodSpec>) -> Class {
        let mut requests = with_one_pod(&spec.requests);
        let request = self.resources.vector(&requests);
        for volume in &spec.volumes {
            if let Some(attachment) = &volume.attachment {
                let name = format!("{ATTACHMENTS_PREFIX}{}", attachment.driver);
                requests.set(&name, requests.amount(&name) + 1);
            }
        }
        let constraints = self.constraints(namespace, spec);
        Class {
            namespace: Arc::clone(namespace),
            spec: Arc::clone(spec),
            request,
            claim_request: self.resources.vector(&requests),
            alternatives: self.volume_alternatives(spec),
            variants: self.variants(spec, &constraints),
            counted: Vec::new(),
            blocked_by: Vec::new(),
            inverse: constraints.inverse,
            failed_at: None,
        }
    }

    /// One set per way in which all volumes can be used. When no way is free of contradictions, the first is kept:
    /// it fails everywhere, and says so.
    fn volume_alternatives(&mut self, spec: &PodSpec) -> Vec<SetId> {
        let mut ways = vec![Requirements::default()];
        for volume in spec
            .volumes
            .iter()
            .filter(|volume| !volume.alternatives.is_empty())
        {
            let pairs = ways
                .iter()
                .flat_map(|way| volume.alternatives.iter().map(move |term| (way, term)));
            let together: Vec<Requirements> =
                pairs.filter_map(|(way, term)| way.together(term)).collect();
            if together.is_empty() {
                ways.truncate(1);
                ways[0].add_all(&volume.alternatives[0]);
            } else {
                ways = together;
            }
            ways.truncate(MAX_VOLUME_ALTERNATIVES);
        }
        ways.into_iter().map(|way| self.sets.intern(way)).collect()
    }

    /// The class as written, and then after each step of giving up (behaviour §2.6).
    fn variants(&mut self, spec: &PodSpec, constraints: &Constraints) -> Vec<Variant> {
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

    fn constraints(&mut self, namespace: &str, spec: &PodSpec) -> Constraints {
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
        if spread.node_taints_policy == NodeInclusionPolicy::Honor {
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

/// More ways than this to use a pod's volumes together do not occur; the bound keeps their product small.
const MAX_VOLUME_ALTERNATIVES: usize = 64;

/// The groups of a class by how binding they are.
#[derive(Debug, Default)]
struct Constraints {
    required: Vec<Owned>,
    /// Heaviest first.
    preferred_affinity: Vec<Owned>,
    /// Heaviest first.
    preferred_anti_affinity: Vec<Owned>,
    schedule_anyway: Vec<Owned>,
    inverse: Vec<GroupId>,
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

/// A selector with the pod's own values of some labels added or excluded.
fn with_label_keys(
    selector: Option<&LabelSelector>,
    labels: &Labels,
    matching: &[String],
    mismatching: &[String],
) -> Option<LabelSelector> {
    let mut selector = selector?.clone();
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
