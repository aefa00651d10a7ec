//! `/metrics`, `/healthz` and `/readyz`, and on wish `/debug/`.

mod profile;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, io};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use futures::stream::{self, Stream};
use kerf_policy::Recorder;
use prometheus_client::encoding::prometheus_text;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use crate::context::Context;
use crate::metrics::text::Sink;
use crate::metrics::{Metrics, requests};
use crate::{clock, metrics};

/// For reading the metrics. Prometheus gives up a scrape after ten seconds where nobody says otherwise.
const READ_MAX: Duration = Duration::from_secs(30);
/// Scrapes at the same time: each holds a thread, a snapshot and two pieces of the text. Two Prometheus servers, and a person
/// who looks.
pub(crate) const SCRAPES_MAX: usize = 4;

/// Where the process listens.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Metrics, and the probes too when those have no address of their own.
    pub metrics: SocketAddr,
    /// The probes.
    pub probes: Option<SocketAddr>,
    /// Whether threads and memory are shown beside the metrics.
    pub has_profiling: bool,
}

/// What the endpoints show.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where the metrics come from.
    pub context: Arc<Context>,
    /// When the process began to serve.
    pub started: Instant,
    /// Set when every watch is in sync.
    pub is_ready: Arc<AtomicBool>,
    /// Whether threads and memory are shown.
    pub has_profiling: bool,
    /// For those that read the metrics now; beyond, the answer is 503.
    pub scrapes: Arc<Semaphore>,
}

/// Opens the port; the returned address tells which one when 0 was asked for.
///
/// # Errors
/// When the port is taken or not allowed.
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Answers until the process ends.
pub async fn serve(listener: TcpListener, router: Router) {
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "HTTP server stopped");
    }
}

/// Everything on one port.
pub fn all(served: Served) -> Router {
    scrapes(served.clone()).merge(probes(served))
}

/// `/metrics`, and on wish the profile and the questions to policies.
pub fn scrapes(served: Served) -> Router {
    let mut router = Router::new().route("/metrics", get(scrape));
    if served.has_profiling {
        router = router
            .route("/debug/threads", get(async || profile::threads()))
            .route("/debug/memory", get(async || profile::memory()));
    }
    if served.context.policies.registry().recorder().is_some() {
        router = router.route("/debug/policy-questions", get(questions));
    }
    router.with_state(served)
}

/// `/healthz` and `/readyz`.
pub fn probes(served: Served) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz))
        .with_state(served)
}

/// What `kerf plugin record` reads: some of the questions that policies were asked, without private values.
async fn questions(State(served): State<Served>) -> impl IntoResponse {
    let recorder = served.context.policies.registry().recorder();
    let questions = recorder.map(Recorder::questions).unwrap_or_default();
    let text = serde_json::to_string(&questions).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR);
    text.map(|text| ([(CONTENT_TYPE, "application/json")], text))
}

async fn scrape(State(served): State<Served>) -> Result<impl IntoResponse, StatusCode> {
    let is_ready = served.is_ready.load(Ordering::Acquire);
    let unsynced = match is_ready {
        true => 0.0,
        false => served.started.elapsed().as_secs_f64(),
    };
    served.context.metrics.state_unsynced_time.set(unsynced);
    let permit = Arc::clone(&served.scrapes).try_acquire_owned();
    let permit = permit.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let body = body(Arc::clone(&served.context), is_ready, permit);
    Ok(([(CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], body))
}

/// What is there now, and then what has been counted, also by that. Two thousand nodes are twenty megabytes of text, so it is
/// made while it is read.
fn body(context: Arc<Context>, is_ready: bool, permit: OwnedSemaphorePermit) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let runtime = Handle::current();
    let ends_at = tokio::time::Instant::now() + READ_MAX;
    // Hundreds of objects are read for it, and the runtime's threads have a lease to renew.
    tokio::task::spawn_blocking(move || {
        let send = |piece| {
            let sent = runtime.block_on(timeout_at(ends_at, sender.send(piece)));
            let is_sent = sent.is_ok_and(|it| it.is_ok());
            is_sent.then_some(()).ok_or(fmt::Error)
        };
        let mut pass_on = |piece: String| match piece.is_empty() {
            true => Ok(()),
            false => send(Some(piece)),
        };
        let _permit = permit;
        state(&context, is_ready, &mut pass_on)?;
        pass_on(context.metrics.render(clock::now())?)?;
        pass_on(requests::render(&context.cloud.request_stats()))?;
        send(None)
    });
    Body::from_stream(pieces(receiver))
}

/// Up to None, which is the end. Without it something went wrong, and whoever reads must not take a part for the whole.
fn pieces(receiver: Receiver<Option<String>>) -> impl Stream<Item = io::Result<String>> {
    stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(piece) => Some((Ok(piece?), Some(receiver))),
            None => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
        }
    })
}

/// The series of nodes, pools, conditions and, on wish, pods; none before the cluster is known.
fn state(context: &Context, is_ready: bool, pass_on: Sink<'_>) -> fmt::Result {
    let settings = &context.settings;
    if !is_ready || !settings.has_state_metrics {
        return Ok(());
    }
    let now = clock::now();
    let Metrics { pods, costs, .. } = &*context.metrics;
    metrics::state::render(&context.snapshot(), pods, costs, now, pass_on)?;
    metrics::conditions::render(&context.stores, now, pass_on)
}

async fn readyz(State(served): State<Served>) -> (StatusCode, &'static str) {
    if served.is_ready.load(Ordering::Acquire) {
        (StatusCode::OK, "ok")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "watches are not in sync yet",
        )
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn metrics_whose_making_broke_off_end_with_an_error() {
        for (is_whole, expected) in [(true, 0), (false, 1)] {
            let (sender, receiver) = mpsc::channel(2);
            sender.send(Some("some 1\n".to_owned())).await.unwrap();
            if is_whole {
                sender.send(None).await.unwrap();
            }
            drop(sender);

            let read: Vec<io::Result<String>> = pieces(receiver).collect().await;

            assert_eq!(read[0].as_deref().unwrap(), "some 1\n");
            assert_eq!(read.iter().filter(|it| it.is_err()).count(), expected);
            assert_eq!(read.len(), 1 + expected);
        }
    }
}
