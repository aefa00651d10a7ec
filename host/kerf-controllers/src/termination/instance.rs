//! Deleting instances, for a claim or for its Node. Safe to repeat.

use kerf_api::names::event;
use kerf_cloud::provider::instance::DeleteOutcome;
use kube::Resource;

use crate::context::Context;
use crate::error::Error;

/// Asks the cloud to delete the instances; true once it says that none is left. A refusal is told on `object`.
/// The calls count as those of the controller.
///
/// # Errors
/// When the cloud refuses or could not be asked.
pub async fn delete<K: Resource<DynamicType = ()>>(
    ids: &[String],
    object: &K,
    controller: &'static str,
    context: &Context,
) -> Result<bool, Error> {
    let mut is_gone = true;
    for (id, outcome) in context.cloud.on(controller).delete(ids).await {
        match outcome {
            DeleteOutcome::Gone => {}
            DeleteOutcome::Accepted | DeleteOutcome::Requeue => is_gone = false,
            DeleteOutcome::Refused(message) => {
                let note = format!("the cloud refuses to delete instance {id}: {message}");
                context
                    .events
                    .warning(object, event::FAILED_TERMINATION, &note)
                    .await;
                return Err(failed(&id, message));
            }
            DeleteOutcome::Failed(message) => return Err(failed(&id, message)),
        }
    }
    Ok(is_gone)
}

fn failed(id: &str, message: String) -> Error {
    Error::Cloud {
        operation: "delete",
        object: format!("instance {id}"),
        message,
    }
}
