//! `--scheduler-config`: what of kube-scheduler's configuration a plan must know, as Karpenter's flag takes it.

use std::collections::BTreeSet;
use std::str::FromStr;

use kerf_core::pod::{NodeInclusionPolicy, TopologySpread, WhenUnsatisfiable};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The default spread constraints, without selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SchedulerConfig(pub(crate) Vec<TopologySpread>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    pod_topology_spread: PodTopologySpread,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Vec<Constraint>,
}

/// Fields as Kubernetes has them; those that a default constraint may not have are named, so that the error can say so.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Constraint {
    max_skew: i64,
    topology_key: String,
    when_unsatisfiable: String,
    min_domains: Option<u32>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    label_selector: Option<IgnoredAny>,
    match_label_keys: Option<IgnoredAny>,
}

impl FromStr for SchedulerConfig {
    type Err = String;

    /// Reads YAML or JSON; nothing but blanks is no configuration. Karpenter: same fields, same refusals.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let document: Document =
            serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))?;
        let mut seen = BTreeSet::new();
        let mut constraints = Vec::new();
        for (idx, constraint) in document
            .pod_topology_spread
            .default_constraints
            .iter()
            .enumerate()
        {
            let at = format!("podTopologySpread.defaultConstraints[{idx}]");
            let read = read(constraint).map_err(|(field, why)| format!("{at}.{field}: {why}"))?;
            if !seen.insert((read.topology_key.clone(), read.when_unsatisfiable)) {
                return Err(format!(
                    "{at}: there is one of {} with {} already",
                    constraint.topology_key, constraint.when_unsatisfiable
                ));
            }
            constraints.push(read);
        }
        Ok(Self(constraints))
    }
}

/// The constraint, or a field and what is wrong with it.
fn read(constraint: &Constraint) -> Result<TopologySpread, (&'static str, String)> {
    let siblings = "the pod's Services and workload say which pods are counted; leave it out";
    if constraint.label_selector.is_some() {
        return Err(("labelSelector", siblings.to_owned()));
    }
    if constraint.match_label_keys.is_some() {
        return Err(("matchLabelKeys", siblings.to_owned()));
    }
    let max_skew = u32::try_from(constraint.max_skew).ok().filter(|it| *it > 0);
    let max_skew = max_skew.ok_or_else(|| {
        let why = format!("{} is not a positive number", constraint.max_skew);
        ("maxSkew", why)
    })?;
    if !is_label_key(&constraint.topology_key) {
        let why = format!("{:?} is not a label key", constraint.topology_key);
        return Err(("topologyKey", why));
    }
    let when_unsatisfiable = match constraint.when_unsatisfiable.as_str() {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => {
            let why = format!("{other:?} is neither DoNotSchedule nor ScheduleAnyway");
            return Err(("whenUnsatisfiable", why));
        }
    };
    let policy = |field, text: &Option<String>, default| match text.as_deref() {
        None => Ok(default),
        Some("Honor") => Ok(NodeInclusionPolicy::Honor),
        Some("Ignore") => Ok(NodeInclusionPolicy::Ignore),
        Some(other) => Err((field, format!("{other:?} is neither Honor nor Ignore"))),
    };
    Ok(TopologySpread {
        max_skew,
        topology_key: constraint.topology_key.clone(),
        when_unsatisfiable,
        selector: None,
        min_domains: constraint.min_domains,
        node_affinity_policy: policy(
            "nodeAffinityPolicy",
            &constraint.node_affinity_policy,
            NodeInclusionPolicy::Honor,
        )?,
        node_taints_policy: policy(
            "nodeTaintsPolicy",
            &constraint.node_taints_policy,
            NodeInclusionPolicy::Ignore,
        )?,
        match_label_keys: Vec::new(),
    })
}

/// A name of at most 63 characters, and perhaps a domain before it.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("example", key));
    let is_word = |text: &str, more: &[u8]| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        let ends = [text.as_bytes().first(), text.as_bytes().last()];
        text.bytes().all(inner)
            && ends
                .into_iter()
                .all(|it| it.is_some_and(u8::is_ascii_alphanumeric))
    };
    name.len() <= 63 && is_word(name, b"-_.") && prefix.len() <= 253 && is_word(prefix, b"-.")
}

/// What the parser says, without its drawing of the place.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_constraints_are_read_from_yaml_and_json() {
        let yaml = "podTopologySpread:\n  defaultConstraints:\n    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2}\n";
        let json = r#"{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}]}}"#;
        let read = |text: &str| text.parse::<SchedulerConfig>().unwrap().0.remove(0);

        let hard = read(yaml);
        assert_eq!((hard.max_skew, hard.min_domains), (1, Some(2)));
        assert_eq!(hard.node_affinity_policy, NodeInclusionPolicy::Honor);
        let soft = read(json);
        assert_eq!(soft.when_unsatisfiable, WhenUnsatisfiable::ScheduleAnyway);
        assert_eq!(soft.node_taints_policy, NodeInclusionPolicy::Honor);
        assert_eq!(" \n".parse(), Ok(SchedulerConfig::default()));
        assert_eq!("{}".parse(), Ok(SchedulerConfig::default()));
    }

    #[test]
    fn what_kube_scheduler_would_refuse_is_refused_with_its_field() {
        let one = |fields: &str| {
            format!("podTopologySpread: {{defaultConstraints: [{{{fields}, maxSkew: 1}}]}}")
        };
        let good = "topologyKey: zone, whenUnsatisfiable: DoNotSchedule";
        let twice = format!(
            "podTopologySpread: {{defaultConstraints: [{{{good}, maxSkew: 1}}, {{{good}, maxSkew: 2}}]}}"
        );
        let cases = [
            (
                one(good).replace("maxSkew: 1", "maxSkew: 0"),
                "[0].maxSkew: 0 is not a positive",
            ),
            (
                one(&good.replace("zone", "a b")),
                "topologyKey: \"a b\" is not a label key",
            ),
            (
                one(&good.replace("DoNotSchedule", "Never")),
                "whenUnsatisfiable: \"Never\"",
            ),
            (
                one(&format!("{good}, labelSelector: {{}}")),
                "labelSelector: the pod's Services",
            ),
            (
                one(&format!("{good}, matchLabelKeys: [a]")),
                "matchLabelKeys: the pod's Services",
            ),
            (
                one(&format!("{good}, nodeTaintsPolicy: No")),
                "nodeTaintsPolicy",
            ),
            (one(&format!("{good}, skew: 1")), "skew"),
            (
                twice,
                "[1]: there is one of zone with DoNotSchedule already",
            ),
            ("profiles: []".to_owned(), "profiles"),
            ("podTopologySpread: [".to_owned(), ""),
        ];
        for (text, reason) in cases {
            let error = text.parse::<SchedulerConfig>().unwrap_err();

            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
