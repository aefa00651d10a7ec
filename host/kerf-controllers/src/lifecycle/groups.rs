//! Launch groups: claims of one shape that are to be launched at about the same time share a call.
//!
//! A group is frozen before its call: each claim stores group, place, size and attempt. The instances carry the group's
//! tag. Whoever has no instance yet, living or being deleted, gets the one at its place among those that are left, so
//! a restart gives each claim its own and deletes what nobody needs. Less than a group asked for is a success: whoever
//! has none leaves the group and joins another.

mod drive;
mod expected;
mod share;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kerf_api::names::annotation;
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::launch::{Attempt, LaunchOutcome, LaunchRequest};
use kube::ResourceExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::context::Context;
use crate::disruption::origin::Origin;

pub use share::{Share, of_deleted, resume};

/// RunInstances makes no more at once.
const MEMBERS_MAX: usize = 100;

/// Groups that are remembered; beyond that those are forgotten in which every claim has its instance. Forgetting costs a
/// look at the tags.
const GROUPS_MAX: usize = 64;

/// What a claim remembers of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The group.
    pub group: String,
    /// The claim's place in it.
    pub ordinal: usize,
    /// The last attempt.
    pub attempt: Attempt,
}

impl Place {
    /// None for a claim that is launched by itself, or was not yet.
    #[must_use]
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        let annotations = claim.annotations();
        let number = |key: &str| annotations.get(key)?.parse::<usize>().ok();
        if number(annotation::LAUNCH_SIZE)? < 2 {
            return None;
        }
        Some(Self {
            group: annotations.get(annotation::LAUNCH_GROUP)?.clone(),
            ordinal: number(annotation::LAUNCH_ORDINAL)?,
            attempt: serde_json::from_str(annotations.get(annotation::LAUNCH_ATTEMPT)?).ok()?,
        })
    }

    /// Takes a claim out of its group, so that it can join another.
    pub fn leave(claim: &mut NodeClaim) {
        for key in [
            annotation::LAUNCH_GROUP,
            annotation::LAUNCH_ORDINAL,
            annotation::LAUNCH_SIZE,
            annotation::LAUNCH_ATTEMPT,
            annotation::LAUNCH_PARAMS_HASH,
        ] {
            claim.annotations_mut().remove(key);
        }
    }
}

/// What became of a claim that joined.
#[derive(Debug, Clone)]
pub enum Joined {
    /// Nobody else came: it is launched by itself.
    Alone,
    /// The claim as it was written last, and its share.
    Shared(Box<NodeClaim>, Share),
}

type Outcome = Arc<BTreeMap<String, (NodeClaim, Share)>>;

/// A group that is open for more claims, or on its way.
#[derive(Clone)]
struct Gathering {
    members: Arc<Mutex<Option<Vec<NodeClaim>>>>,
    is_full: Arc<Notify>,
    outcome: Shared<BoxFuture<'static, Outcome>>,
}

/// All groups of this process.
#[derive(Default)]
pub struct Launches {
    expected: expected::Expected,
    /// By what their claims have in common.
    open: Mutex<BTreeMap<String, Gathering>>,
    known: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<share::Group>>>>,
}

impl std::fmt::Debug for Launches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Launches")
    }
}

impl Launches {
    /// Claims of that pool and order of offerings are about to be created.
    pub fn announce(&self, pool: &str, offerings: &str) {
        self.expected
            .announce(expected::kin(pool, offerings), Instant::now());
    }

    /// One that was announced is not created.
    pub fn cancel(&self, pool: &str, offerings: &str) {
        self.expected.arrive(&expected::kin(pool, offerings));
    }

    fn group(&self, name: &str) -> Arc<tokio::sync::Mutex<share::Group>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(name.to_owned()).or_default())
    }

    fn forget_finished(&self, context: &Context) {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before: BTreeSet<String> = lock().keys().cloned().collect();
        if before.len() <= GROUPS_MAX {
            return;
        }
        // Launches need not wait while the claims are read, so groups may come meanwhile.
        let claims = context.stores.nodeclaims.iter();
        let open: BTreeSet<String> = claims
            .filter(|claim| claim.provider_id().is_none())
            .filter_map(|claim| claim.annotations().get(annotation::LAUNCH_GROUP).cloned())
            .collect();
        lock().retain(|group, _| open.contains(group) || !before.contains(group));
    }
}

/// What claims of one group have in common.
fn shape(request: &LaunchRequest) -> String {
    let LaunchRequest {
        class,
        node_pool,
        offerings,
        node,
        ..
    } = request;
    format!("{} {node_pool} {offerings:?} {node:?}", class.spec.name)
}

/// Launches the claim together with those of its shape that come within a moment.
pub async fn join(
    claim: &NodeClaim,
    request: &LaunchRequest,
    origin: &Origin,
    context: &Arc<Context>,
) -> Joined {
    let outcome = enrol(claim, request, origin, context).await;
    match outcome.get(&claim.name_any()) {
        Some((claim, share)) => Joined::Shared(Box::new(claim.clone()), share.clone()),
        None => Joined::Alone,
    }
}

fn enrol(
    claim: &NodeClaim,
    request: &LaunchRequest,
    origin: &Origin,
    context: &Arc<Context>,
) -> Shared<BoxFuture<'static, Outcome>> {
    let launches = &context.launches;
    let shape = shape(request);
    let kin = expected::kin_of(claim);
    let was_announced = launches.expected.arrive(&kin);
    let mut open = launches.open.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gathering) = open.get(&shape)
        && gathering.accept(claim)
    {
        return gathering.outcome.clone();
    }
    let members = Arc::new(Mutex::new(Some(vec![claim.clone()])));
    let is_full = Arc::<Notify>::default();
    let drive = drive::Drive {
        shape: shape.clone(),
        kin,
        was_announced,
        members: Arc::clone(&members),
        is_full: Arc::clone(&is_full),
        request: request.clone(),
        origin: origin.clone(),
        context: Arc::clone(context),
    };
    let gathering = Gathering {
        members,
        is_full,
        outcome: drive.run().boxed().shared(),
    };
    open.insert(shape, gathering.clone());
    gathering.outcome
}

impl Gathering {
    fn accept(&self, claim: &NodeClaim) -> bool {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(members) = members.as_mut().filter(|it| it.len() < MEMBERS_MAX) else {
            return false;
        };
        members.push(claim.clone());
        if members.len() >= MEMBERS_MAX {
            self.is_full.notify_one();
        }
        true
    }
}

/// An outcome that holds for each claim of a group.
fn for_each(outcome: LaunchOutcome) -> Share {
    Share::Outcome(Box::new(outcome))
}
