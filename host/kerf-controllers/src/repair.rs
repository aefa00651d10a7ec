//! Node repair: a Node that has been broken for longer than a policy tolerates is replaced at once.
//!
//! Budgets and do-not-disrupt do not hold a broken node back; too many broken nodes do, since then it is not the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{annotation, event, finalizer, label};
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};
use tokio::time::interval;

use crate::clock;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{Error, chain};
use crate::settings::RepairPolicy;
use crate::termination::claim::{Disruption, disrupt};

/// A broken Node and what to do about it.
#[derive(Debug)]
struct Finding {
    node: Arc<Node>,
    condition: String,
    note: String,
    /// Too many others of its pool are broken too.
    is_blocked: bool,
}

/// When the patience with a node ends, the condition that is wrong, and what is wrong with it.
type Due = (Timestamp, String, String);

/// The nodes of one pool.
#[derive(Default)]
struct Ward {
    nodes: usize,
    sick: Vec<(Arc<Node>, Due)>,
}

/// Looks for broken nodes until the process ends.
pub async fn run(context: Arc<Context>) {
    if context.settings.repair_policies.is_empty() {
        return std::future::pending().await;
    }
    let mut ticks = interval(context.settings.repair_poll);
    loop {
        ticks.tick().await;
        let settings = &context.settings;
        let found = broken(
            context.stores.nodes.iter(),
            &settings.repair_policies,
            settings.repair_threshold_percent,
            clock::now(),
        );
        for finding in found {
            if let Err(error) = act(&finding, &context).await {
                tracing::warn!(node = %finding.node.name_any(), error = %chain(&error), "cannot repair the node; tried again");
            }
        }
    }
}

/// The broken nodes whose time is up, by name. Pure.
fn broken(
    nodes: impl Iterator<Item = Arc<Node>>,
    policies: &[RepairPolicy],
    threshold_percent: u32,
    now: Timestamp,
) -> Vec<Finding> {
    // Nodes of no pool are judged together.
    let mut pools: BTreeMap<Option<String>, Ward> = BTreeMap::new();
    for node in nodes.filter(|node| is_ours(node)) {
        let ward = pools
            .entry(node.labels().get(label::NODEPOOL).cloned())
            .or_default();
        ward.nodes += 1;
        if let Some(due) = due(&node, policies) {
            ward.sick.push((node, due));
        }
    }
    let mut found = Vec::new();
    for ward in pools.into_values() {
        let allowed = (ward.nodes * threshold_percent as usize).div_ceil(100);
        let is_blocked = ward.sick.len() > allowed;
        let ripe = ward.sick.into_iter().filter_map(|(node, due)| {
            let (at, condition, note) = due;
            (at <= now).then_some(Finding {
                node,
                condition,
                note,
                is_blocked,
            })
        });
        found.extend(ripe);
    }
    found.sort_by_key(|finding| finding.node.name_any());
    found
}

fn is_ours(node: &Node) -> bool {
    node.finalizers()
        .iter()
        .any(|found| found == finalizer::TERMINATION)
}

/// When the first policy that matches loses its patience, and why.
fn due(node: &Node, policies: &[RepairPolicy]) -> Option<Due> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let matches = conditions.iter().flat_map(|condition| {
        policies
            .iter()
            .filter(|it| it.condition == condition.type_ && it.status == condition.status)
            .filter_map(|policy| {
                let since = condition.last_transition_time.as_ref()?.0;
                let patience = SignedDuration::try_from(policy.toleration).ok()?;
                let note = format!(
                    "condition {} is {} since {since}",
                    condition.type_, condition.status
                );
                Some((
                    since.checked_add(patience).ok()?,
                    condition.type_.clone(),
                    note,
                ))
            })
    });
    matches.min()
}

