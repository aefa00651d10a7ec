//! Deleting instances: what is asked for within a moment, or while the calls before it are under way, shares a call; one by
//! one where a call fails for one bad id.
//!
//! Whoever deletes asks until the instance is gone. Once the API has taken a deletion, the instance is looked at until it shows no
//! more: to delete many again fails for the first of them that is gone, and to do so with the token of the first call says what
//! that call said (ecs-api.md, "ClientToken").
//!
//! The call is a shared future that every caller polls, so one that goes away takes nothing from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join_all};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::actions::instances::INSTANCES_PER_CALL_MAX;
use crate::error::{CloudError, ErrorClass, Missing, StateProblem};
use crate::provider::describe::Describer;
use crate::provider::gathering::Gathering;
use crate::provider::instance::DeleteOutcome;
use crate::rpc::Client;
use crate::rpc::sign::sha256_hex;

/// How long a call waits for others to join it.
const WINDOW: Duration = Duration::from_millis(50);
/// Calls under way. One that hangs must not hold up all others, and while the API throttles the few that may go should
/// have as many ids as there are.
const UNDER_WAY_MAX: usize = 4;
/// A deletion that the API took is asked for again after this time, in case nothing came of it: a deleted instance shows for
/// seconds to a minute.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

type Outcomes = Arc<BTreeMap<String, DeleteOutcome>>;

/// A call that is still open for more ids, or under way.
#[derive(Clone)]
struct Batch {
    ids: Gathering,
    outcomes: Shared<BoxFuture<'static, Outcomes>>,
}

/// Merges deletions.
pub(crate) struct Deleter {
    client: Client,
    describer: Arc<Describer>,
    turns: Arc<Semaphore>,
    taken: Arc<Taken>,
    open: Mutex<Option<Batch>>,
}

/// When the API took a deletion, by instance.
#[derive(Debug, Default)]
struct Taken(Mutex<BTreeMap<String, Instant>>);

impl std::fmt::Debug for Deleter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deleter")
    }
}

impl Deleter {
    pub(crate) fn new(client: Client, describer: Arc<Describer>) -> Self {
        Self {
            client,
            describer,
            turns: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            taken: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// One outcome per distinct id, in the order given.
    pub(crate) async fn delete(&self, ids: &[String]) -> Vec<(String, DeleteOutcome)> {
        let mut seen = BTreeSet::new();
        // An empty id must never reach the API, which might read it as "not given".
        let ids: Vec<_> = ids
            .iter()
            .filter(|id| !id.is_empty() && seen.insert(*id))
            .cloned()
            .collect();
        let (going, fresh) = self.taken.part(&ids, Instant::now());
        let calls: Vec<_> = fresh
            .chunks(INSTANCES_PER_CALL_MAX)
            .map(|chunk| self.join(chunk))
            .collect();
        // A look that hangs holds up nobody's deletion.
        let (looked, told) = tokio::join!(self.look(going), join_all(calls));
        let outcome = |id: String| {
            let asked = told.iter().find_map(|it| it.get(&id));
            let known = asked.or_else(|| looked.get(&id)).cloned();
            let unknown = || DeleteOutcome::Failed("the call said nothing of it".to_owned());
            let outcome = known.unwrap_or_else(unknown);
            (id, outcome)
        };
        ids.into_iter().map(outcome).collect()
    }

    /// What became of deletions that the API took. What shows no more is asked for once more: that it is gone is said by an error of
    /// its own, and a list that lacks it may be old, or of somebody who may not see it.
    async fn look(&self, ids: Vec<String>) -> BTreeMap<String, DeleteOutcome> {
        if ids.is_empty() {
            return BTreeMap::new();
        }
        let shown = match self.describer.by_ids(&ids).await {
            Ok(shown) => shown,
            Err(error) => {
                let failed = DeleteOutcome::Failed(error.to_string());
                return ids.into_iter().map(|id| (id, failed.clone())).collect();
            }
        };
        let outcome = |id: String| async {
            let is_shown = shown.iter().any(|it| it.id == id);
            let outcome = match is_shown {
                true => DeleteOutcome::Accepted,
                false => outcome(self.client.delete_instance(&id).await),
            };
            (id, outcome)
        };
        let outcomes = join_all(ids.into_iter().map(outcome)).await;
        outcomes.into_iter().collect()
    }

    fn join(&self, ids: &[String]) -> Shared<BoxFuture<'static, Outcomes>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = open.as_ref()
            && batch.ids.accept(ids)
        {
            return batch.outcomes.clone();
        }
        let batch = Batch::start(self, ids);
        *open = Some(batch.clone());
        batch.outcomes
    }
}

impl Batch {
    fn start(deleter: &Deleter, ids: &[String]) -> Self {
        let ids = Gathering::of(ids);
        let gathered = ids.clone();
        let (client, turns) = (deleter.client.clone(), Arc::clone(&deleter.turns));
        let taken = Arc::clone(&deleter.taken);
        let outcomes = async move {
            tokio::time::sleep(WINDOW).await;
            // Closed semaphores give no permit, and nobody closes this one.
            let _turn = turns.acquire().await;
            let outcomes = delete_chunk(&client, &gathered.take()).await;
            taken.note(&outcomes, Instant::now());
            Arc::new(outcomes.into_iter().collect())
        };
        Self {
            ids,
            outcomes: outcomes.boxed().shared(),
        }
    }
}

impl Taken {
    /// Those whose deletion was taken lately, and the others.
    fn part(&self, ids: &[String], now: Instant) -> (Vec<String>, Vec<String>) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        ids.iter().cloned().partition(|id| taken.contains_key(id))
    }

