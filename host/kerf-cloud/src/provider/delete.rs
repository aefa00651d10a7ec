//! Deleting instances: what is asked for within a moment, or while the calls before it are under way, shares a call; one by
//! one where a call fails for one bad id.
//!
//! The call is a shared future that every caller polls, so one that goes away takes nothing from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join_all};
use tokio::sync::Semaphore;

use crate::actions::instances::INSTANCES_PER_CALL_MAX;
use crate::error::{CloudError, ErrorClass, Missing, StateProblem};
use crate::provider::gathering::Gathering;
use crate::provider::instance::DeleteOutcome;
use crate::rpc::Client;
use crate::rpc::sign::sha256_hex;

/// How long a call waits for others to join it.
const WINDOW: Duration = Duration::from_millis(50);
/// Calls under way. One that hangs must not hold up all others, and while the API throttles the few that may go should
/// have as many ids as there are.
const UNDER_WAY_MAX: usize = 4;

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
    turns: Arc<Semaphore>,
    open: Mutex<Option<Batch>>,
}

impl std::fmt::Debug for Deleter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deleter")
    }
}

impl Deleter {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            turns: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
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
        let calls = ids
            .chunks(INSTANCES_PER_CALL_MAX)
            .map(|chunk| self.join(chunk));
        let told = join_all(calls.collect::<Vec<_>>()).await;
        let outcome = |id: String| {
            let known = told.iter().find_map(|it| it.get(&id)).cloned();
            let unknown = || DeleteOutcome::Failed("the call said nothing of it".to_owned());
            let outcome = known.unwrap_or_else(unknown);
            (id, outcome)
        };
        ids.into_iter().map(outcome).collect()
    }

    fn join(&self, ids: &[String]) -> Shared<BoxFuture<'static, Outcomes>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = open.as_ref()
            && batch.ids.accept(ids)
        {
            return batch.outcomes.clone();
        }
        let batch = Batch::start(self.client.clone(), Arc::clone(&self.turns), ids);
        *open = Some(batch.clone());
        batch.outcomes
    }
}

impl Batch {
    fn start(client: Client, turns: Arc<Semaphore>, ids: &[String]) -> Self {
        let ids = Gathering::of(ids);
        let taken = ids.clone();
        let outcomes = async move {
            tokio::time::sleep(WINDOW).await;
            // Closed semaphores give no permit, and nobody closes this one.
            let _turn = turns.acquire().await;
            Arc::new(
                delete_chunk(&client, &taken.take())
                    .await
                    .into_iter()
                    .collect(),
            )
        };
        Self {
            ids,
            outcomes: outcomes.boxed().shared(),
        }
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

/// Of the ids and the minute: a repeat within a call's retries is one delete, a later one is a new delete.
fn token(client: &Client, ids: &[String]) -> String {
    let minute = client.now().as_second() / 60;
    let hash = sha256_hex(format!("{minute}\n{}", ids.join("\n")).as_bytes());
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
