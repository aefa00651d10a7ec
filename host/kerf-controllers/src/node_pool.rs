//! NodePool: whether it is valid, whether its class is ready, and what its nodes have together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_api::condition::{Condition, ConditionStatus, Conditions};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::{annotation, condition, event, label, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::{NodePool, NodePoolStatus};
use kerf_core::instance_type::InstanceType;
use kerf_core::resources::{COMMON, NODES, Resources, quantity_of};
use kerf_core::strength::Strength;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::disruption::hash::POOL_HASH;
use crate::error::Error;
use crate::events::created_at;
use crate::lifecycle::health::{Registrations, Verdict};
use crate::reconciler::Action;
use crate::{clock, patch, strength};

/// What the pool's nodes have is counted again at least this often; the watches of its claims trigger it before.
const RECOUNT: Duration = Duration::from_secs(60);

/// One pass over one pool.
///
/// # Errors
/// When the pool cannot be written.
pub async fn reconcile(pool: Arc<NodePool>, context: Arc<Context>) -> Result<Action, Error> {
    if !context.manages(&pool.spec.template.spec.node_class_ref) {
        return Ok(Action::await_change());
    }
    let class = context.stores.node_classes.get(&ObjectRef::new(
        &pool.spec.template.spec.node_class_ref.name,
    ));
    let total = context.cluster.pool_total(&pool.name_any());
    let health = health(&pool, class.as_deref(), &context.registrations);
    let seen = context
        .instance_types_of(&pool.name_any())
        .map(|instance_types| seen(&pool, instance_types));
    let strength = seen.as_ref().map(|it| it.strength());
    let mut wanted = (*pool).clone();
    wanted.status = Some(status(
        &pool,
        class.as_deref(),
        &total,
        (&health, strength.as_ref()),
        clock::now(),
    ));
    match pool.hash() {
        Ok(hash) => POOL_HASH.put(&hash, wanted.annotations_mut()),
        // The condition names the duration that cannot be read; the last good hash stays.
        Err(error) => tracing::debug!(nodepool = %pool.name_any(), %error, "NodePool has no hash"),
    }
    announce(&pool, &wanted, &context).await;
    if let Some(seen) = &seen {
        warn_of_no_types(&pool, seen, &context).await;
    }
    migrate(&wanted, &context).await?;
    let was_ready = kerf_api::condition::is_true(pool.conditions(), condition::READY);
    patch::write(&Api::all(context.client.clone()), &*pool, &wanted).await?;
    if was_ready != kerf_api::condition::is_true(wanted.conditions(), condition::READY) {
        context.cluster.demand_changed();
    }
    Ok(Action::requeue(RECOUNT))
}

/// The status as it should be. Pure.
fn status(
    pool: &NodePool,
    class: Option<&EcsNodeClass>,
    (nodes, capacity): &(usize, Resources),
    (health, strength): (&Health, Option<&Strength>),
    now: Timestamp,
) -> NodePoolStatus {
    let generation = pool.metadata.generation.unwrap_or_default();
    let mut conditions = Conditions::open(
        NodePool::CONDITIONS,
        pool.conditions(),
        generation,
        created_at(pool),
        now,
    );
    let problems = kerf_state::node_pool(pool).problems;
    if problems.is_empty() {
        conditions.set_true(condition::VALIDATION_SUCCEEDED);
    } else {
        let message = problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        conditions.set_false(
            condition::VALIDATION_SUCCEEDED,
            reason::NODEPOOL_VALIDATION_FAILED,
            &message,
        );
    }
    set_class(&mut conditions, pool, class);
    set_health(&mut conditions, health);
    // Before the first look at the cloud nothing is known, and what was known before stays.
    if let Some(strength) = strength {
        strength::set(&mut conditions, strength);
    }
    let mut status = pool.status.clone().unwrap_or_default();
    status.resources = resources(*nodes, capacity);
    status.nodes = i64::try_from(*nodes).unwrap_or(i64::MAX);
    status.elastic_strength = strength.map(strength::shown).or(status.elastic_strength);
    status.node_class_observed_generation = class.and_then(|class| class.metadata.generation);
    status.conditions = conditions.finish();
    status
}

