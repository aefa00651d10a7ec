//! The conditions Drifted and Consolidatable of every claim: read, decide, write what differs.

mod looked;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::condition::find;
use kerf_api::names::{condition, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::node_pool::NodePool;
use kube::{Api, ResourceExt};
use tokio::time::sleep;

use self::looked::Looked;
use crate::clock;
use crate::compute::compute;
use crate::context::Context;
use crate::disruption::drift::{self, Drift, Verdict, Wanted};
use crate::disruption::networks::Network;
use crate::disruption::{origin, quiet};
use crate::draft::Draft;
use crate::error::{Error, chain};
use crate::node_class::ClassState;

/// Two passes are at least this far apart: a burst of pods is one pass.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A pass at least this often.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Writes that are under way at the same time.
const CONCURRENCY: usize = 8;

/// Keeps the conditions until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut changes = context.cluster.changes();
    let (mut looked, mut surroundings) = (Looked::default(), None);
    loop {
        let due = pass(&context, &mut looked, &mut surroundings, clock::now()).await;
        sleep(PAUSE_MIN).await;
        tokio::select! {
            _ = changes.changed() => {}
            () = sleep(due.map_or(PAUSE_MAX, |due| due.min(PAUSE_MAX))) => {}
        }
    }
}

/// One look at the claims that may have changed. Returns when waiting alone will change something.
async fn pass(
    context: &Context,
    looked: &mut Looked,
    before: &mut Option<Surroundings>,
    now: Timestamp,
) -> Option<Duration> {
    let surroundings = Surroundings::read(context);
    let are_same = before.as_ref().is_some_and(|it| surroundings.is_same(it));
    looked.begin(are_same, now);
    let (changes, is_any_behind) = compute(|| look(context, looked, &surroundings, now));
    *before = Some(surroundings);
    let writes = changes.into_iter().filter_map(|(name, version, standing)| {
        let claim = context.stores.nodeclaims.get(&name)?;
        // One that has changed since then rings for the next pass.
        let is_as_seen = claim.resource_version() == version;
        is_as_seen.then(|| write_or_say_why(claim, standing, context, now))
    });
    stream::iter(writes)
        .buffer_unordered(CONCURRENCY)
        .collect::<Vec<()>>()
        .await;
    let next = looked.due().into_iter().chain(is_any_behind.then_some(now));
    let wait = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
    next.min().map(wait)
}

/// A claim that is to be written, by its name, and as of which version. Not the claim itself: after a burst that may be all
/// of them.
type Change = (String, Option<String>, Standing);

/// What is to be written, and whether there is a claim of which only the past is known.
fn look(
    context: &Context,
    looked: &mut Looked,
    surroundings: &Surroundings,
    now: Timestamp,
) -> (Vec<Change>, bool) {
    let claims = &context.stores.nodeclaims;
    let pod_event = |node: &str| context.cluster.pod_event(node);
    let is_open = |name: &str, version| !looked.is_current(name, version, pod_event, now);
    let open = claims.iter_of(&is_open);
    let (mut changes, mut is_any_behind) = (Vec::new(), false);
    for claim in open {
        if claims.is_behind(&claim) {
            is_any_behind = true;
            continue;
        }
        let node = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
        let seen = node.and_then(pod_event);
        let is_ours = context.manages(&claim.spec.node_class_ref);
        let stays = is_ours && claim.metadata.deletion_timestamp.is_none();
        let standing = surroundings.look(&claim, seen, context, now);
        let Some(standing) = standing.filter(|_| stays) else {
            looked.note(&claim, seen, None, now);
            continue;
        };
        let due = standing.quiet_at.filter(|at| *at > now);
        match standing.changed(&claim, now) {
            Some(wanted) => changes.push((claim.name_any(), claim.resource_version(), wanted)),
            None => looked.note(&claim, seen, due, now),
        }
    }
    (changes, is_any_behind)
}

/// What all claims are compared with.
struct Surroundings {
    pools: BTreeMap<String, Pool>,
    classes: HashMap<String, Arc<ClassState>>,
    networks: Arc<HashMap<String, Network>>,
    /// By class and pool.
    policies: BTreeMap<(String, String), Option<String>>,
}

/// As it is written, as it is meant, and whether nothing of it was left out.
type Pool = (Arc<kerf_api::nodepool::NodePool>, NodePool, bool);

/// What a claim's conditions should say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    verdict: Verdict,
    quiet_at: Option<Timestamp>,
    /// When a pod last came to the node or left it, as far as this process saw it.
    pod_event: Option<Timestamp>,
}

