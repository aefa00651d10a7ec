//! Deleting instances: in batches, one by one where a batch fails for one bad id.

use std::collections::BTreeSet;

use futures::future::join_all;

use crate::actions::instances::INSTANCES_PER_CALL_MAX;
use crate::error::{CloudError, ErrorClass, Missing, StateProblem};
use crate::provider::instance::DeleteOutcome;
use crate::rpc::Client;
use crate::rpc::sign::sha256_hex;

/// One outcome per distinct id, in the order given.
pub(crate) async fn delete(client: &Client, ids: &[String]) -> Vec<(String, DeleteOutcome)> {
    let mut seen = BTreeSet::new();
    // An empty id must never reach the API, which might read it as "not given".
    let ids: Vec<_> = ids
        .iter()
        .filter(|id| !id.is_empty() && seen.insert(*id))
        .cloned()
        .collect();
    let mut outcomes = Vec::new();
    for chunk in ids.chunks(INSTANCES_PER_CALL_MAX) {
        outcomes.extend(delete_chunk(client, chunk).await);
    }
    outcomes
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