    fn note(&self, outcomes: &[(String, DeleteOutcome)], now: Instant) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = outcomes
            .iter()
            .filter(|(_, it)| *it == DeleteOutcome::Accepted);
        taken.extend(accepted.map(|(id, _)| (id.clone(), now)));
    }
}

async fn delete_chunk(client: &Client, ids: &[String]) -> Vec<(String, DeleteOutcome)> {
    if let [id] = ids {
        return vec![(id.clone(), outcome(client.delete_instance(id).await))];
    }
    match client.delete_instances(ids, &token(client, ids)).await {
        Ok(()) => ids
            .iter()
            .map(|id| (id.clone(), DeleteOutcome::Accepted))
            .collect(),
        // Throttled or out of reach: single calls would fare no better, only cost more.
        Err(error) if matches!(error.class(), ErrorClass::Throttled | ErrorClass::Transient) => {
            let failed = DeleteOutcome::Failed(error.to_string());
            ids.iter().map(|id| (id.clone(), failed.clone())).collect()
        }
        Err(_) => {
            let single = |id: &String| {
                let id = id.clone();
                async move {
                    let result = client.delete_instance(&id).await;
                    (id, outcome(result))
                }
            };
            join_all(ids.iter().map(single)).await
        }
    }
}

/// Of the ids and the time: a repeat within a call's retries is one delete, a later one is a new delete.
fn token(client: &Client, ids: &[String]) -> String {
    let now = client.now();
    let hash = sha256_hex(format!("{now}\n{}", ids.join("\n")).as_bytes());
    format!("kerf-del-{}", &hash[..32])
}

fn outcome(result: Result<(), CloudError>) -> DeleteOutcome {
    let Err(error) = result else {
        return DeleteOutcome::Accepted;
    };
    match error.class() {
        ErrorClass::NotFound(Missing::Instance) => DeleteOutcome::Gone,
        ErrorClass::State(StateProblem::Initializing | StateProblem::Busy) => {
            DeleteOutcome::Requeue
        }
        ErrorClass::State(StateProblem::Locked) => DeleteOutcome::Refused(error.to_string()),
        ErrorClass::NoCapacity(_)
        | ErrorClass::DiskCategory
        | ErrorClass::IpExhausted
        | ErrorClass::Quota(_)
        | ErrorClass::Auth(_)
        | ErrorClass::Billing
        | ErrorClass::SpotPrice
        | ErrorClass::NotFound(_)
        | ErrorClass::Throttled
        | ErrorClass::Idempotent(_)
        | ErrorClass::StaleSignature
        | ErrorClass::ImageMismatch
        | ErrorClass::UserData
        | ErrorClass::DryRun
        | ErrorClass::Invalid
        | ErrorClass::Transient => DeleteOutcome::Failed(error.to_string()),
    }
}