async fn act(finding: &Finding, context: &Context) -> Result<(), Error> {
    let Finding {
        node,
        condition,
        note,
        is_blocked,
    } = finding;
    if *is_blocked {
        let note = format!(
            "not repaired ({note}): more than {} % of the nodes beside it are broken too",
            context.settings.repair_threshold_percent
        );
        context
            .events
            .warning(&**node, event::NODE_REPAIR_BLOCKED, &note)
            .await;
        return Ok(());
    }
    let Some(claim) = context.claim_of(node) else {
        return Ok(());
    };
    let now = clock::now();
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let mut draft = Draft::open(&claim, now);
    if hurry(&mut draft.claim, now) {
        draft.write(&api).await?;
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let disruption = Disruption {
        reason: "unhealthy",
        note,
    };
    disrupt(&claim, &api, context, &disruption).await?;
    context.metrics.termination.unhealthy(&claim, condition);
    Ok(())
}

/// Ends the claim's time to drain now, unless it is over already; true if that changed anything. Pure.
fn hurry(claim: &mut NodeClaim, now: Timestamp) -> bool {
    let annotations = claim.annotations_mut();
    let set: Option<Timestamp> = annotations
        .get(annotation::TERMINATION_TIMESTAMP)
        .and_then(|text| text.parse().ok());
    if set.is_some_and(|at| at <= now) {
        return false;
    }
    annotations.insert(
        annotation::TERMINATION_TIMESTAMP.to_owned(),
        kerf_api::time::whole_seconds(now).to_string(),
    );
    true
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn node(name: &str, ready: &str) -> Arc<Node> {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node.metadata.finalizers = Some(vec![finalizer::TERMINATION.to_owned()]);
        node.labels_mut()
            .insert(label::NODEPOOL.to_owned(), "general".to_owned());
        node.status = Some(NodeStatus {
            conditions: Some(vec![NodeCondition {
                type_: "Ready".to_owned(),
                status: ready.to_owned(),
                last_transition_time: Some(Time(Timestamp::UNIX_EPOCH)),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        });
        Arc::new(node)
    }

    fn look(nodes: &[Arc<Node>], at_second: i64) -> Vec<(String, bool)> {
        let policies = [
            "Ready=Unknown:30m".parse().unwrap(),
            "Ready=False:10m".parse().unwrap(),
        ];
        let now = Timestamp::from_second(at_second).unwrap();
        broken(nodes.iter().cloned(), &policies, 20, now)
            .into_iter()
            .map(|it| (it.node.name_any(), it.is_blocked))
            .collect()
    }

    #[test]
    fn a_node_is_repaired_once_the_policy_of_its_condition_has_run_out() {
        let nodes = [node("a", "True"), node("b", "Unknown"), node("c", "True")];

        assert!(look(&nodes, 1799).is_empty());
        assert_eq!(look(&nodes, 1800), [("b".to_owned(), false)]);
        assert_eq!(look(&[node("c", "False")], 600), [("c".to_owned(), false)]);
    }

    #[test]
    fn nothing_is_repaired_while_more_than_a_fifth_of_the_pool_is_broken() {
        let mut nodes: Vec<Arc<Node>> = (0..8)
            .map(|idx| node(&format!("ok-{idx}"), "True"))
            .collect();
        nodes.extend([node("x", "Unknown"), node("y", "Unknown")]);
        assert_eq!(
            look(&nodes, 1800)
                .iter()
                .filter(|(_, blocked)| *blocked)
                .count(),
            0
        );

        nodes.push(node("z", "Unknown"));
        nodes.push(node("z2", "Unknown"));
        assert!(look(&nodes, 1800).iter().all(|(_, blocked)| *blocked));
    }

    #[test]
    fn a_repair_ends_the_time_to_drain_but_never_makes_it_longer() {
        let now = Timestamp::from_second(1000).unwrap();
        let mut claim = NodeClaim::new("general-1", Default::default());

        assert!(hurry(&mut claim, now));
        assert_eq!(
            claim.annotations()[annotation::TERMINATION_TIMESTAMP],
            "1970-01-01T00:16:40Z"
        );
        assert!(!hurry(&mut claim, now));
    }
}
