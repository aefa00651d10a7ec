//! `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// What the endpoints show.
#[derive(Debug, Clone)]
pub struct Served {
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// Set when every watch is in sync.
    pub is_ready: Arc<AtomicBool>,
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
pub async fn serve(listener: TcpListener, served: Served) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .with_state(served);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "metrics server stopped");
    }
}

async fn metrics(State(served): State<Served>) -> Result<String, StatusCode> {
    served
        .metrics
        .render()
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
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