impl Surroundings {
    /// Whether a claim that was compared with these need not be compared with the others.
    fn is_same(&self, other: &Self) -> bool {
        let are_same = |(a, b): ((&String, &Pool), (&String, &Pool))| {
            a.0 == b.0 && is_same_pool(&a.1.0.metadata, &b.1.0.metadata)
        };
        // Each plan reads the classes anew, mostly to find what was there before.
        let is_same_class = |(name, class): (&String, &Arc<ClassState>)| {
            let theirs = other.classes.get(name);
            theirs.is_some_and(|theirs| theirs.offers_the_same(class))
        };
        self.pools.len() == other.pools.len()
            && self.pools.iter().zip(&other.pools).all(are_same)
            && self.classes.len() == other.classes.len()
            && self.classes.iter().all(is_same_class)
            && self.shows_networks_of(other)
            && self.policies == other.policies
    }

    /// Whether no instance of which something was known before is in another network. One that is new is looked at with the
    /// next of its claim.
    fn shows_networks_of(&self, before: &Self) -> bool {
        let is_other = |(id, network): (&String, &Network)| {
            let known = before.networks.get(id);
            known.is_some_and(|known| known != network)
        };
        Arc::ptr_eq(&self.networks, &before.networks)
            || (!before.networks.is_empty() && !self.networks.iter().any(is_other))
    }

    fn read(context: &Context) -> Self {
        let mut pools = BTreeMap::new();
        let mut policies = BTreeMap::new();
        for pool in context.stores.nodepools.state() {
            let name = pool.name_any();
            let class = pool.spec.template.spec.node_class_ref.name.clone();
            let marks = origin::policies(&class, &name, context);
            policies.insert((class, name.clone()), marks);
            let converted = kerf_state::node_pool(&pool);
            let is_valid = converted.problems.is_empty();
            pools.insert(name, (pool, converted.pool, is_valid));
        }
        Self {
            pools,
            classes: context.classes.all_usable().into_iter().collect(),
            networks: context.networks.all(),
            policies,
        }
    }

    /// None when the claim has no pool: it goes with its pool, or is a person's own.
    fn look(
        &self,
        claim: &NodeClaim,
        seen: Option<Timestamp>,
        context: &Context,
        now: Timestamp,
    ) -> Option<Standing> {
        let (object, pool, is_valid) = self.pools.get(claim.labels().get(label::NODEPOOL)?)?;
        let class = &claim.spec.node_class_ref.name;
        let policies = self.policies.get(&(class.clone(), object.name_any()));
        let wanted = Wanted {
            pool: object,
            requirements: is_valid.then_some(&pool.template.requirements),
            class: self.classes.get(class).map(|it| &**it),
            policies: policies.and_then(Option::as_deref),
            network: claim.provider_id().and_then(|id| self.networks.get(id)),
            type_delay: SignedDuration::try_from(context.settings.instance_type_drift_delay)
                .unwrap_or(SignedDuration::MAX),
        };
        Some(Standing {
            verdict: drift::judge(claim, &wanted, now),
            quiet_at: quiet::quiet_at(claim, pool, seen),
            pod_event: seen,
        })
    }
}

impl Standing {
    /// Itself when the claim's conditions say something else.
    fn changed(self, claim: &NodeClaim, now: Timestamp) -> Option<Self> {
        let said = find(claim.conditions(), condition::DRIFTED).filter(|it| it.is_true());
        let is_same_drift = match (self.drift(said.map(|it| it.reason.as_str())), said) {
            (Kept::Keep, _) | (Kept::Clear, None) => true,
            (Kept::Set(drift), Some(said)) => {
                said.reason == drift.reason && said.message == drift.message
            }
            (Kept::Set(_), None) | (Kept::Clear, Some(_)) => false,
        };
        let is_same_quiet = claim.is_true(condition::CONSOLIDATABLE) == self.is_quiet(now);
        (!is_same_drift || !is_same_quiet).then_some(self)
    }

    fn is_quiet(&self, now: Timestamp) -> bool {
        self.quiet_at.is_some_and(|at| at <= now)
    }

    fn drift(&self, said: Option<&str>) -> Kept<'_> {
        match &self.verdict {
            Verdict::Drifted(drift) => Kept::Set(drift),
            Verdict::Unknown if said.is_some_and(drift::outlives_unknown) => Kept::Keep,
            Verdict::Current | Verdict::Unknown => Kept::Clear,
        }
    }

    fn put(&self, draft: &mut Draft) {
        let said = draft.conditions.find(condition::DRIFTED);
        let said = said.map(|it| it.reason.clone());
        match self.drift(said.as_deref()) {
            Kept::Keep => {}
            Kept::Clear => draft.conditions.clear(condition::DRIFTED),
            Kept::Set(Drift { reason, message }) => {
                if said.as_deref() != Some(reason) {
                    tracing::info!(nodeclaim = %draft.name(), %reason, %message, "drifted");
                }
                let type_ = condition::DRIFTED;
                draft.conditions.set_true_because(type_, reason, message);
            }
        }
        // It would be written by itself a little later.
        if let Some(at) = self.pod_event.map(kerf_api::time::whole_seconds) {
            let known = &mut draft.status_mut().last_pod_event_time;
            *known = (*known).max(Some(at));
        }
        if self.is_quiet(draft.now) {
            draft.conditions.set_true(condition::CONSOLIDATABLE);
        } else {
            draft.conditions.clear(condition::CONSOLIDATABLE);
        }
    }
}

