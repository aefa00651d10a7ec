//! What adoption means for the objects of a cluster. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{annotation, condition, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::{NODEPOOL_HASH_VERSION, NodePool};
use kerf_cloud::provider::instance::parse_provider_id;
use kerf_controllers::adoption::{is_adopted, is_ours};
use kube::ResourceExt;

/// What every Karpenter calls its lease, and we do too.
const LEASE_NAME_PART: &str = "karpenter-leader-election";
/// How the name of a holder of ours begins.
const OWN_HOLDER: &str = "kerf-";
/// Kubernetes' default for leases that do not say.
const LEASE_SECS_DEFAULT: i32 = 15;

/// The cluster as it is.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) pools: Vec<NodePool>,
    pub(super) claims: Vec<NodeClaim>,
    pub(super) nodes: Vec<Node>,
    pub(super) leases: Vec<Lease>,
    /// Names of the ECSNodeClasses of our own group.
    pub(super) classes: BTreeSet<String>,
    pub(super) now: Timestamp,
}

/// What would happen.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// For people.
    pub(super) lines: Vec<String>,
    /// What must be put right first, each with the next step.
    pub(super) obstacles: Vec<String>,
    /// Claims that stay.
    pub(super) kept: usize,
}

/// Judges everything; the same cluster gives the same report.
pub(super) fn judge(seen: &Seen) -> Report {
    let mut report = Report::default();
    leases(seen, &mut report);
    for pool in &seen.pools {
        judge_pool(pool, seen, &mut report);
    }
    let nodes = nodes_by_instance(&seen.nodes);
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in &seen.claims {
        if judge_claim(claim, &nodes, &mut report) {
            let pool = claim.labels().get(label::NODEPOOL);
            *kept.entry(pool.map_or("", String::as_str)).or_default() += 1;
        }
    }
    for (pool, count) in kept {
        report.kept += count;
        let of = if pool.is_empty() {
            "without a NodePool".to_owned()
        } else {
            format!("of NodePool {pool}")
        };
        report.lines.push(format!(
            "{count} NodeClaims {of}: kept with their nodes and instances"
        ));
    }
    drifted(seen, &mut report);
    report
}

/// Two controllers would launch for the same pods.
fn leases(seen: &Seen, report: &mut Report) {
    for lease in &seen.leases {
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let length = spec.lease_duration_seconds.unwrap_or(LEASE_SECS_DEFAULT);
        let length = SignedDuration::from_secs(length.into());
        let is_held = spec
            .renew_time
            .is_some_and(|at| seen.now.duration_since(at.0) <= length);
        let is_others = !holder.is_empty() && !holder.starts_with(OWN_HOLDER);
        if lease.name_any().contains(LEASE_NAME_PART) && is_held && is_others {
            report.obstacles.push(format!(
                "{holder} holds the lease {}/{}: scale the other provider's controller to 0",
                lease.namespace().unwrap_or_default(),
                lease.name_any()
            ));
        }
    }
}

fn judge_pool(pool: &NodePool, seen: &Seen, report: &mut Report) {
    let (name, class) = (pool.name_any(), &pool.spec.template.spec.node_class_ref);
    let has_class = seen.classes.contains(&class.name);
    if !is_ours(class) && !is_adopted(class) {
        let line = format!(
            "NodePool {name}: left alone, its class is of {}",
            class.group
        );
        report.lines.push(line);
    } else if !has_class {
        report.obstacles.push(format!(
            "NodePool {name}: there is no ECSNodeClass.{} {}; hint: kubectl get {}.{} {} -o yaml > class.yaml; \
             kerf convert -f class.yaml | kubectl apply -f -",
            label::PROVIDER_DOMAIN,
            class.name,
            "ecsnodeclasses",
            class.group,
            class.name
        ));
    } else if is_adopted(class) {
        report.lines.push(format!(
            "NodePool {name}: stays as it is; its new nodes come from ECSNodeClass.{} {}",
            label::PROVIDER_DOMAIN,
            class.name
        ));
    } else {
        report
            .lines
            .push(format!("NodePool {name}: stays as it is"));
    }
}

fn nodes_by_instance(nodes: &[Node]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for node in nodes {
        let id = node.spec.as_ref().and_then(|it| it.provider_id.as_deref());
        if let Some((_, id)) = id.and_then(parse_provider_id) {
            *found.entry(id.to_owned()).or_default() += 1;
        }
    }
    found
}

/// Whether the claim is kept; what else there is to say goes into the report.
fn judge_claim(claim: &NodeClaim, nodes: &BTreeMap<String, usize>, report: &mut Report) -> bool {
    let (name, class) = (claim.name_any(), &claim.spec.node_class_ref);
    if !is_ours(class) && !is_adopted(class) {
        let line = format!(
            "NodeClaim {name}: left alone, its class is of {}",
            class.group
        );
        report.lines.push(line);
        return false;
    }
    if claim.metadata.deletion_timestamp.is_some() {
        let line = format!("NodeClaim {name}: is being deleted, kerf goes on with that");
        report.lines.push(line);
        return false;
    }
    if !claim.is_true(condition::LAUNCHED) {
        report.obstacles.push(format!(
            "NodeClaim {name} is not launched yet, and its instance may exist without a name: wait, or delete it, while \
             the other controller runs"
        ));
        return false;
    }
    let Some((_, id)) = claim.provider_id().and_then(parse_provider_id) else {
        report.obstacles.push(format!(
            "NodeClaim {name} has no providerID of the form <region>.<instance id>: delete it while the other \
             controller runs"
        ));
        return false;
    };
    match nodes.get(id).copied().unwrap_or_default() {
        0 => report.lines.push(format!(
            "NodeClaim {name}: has no node; it is given up after the registration time-out, or collected if {id} is gone"
        )),
        1 => {}
        many => report.obstacles.push(format!(
            "NodeClaim {name}: {many} nodes have the instance {id}; delete those that are not real"
        )),
    }
    true
}

