//! Calls to the API server that always end.
//!
//! The client's own read time-out has to suit watches, which are silent for minutes; a single request gets this one.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use kube::core::Status;
use serde::de::DeserializeOwned;

/// With the time that the request waits for its turn at the client's own rate limit, which is why it is this long. How
/// long the API server may take for the answer itself is bounded where the client is made.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one request; when it does not end in time, the answer is a 504 as a gateway would give it.
///
/// # Errors
/// The request's own, or the time-out.
pub async fn bounded<T>(
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    bounded_by(CALL_TIMEOUT, call).await
}

/// As [`bounded`], for a caller that cannot wait that long.
///
/// # Errors
/// The request's own, or the time-out.
pub async fn bounded_by<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    tokio::time::timeout(limit, call)
        .await
        .unwrap_or_else(|_| Err(timed_out(limit)))
}

/// Objects of one answer where all of a kind are read: a NodeClaim is up to 15 KB, and a large cluster has thousands.
const PAGE_OBJECTS: u32 = 100;

/// Reads all objects, a page at a time, and keeps of each what `keep` makes of it.
///
/// # Errors
/// Those of any of the requests; also when the API server has forgotten the list meanwhile.
pub async fn list_pages<K, T>(
    api: &Api<K>,
    mut keep: impl FnMut(K) -> Option<T>,
) -> Result<Vec<T>, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut kept = Vec::new();
    let mut params = ListParams::default().limit(PAGE_OBJECTS);
    loop {
        let page = bounded(api.list(&params)).await?;
        kept.extend(page.items.into_iter().filter_map(&mut keep));
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        let Some(token) = token else { return Ok(kept) };
        params.continue_token = Some(token);
    }
}

fn timed_out(limit: Duration) -> kube::Error {
    let message = format!("the API server did not answer within {} s", limit.as_secs());
    kube::Error::Api(Status::failure(&message, "Timeout").with_code(504).boxed())
}

/// True if the object is not there (any more).
#[must_use]
pub fn is_not_found(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// True if the object changed since it was read, or exists already.
#[must_use]
pub fn is_conflict(error: &kube::Error) -> bool {
    has_code(error, 409)
}

/// True if the API server answered with this HTTP status.
#[must_use]
pub fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// What is gone already counts as deleted.
///
/// # Errors
/// Every other error.
pub fn gone_is_fine<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
