//! NodeOverlay: what the overlays together make of the catalog, and whether each of them applies.
//!
//! The catalog is only ever handed out with all overlays of that moment in it, so that no decision sees a pool whose
//! overlays were not looked at yet. Karpenter: differs, because there a pool is passed over until a controller of its own
//! has evaluated it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kerf_api::condition::Conditions;
use kerf_api::names::{condition, event, reason};
use kerf_api::nodeoverlay::{NodeOverlay, NodeOverlayStatus};
use kerf_api::nodepool::NodePool;
use kerf_core::ids::NodePoolName;
use kerf_core::instance_type::InstanceType;
use kerf_core::overlay::{Evaluation, evaluate};
use kerf_state::{Catalog, PoolOffers, node_overlay, node_pool};
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::error::Error;
use crate::events::created_at;
use crate::reconciler::Action;
use crate::{clock, patch};

/// Types that the cloud begins or ends to sell can make or end a conflict, and nothing tells us so.
const RECHECK: Duration = Duration::from_secs(60);

/// The last evaluation, which holds until an overlay, a pool or a catalog changes.
#[derive(Debug, Default)]
pub struct Overlays {
    last: Mutex<Option<Arc<Evaluated>>>,
}

/// A catalog with the overlays in it.
#[derive(Debug, Default)]
pub struct Evaluated {
    key: Key,
    /// What each pool can launch.
    pub catalog: Catalog,
    /// Why overlays do not apply, by name: reason and message.
    pub refused: BTreeMap<String, (&'static str, String)>,
}

/// What an evaluation was made from: uid and generation of each object, and each pool's list of types.
#[derive(Debug, Default, PartialEq)]
struct Key {
    overlays: Vec<(String, i64)>,
    pools: Vec<(String, i64, ListIdentity)>,
}

/// One list in memory. It is kept, so that no other list can come to be at its address.
#[derive(Debug)]
struct ListIdentity(Arc<Vec<Arc<InstanceType>>>);

impl PartialEq for ListIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Overlays {
    /// The catalog with all overlays applied.
    #[must_use]
    pub fn apply(
        &self,
        overlays: &[Arc<NodeOverlay>],
        pools: &[Arc<NodePool>],
        base: Catalog,
    ) -> Arc<Evaluated> {
        let mut overlays: Vec<&NodeOverlay> = overlays.iter().map(|it| &**it).collect();
        overlays.retain(|overlay| overlay.metadata.deletion_timestamp.is_none());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(&overlays, pools, &base);
        if let Some(known) = last.as_ref().filter(|known| known.key == key) {
            return Arc::clone(&with_addresses(known, &base));
        }
        let evaluated = Arc::new(evaluated(key, &overlays, pools, base));
        *last = Some(Arc::clone(&evaluated));
        evaluated
    }
}

/// The known evaluation with the free addresses of now; they change often and no overlay speaks of them.
fn with_addresses(known: &Arc<Evaluated>, base: &Catalog) -> Arc<Evaluated> {
    let is_same = |(name, offers): (&NodePoolName, &PoolOffers)| {
        base.get(name).is_some_and(|it| {
            it.free_ips == offers.free_ips && it.is_zone_balanced == offers.is_zone_balanced
        })
    };
    if known.catalog.iter().all(is_same) {
        return Arc::clone(known);
    }
    let mut catalog = known.catalog.clone();
    for (name, offers) in &mut catalog {
        if let Some(now) = base.get(name) {
            offers.free_ips.clone_from(&now.free_ips);
            offers.is_zone_balanced = now.is_zone_balanced;
        }
    }
    Arc::new(Evaluated {
        key: Key::default(),
        catalog,
        refused: known.refused.clone(),
    })
}

fn key(overlays: &[&NodeOverlay], pools: &[Arc<NodePool>], base: &Catalog) -> Key {
    let generation = |it: Option<i64>| it.unwrap_or_default();
    let mut of_overlays: Vec<(String, i64)> = overlays
        .iter()
        .map(|it| {
            (
                it.uid().unwrap_or_else(|| it.name_any()),
                generation(it.metadata.generation),
            )
        })
        .collect();
    of_overlays.sort();
    let mut of_pools: Vec<(String, i64, ListIdentity)> = pools
        .iter()
        .filter_map(|it| {
            let offers = base.get(it.name_any().as_str())?;
            let list = ListIdentity(Arc::clone(&offers.instance_types));
            Some((it.name_any(), generation(it.metadata.generation), list))
        })
        .collect();
    of_pools.sort_by(|a, b| a.0.cmp(&b.0));
    Key {
        overlays: of_overlays,
        pools: of_pools,
    }
}

fn evaluated(
    key: Key,
    overlays: &[&NodeOverlay],
    pools: &[Arc<NodePool>],
    mut catalog: Catalog,
) -> Evaluated {
    let mut refused = BTreeMap::new();
    let mut readable = Vec::new();
    for overlay in overlays {
        match node_overlay(overlay) {
            Ok(overlay) => readable.push(overlay),
            Err(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let why = (reason::RUNTIME_VALIDATION, lines.join("; "));
                refused.insert(overlay.name_any(), why);
            }
        }
    }
    let pools: Vec<kerf_core::node_pool::NodePool> = pools
        .iter()
        .filter_map(|pool| {
            let offers = catalog.get(pool.name_any().as_str())?;
            let instance_types = Arc::clone(&offers.instance_types);
            Some(kerf_core::node_pool::NodePool {
                instance_types,
                ..node_pool(pool).pool
            })
        })
        .collect();
    let Evaluation {
        pools: changed,
        conflicts,
    } = evaluate(&readable, &pools);
    for (name, conflict) in conflicts {
        refused.insert(name, (reason::CONFLICT, conflict.to_string()));
    }
    for (name, instance_types) in changed {
        if let Some(offers) = catalog.get_mut(&name) {
            offers.instance_types = instance_types;
        }
    }
    Evaluated {
        key,
        catalog,
        refused,
    }
}

/// One pass over one overlay: what the evaluation says about it goes into its status.
///
/// # Errors
/// When the status cannot be written.
pub async fn reconcile(overlay: Arc<NodeOverlay>, context: Arc<Context>) -> Result<Action, Error> {
    let evaluated = context.evaluated();
    let why = evaluated.refused.get(&overlay.name_any());
    let mut wanted = (*overlay).clone();
    wanted.status = Some(status(&overlay, why, clock::now()));
    let before = overlay.conditions();
    for condition in crate::node_class::status::worsened(before, wanted.conditions()) {
        let note = format!("{}: {}", condition.reason, condition.message);
        context
            .events
            .warning(&*overlay, event::INVALID_OBJECT, &note)
            .await;
    }
    patch::write(&Api::all(context.client.clone()), &*overlay, &wanted).await?;
    Ok(Action::requeue(RECHECK))
}

fn status(
    overlay: &NodeOverlay,
    why: Option<&(&'static str, String)>,
    now: jiff::Timestamp,
) -> NodeOverlayStatus {
    let mut conditions = Conditions::open(
        NodeOverlay::CONDITIONS,
        overlay.conditions(),
        overlay.metadata.generation.unwrap_or_default(),
        created_at(overlay),
        now,
    );
    match why {
        None => conditions.set_true(condition::VALIDATION_SUCCEEDED),
        Some((reason, message)) => {
            conditions.set_false(condition::VALIDATION_SUCCEEDED, reason, message);
        }
    }
    NodeOverlayStatus {
        conditions: conditions.finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_core::instance_type::{CapacityType, Offering};
    use kerf_core::price::Price;
    use kerf_core::resources::Resources;
    use serde_json::json;

    fn pool(name: &str) -> Arc<NodePool> {
        Arc::new(NodePool::new(name, serde_json::from_value(json!({
            "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}
        })).unwrap()))
    }

    fn overlay(name: &str, generation: i64, price: &str) -> Arc<NodeOverlay> {
        let spec = json!({"requirements": [], "price": price, "weight": 1});
        let mut overlay = NodeOverlay::new(name, serde_json::from_value(spec).unwrap());
        overlay.metadata.generation = Some(generation);
        Arc::new(overlay)
    }

    fn base() -> Catalog {
        let offering = Offering::new("h", CapacityType::OnDemand, Price::from_per_hour(1.0));
        let (capacity, none) = (Resources::of(1000, 1 << 30), Resources::default());
        let it = InstanceType::new("ecs.a", [], capacity, none, vec![offering]);
        let offers = PoolOffers {
            instance_types: Arc::new(vec![Arc::new(it)]),
            ..PoolOffers::default()
        };
        [("general".into(), offers)].into()
    }

    fn price(evaluated: &Evaluated) -> Option<f64> {
        let types = &evaluated.catalog["general"].instance_types;
        types[0].offerings[0].ordering_price().per_hour()
    }

    #[test]
    fn an_evaluation_holds_until_something_changes() {
        let (overlays, pools, base) = (Overlays::default(), [pool("general")], base());
        let first = overlays.apply(&[overlay("a", 1, "0.5")], &pools, base.clone());

        let same = overlays.apply(&[overlay("a", 1, "0.5")], &pools, base.clone());
        let edited = overlays.apply(&[overlay("a", 2, "0.7")], &pools, base.clone());
        let gone = overlays.apply(&[], &pools, base);

        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!(
            [&first, &edited, &gone].map(|it| price(it)),
            [Some(0.5), Some(0.7), Some(1.0)]
        );
    }

    #[test]
    fn free_addresses_are_those_of_now() {
        let (overlays, pools, mut base) = (Overlays::default(), [pool("general")], base());
        let _ = overlays.apply(&[overlay("a", 1, "0.5")], &pools, base.clone());

        base.get_mut("general")
            .unwrap()
            .free_ips
            .insert("h".into(), 7);
        let now = overlays.apply(&[overlay("a", 1, "0.5")], &pools, base);

        assert_eq!(now.catalog["general"].free_ips["h"], 7);
        assert_eq!(price(&now), Some(0.5));
    }

    #[test]
    fn an_overlay_that_does_not_apply_says_why_in_its_condition() {
        let (overlays, pools) = (Overlays::default(), [pool("general")]);
        let all = [
            overlay("a", 1, "0.5"),
            overlay("b", 1, "0.7"),
            overlay("c", 1, "much"),
        ];
        let evaluated = overlays.apply(&all, &pools, base());

        let conditions = |it: &NodeOverlay| {
            let why = evaluated.refused.get(&it.name_any());
            let conditions = status(it, why, jiff::Timestamp::UNIX_EPOCH).conditions;
            conditions
                .iter()
                .map(|it| format!("{}={} {}", it.type_, it.status.as_str(), it.reason))
                .collect::<Vec<_>>()
        };

        assert_eq!(price(&evaluated), Some(0.7));
        assert_eq!(
            conditions(&all[0]),
            [
                "ValidationSucceeded=False Conflict",
                "Ready=False UnhealthyDependents"
            ]
        );
        assert_eq!(
            conditions(&all[1]),
            [
                "ValidationSucceeded=True ValidationSucceeded",
                "Ready=True Ready"
            ]
        );
        assert_eq!(
            conditions(&all[2]),
            [
                "ValidationSucceeded=False RuntimeValidation",
                "Ready=False UnhealthyDependents"
            ]
        );
    }
}