/// Claims of our own group whose pool was edited under the other controller: they were about to be replaced there too.
fn drifted(seen: &Seen, report: &mut Report) {
    let hashes: BTreeMap<String, String> = seen
        .pools
        .iter()
        .filter_map(|pool| Some((pool.name_any(), pool.hash().ok()?)))
        .collect();
    let is_drifted = |claim: &&NodeClaim| {
        let annotations = claim.annotations();
        let version = annotations.get(annotation::NODEPOOL_HASH_VERSION);
        let pool = claim.labels().get(label::NODEPOOL);
        let today = pool.and_then(|pool| hashes.get(pool));
        let own = annotations.get(annotation::NODEPOOL_HASH);
        is_ours(&claim.spec.node_class_ref)
            && version.is_some_and(|version| version == NODEPOOL_HASH_VERSION)
            && matches!((own, today), (Some(own), Some(today)) if own != today)
    };
    for claim in seen.claims.iter().filter(is_drifted) {
        report.lines.push(format!(
            "NodeClaim {}: has drifted from its NodePool already; it is replaced within the pool's budgets, as it would \
             have been",
            claim.name_any()
        ));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use kerf_controllers::adoption::OTHER_GROUP;
    use serde_json::json;

    use super::*;

    fn pool(name: &str, group: &str) -> NodePool {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": {
                "requirements": [], "nodeClassRef": {"group": group, "kind": "ECSNodeClass", "name": "default"},
            }}},
        }))
        .unwrap()
    }

    fn claim(group: &str, status: &serde_json::Value) -> NodeClaim {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c-1", "labels": {label::NODEPOOL: "p"}},
            "spec": {"requirements": [], "nodeClassRef": {"group": group, "kind": "ECSNodeClass", "name": "default"}},
            "status": status,
        }))
        .unwrap()
    }

    fn launched() -> serde_json::Value {
        json!({
            "providerID": "cn-hangzhou.i-1",
            "conditions": [{"type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        })
    }

    fn seen(pools: Vec<NodePool>, claims: Vec<NodeClaim>) -> Seen {
        Seen {
            pools,
            claims,
            classes: BTreeSet::from(["default".to_owned()]),
            ..Seen::default()
        }
    }

    #[test]
    fn pools_and_claims_of_both_providers_stay_as_they_are() {
        let pools = vec![pool("p", OTHER_GROUP), pool("q", label::PROVIDER_DOMAIN)];
        let report = judge(&seen(pools, vec![claim(OTHER_GROUP, &launched())]));

        assert_eq!(report.obstacles, Vec::<String>::new());
        assert_eq!(report.kept, 1);
        let stay = report
            .lines
            .iter()
            .filter(|it| it.contains("stays as it is"));
        assert_eq!(stay.count(), 2);
    }

    #[test]
    fn a_pool_without_a_class_of_ours_is_in_the_way_and_so_is_a_claim_that_is_not_launched() {
        let mut world = seen(
            vec![pool("p", OTHER_GROUP)],
            vec![claim(OTHER_GROUP, &json!({}))],
        );
        world.classes.clear();

        let obstacles = judge(&world).obstacles;

        assert!(obstacles[0].contains("kerf convert"), "{obstacles:?}");
        assert!(obstacles[1].contains("not launched"), "{obstacles:?}");
    }

    #[test]
    fn a_controller_that_still_runs_is_in_the_way_until_its_lease_is_over() {
        let lease = |holder: &str| {
            let mut lease = Lease::default();
            lease.metadata.name = Some("karpenter-leader-election".to_owned());
            lease.spec = Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
                ..LeaseSpec::default()
            });
            lease
        };
        let obstacles = |holder: &str, secs: i64| {
            let world = Seen {
                leases: vec![lease(holder)],
                now: Timestamp::from_second(secs).unwrap(),
                ..Seen::default()
            };
            judge(&world).obstacles.len()
        };

        assert_eq!(obstacles("karpenter-abc_1", 10), 1);
        assert_eq!(obstacles("karpenter-abc_1", 16), 0);
        assert_eq!(obstacles("kerf-1-2", 10), 0);
    }

    #[test]
    fn other_clouds_are_left_alone_and_old_drift_is_told() {
        let mut drifted = claim(label::PROVIDER_DOMAIN, &launched());
        let annotations = drifted.annotations_mut();
        annotations.insert(annotation::NODEPOOL_HASH.to_owned(), "1".to_owned());
        annotations.insert(
            annotation::NODEPOOL_HASH_VERSION.to_owned(),
            NODEPOOL_HASH_VERSION.to_owned(),
        );
        let pools = vec![
            pool("p", label::PROVIDER_DOMAIN),
            pool("x", "karpenter.k8s.aws"),
        ];

        let report = judge(&seen(pools, vec![drifted]));

        let text = report.lines.join("\n");
        assert!(text.contains("NodePool x: left alone"), "{text}");
        assert!(
            text.contains("has drifted from its NodePool already"),
            "{text}"
        );
    }
}