/// What is said about the registrations of a pool.
#[derive(Debug, PartialEq, Eq)]
enum Health {
    /// The pool or its class is another than before: nothing is known.
    Reset,
    Judged(Verdict),
}

/// Judges the pool's registrations; a change of the pool or its class starts afresh (Karpenter: same).
fn health(pool: &NodePool, class: Option<&EcsNodeClass>, registrations: &Registrations) -> Health {
    let uid = pool.uid().unwrap_or_default();
    let said = kerf_api::condition::find(pool.conditions(), condition::NODE_REGISTRATION_HEALTHY);
    let seen_class = pool
        .status
        .as_ref()
        .and_then(|status| status.node_class_observed_generation);
    let is_same_class = class.is_none_or(|class| class.metadata.generation == seen_class);
    let is_same_pool = said.is_some_and(|it| it.observed_generation == pool.metadata.generation);
    if !is_same_class || !is_same_pool {
        registrations.forget(&uid);
        return Health::Reset;
    }
    let said_before = said.and_then(|it| match it.status {
        ConditionStatus::True => Some(true),
        ConditionStatus::False => Some(false),
        ConditionStatus::Unknown | ConditionStatus::Other(_) => None,
    });
    Health::Judged(registrations.verdict(&uid, said_before))
}

fn set_health(conditions: &mut Conditions, health: &Health) {
    let type_ = condition::NODE_REGISTRATION_HEALTHY;
    match health {
        Health::Reset => conditions.set_unknown(type_, reason::AWAITING_RECONCILIATION, ""),
        Health::Judged(Verdict::Healthy) => conditions.set_true(type_),
        Health::Judged(Verdict::Unhealthy(Some(failure))) => {
            conditions.set_false(type_, &failure.reason, &failure.message);
        }
        Health::Judged(Verdict::Unhealthy(None) | Verdict::Open) => {}
    }
}

/// Gives claims of another version of the hash today's.
async fn migrate(pool: &NodePool, context: &Context) -> Result<(), Error> {
    let Some(hash) = pool.annotations().get(annotation::NODEPOOL_HASH) else {
        return Ok(());
    };
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let (key, version) = POOL_HASH.version();
    for claim in context.stores.nodeclaims.iter_without(key, version) {
        if claim.labels().get(label::NODEPOOL) != pool.metadata.name.as_ref() {
            continue;
        }
        if let Some(wanted) = POOL_HASH.migrated(hash, &claim) {
            patch::write(&api, &*claim, &wanted).await?;
        }
    }
    Ok(())
}

fn set_class(conditions: &mut Conditions, pool: &NodePool, class: Option<&EcsNodeClass>) {
    let name = &pool.spec.template.spec.node_class_ref.name;
    let Some(class) = class else {
        let message = format!(
            "ECSNodeClass {name} does not exist; create it or correct spec.template.spec.nodeClassRef.name"
        );
        conditions.set_false(
            condition::NODE_CLASS_READY,
            reason::NODE_CLASS_NOT_FOUND,
            &message,
        );
        return;
    };
    if class.metadata.deletion_timestamp.is_some() {
        let message = format!("ECSNodeClass {name} is being deleted");
        conditions.set_false(
            condition::NODE_CLASS_READY,
            reason::NODE_CLASS_TERMINATING,
            &message,
        );
        return;
    }
    match kerf_api::condition::find(class.conditions(), condition::READY) {
        Some(ready) if ready.is_true() => conditions.set_true(condition::NODE_CLASS_READY),
        Some(Condition {
            status: ConditionStatus::False,
            ..
        }) => {
            let message = format!("ECSNodeClass {name} is not ready: {}", causes(class));
            conditions.set_false(
                condition::NODE_CLASS_READY,
                reason::NODE_CLASS_NOT_READY,
                &message,
            );
        }
        Some(_) | None => {
            let message = format!("ECSNodeClass {name} was not looked at yet");
            conditions.set_unknown(
                condition::NODE_CLASS_READY,
                reason::NODE_CLASS_NOT_READY,
                &message,
            );
        }
    }
}

