//! `/metrics`, `/healthz` and `/readyz`, and on wish `/debug/`.

mod profile;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use kerf_policy::Recorder;
use prometheus_client::encoding::prometheus_text;
use tokio::net::TcpListener;

use crate::context::Context;
use crate::metrics::{Metrics, requests};
use crate::{clock, metrics};

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
    // Hundreds of objects are read for it, and the runtime's threads have a lease to renew.
    let context = Arc::clone(&served.context);
    let state = tokio::task::spawn_blocking(move || state(&context, is_ready)).await;
    let state = state.unwrap_or(Err(fmt::Error));
    let text = state.and_then(|mut more| {
        more.push_str(&requests::render(&served.context.cloud.request_stats()));
        served.context.metrics.render(&more, clock::now())
    });
    let typed = text.map(|text| ([(CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text));
    typed.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// The series of nodes, pools, conditions and, on wish, pods; none before the cluster is known.
fn state(context: &Context, is_ready: bool) -> Result<String, fmt::Error> {
    let settings = &context.settings;
    if !is_ready || !settings.has_state_metrics {
        return Ok(String::new());
    }
    let now = clock::now();
    let Metrics { pods, costs, .. } = &*context.metrics;
    let mut text = metrics::state::render(&context.snapshot(), pods, costs, now)?;
    text.push_str(&metrics::conditions::render(&context.stores, now));
    Ok(text)
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