/// Whether nothing has changed that claims are compared with. Not by the version, which each node that comes or goes moves: the
/// pool's status counts them.
fn is_same_pool(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid == b.uid
        && a.generation == b.generation
        && a.annotations == b.annotations
        && a.labels == b.labels
        && a.deletion_timestamp == b.deletion_timestamp
}

/// What becomes of the condition Drifted.
enum Kept<'a> {
    Keep,
    Clear,
    Set(&'a Drift),
}

async fn write_or_say_why(
    claim: Arc<NodeClaim>,
    standing: Standing,
    context: &Context,
    now: Timestamp,
) {
    let mut draft = Draft::open(&claim, now);
    standing.put(&mut draft);
    let written: Result<(), Error> = draft.write(&Api::all(context.client.clone())).await;
    context.stores.nodeclaims.note_written(&draft.claim);
    match written {
        Err(error) if !error.is_conflict() && !error.is_not_found() => {
            tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "conditions not written; tried again in the next pass");
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use kerf_api::names::reason;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn drifted(reason: &'static str) -> Standing {
        Standing {
            verdict: Verdict::Drifted(Drift {
                reason,
                message: "m".to_owned(),
            }),
            quiet_at: None,
            pod_event: None,
        }
    }

    fn claim_after(standing: &Standing) -> NodeClaim {
        let mut draft = Draft::open(&NodeClaim::new("general-1", Default::default()), at(10));
        standing.put(&mut draft);
        let conditions = draft.conditions.clone().finish();
        draft.status_mut().conditions = conditions;
        draft.claim
    }

    #[test]
    fn a_pool_that_counts_one_node_more_is_no_reason_to_read_all_claims_again() {
        let pool = ObjectMeta {
            generation: Some(3),
            resource_version: Some("10".to_owned()),
            ..ObjectMeta::default()
        };
        let counted = ObjectMeta {
            resource_version: Some("11".to_owned()),
            ..pool.clone()
        };
        let edited = ObjectMeta {
            generation: Some(4),
            ..counted.clone()
        };
        let hashed = ObjectMeta {
            annotations: Some([("hash".to_owned(), "1".to_owned())].into()),
            ..counted.clone()
        };

        assert!(is_same_pool(&pool, &counted));
        assert!(!is_same_pool(&pool, &edited));
        assert!(!is_same_pool(&pool, &hashed));
    }

    #[test]
    fn what_is_said_already_is_not_written_again() {
        let standing = drifted(reason::IMAGE_DRIFT);
        let claim = claim_after(&standing);

        assert_eq!(standing.changed(&claim, at(20)), None);
        assert!(
            drifted(reason::VSWITCH_DRIFT)
                .changed(&claim, at(20))
                .is_some()
        );
    }

    #[test]
    fn drift_of_the_cloud_stays_while_the_cloud_cannot_be_asked_and_that_of_the_pool_goes() {
        let unknown = || Standing {
            verdict: Verdict::Unknown,
            quiet_at: None,
            pod_event: None,
        };
        let image = claim_after(&drifted(reason::IMAGE_DRIFT));
        let pool = claim_after(&drifted(reason::NODEPOOL_DRIFTED));

        assert_eq!(unknown().changed(&image, at(20)), None);
        assert!(unknown().changed(&pool, at(20)).is_some());
    }

    #[test]
    fn consolidatable_comes_when_it_is_due_and_goes_when_a_pod_moves() {
        let quiet = |second| Standing {
            verdict: Verdict::Current,
            quiet_at: Some(at(second)),
            pod_event: Some(at(second - 5)),
        };
        let due = claim_after(&quiet(5));
        assert!(due.is_true(condition::CONSOLIDATABLE));

        assert_eq!(quiet(5).changed(&due, at(20)), None);
        let moved = quiet(25).changed(&due, at(20)).unwrap();
        let moved = claim_after(&moved);
        assert!(!moved.is_true(condition::CONSOLIDATABLE));
        let pod_event = moved.status.unwrap().last_pod_event_time;
        assert_eq!(pod_event, Some(at(20)), "in the same write");
    }
}