/// The messages of the conditions that make a class not ready.
fn causes(class: &EcsNodeClass) -> String {
    let is_cause = |it: &&Condition| {
        EcsNodeClass::CONDITIONS
            .dependents
            .contains(&it.type_.as_str())
            && it.status == ConditionStatus::False
    };
    let causes: Vec<&str> = class
        .conditions()
        .iter()
        .filter(is_cause)
        .map(|it| it.message.as_str())
        .collect();
    causes.join("; ")
}

fn resources(nodes: usize, capacity: &Resources) -> BTreeMap<String, Quantity> {
    let mut resources: BTreeMap<String, Quantity> = COMMON
        .iter()
        .map(|name| ((*name).to_owned(), quantity(name, capacity.amount(name))))
        .collect();
    resources.extend(
        capacity
            .iter()
            .map(|(name, amount)| (name.to_owned(), quantity(name, amount))),
    );
    resources.insert(NODES.to_owned(), Quantity(nodes.to_string()));
    resources
}

fn quantity(name: &str, amount: i64) -> Quantity {
    Quantity(quantity_of(name, amount).to_string())
}

/// One event when a condition turns bad or says something else, and one for each annotation that is left out.
async fn announce(before: &NodePool, after: &NodePool, context: &Context) {
    for problem in kerf_state::node_pool(after).ignored {
        let note = format!("ignored, as if it were not there: {problem}");
        context
            .events
            .warning(before, event::INVALID_OBJECT, &note)
            .await;
    }
    for condition in crate::node_class::status::worsened(before.conditions(), after.conditions()) {
        let note = format!("{}: {}", condition.type_, condition.message);
        context
            .events
            .warning(before, event::INVALID_OBJECT, &note)
            .await;
    }
}

/// The pool as decisions see it.
pub(crate) fn seen(
    pool: &NodePool,
    instance_types: Arc<Vec<Arc<InstanceType>>>,
) -> kerf_core::node_pool::NodePool {
    kerf_core::node_pool::NodePool {
        instance_types,
        ..kerf_state::node_pool(pool).pool
    }
}

/// Its requirements are good, and no type that its class can have meets them all.
async fn warn_of_no_types(
    pool: &NodePool,
    seen: &kerf_core::node_pool::NodePool,
    context: &Context,
) {
    if seen.has_no_compatible_types() {
        let note = format!(
            "none of the {} instance types of ECSNodeClass {} meets the requirements; loosen spec.template.spec.requirements or the labels",
            seen.instance_types.len(),
            seen.template.node_class.name
        );
        let events = &context.events;
        events
            .warning(pool, event::NO_COMPATIBLE_INSTANCE_TYPES, &note)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> NodePool {
        let class = serde_json::json!({"group": "g", "kind": "k", "name": "n"});
        let spec =
            serde_json::json!({"template": {"spec": {"requirements": [], "nodeClassRef": class}}});
        NodePool::new(name, serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_pool_shows_the_common_resources_also_where_it_has_none() {
        let mut capacity = Resources::default();
        capacity.set("cpu", 3_500);

        let shown = resources(2, &capacity);

        let shown = ["cpu", "memory", "nodes"].map(|name| shown[name].0.as_str());
        assert_eq!(shown, ["3500m", "0", "2"]);
    }

    #[test]
    fn an_edited_pool_forgets_how_its_claims_registered() {
        let mut pool = pool("general");
        pool.metadata.uid = Some("pool".to_owned());
        pool.metadata.generation = Some(1);
        let registrations = Registrations::default();
        registrations.restore([("pool".to_owned(), vec![false, false])].into());
        let first = health(&pool, None, &registrations);
        assert_eq!(first, Health::Reset);
        pool.status = Some(status(
            &pool,
            None,
            &(0, Resources::default()),
            (&first, None),
            Timestamp::UNIX_EPOCH,
        ));
        registrations.restore([("pool".to_owned(), vec![false, false])].into());

        let judged = health(&pool, None, &registrations);
        pool.metadata.generation = Some(2);

        assert_eq!(judged, Health::Judged(Verdict::Unhealthy(None)));
        assert_eq!(health(&pool, None, &registrations), Health::Reset);
        assert!(registrations.results().is_empty());
    }
}
