//! The way of one API call: decode, fault, signature, action, fault, reply.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use serde_json::Value;

use crate::api::{self, Call};
use crate::app::App;
use crate::calls::Record;
use crate::clock;
use crate::connection::Peer;
use crate::error::ApiError;
use crate::faults::{Effect, Fault};
use crate::reply::{Envelope, Reply};
use crate::route::{is_roa, route};
use crate::wire::{WireRequest, decode_pairs};

/// The real gateway takes about as much; user data is the largest thing in a call.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Actions that take calls without a signature.
const ANONYMOUS: &[&str] = &["AssumeRoleWithOIDC"];

pub(crate) async fn gateway(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let Some(wire) = read(request).await else {
        return Reply::text(413, "request too large").into_response();
    };
    let envelope = envelope(&app, &wire);
    let call = match route(&wire, &app.url) {
        Ok(call) => call,
        Err(error) => {
            app.record("unknown", &error.code, true, wire.params().iter());
            return Reply::refusal(&error, &envelope).into_response();
        }
    };
    let fault = app.faults().take(&call.action, &call.params);
    answer(&app, &peer, &wire, call, fault, &envelope).await
}

async fn answer(
    app: &Arc<App>,
    peer: &Peer,
    wire: &WireRequest,
    call: Call,
    fault: Option<Fault>,
    envelope: &Envelope<'_>,
) -> Response {
    let Some(fault) = fault else {
        return app.carry_out(wire, call, envelope).into_response();
    };
    let action = call.action.clone();
    if fault.after {
        let reply = app.carry_out(wire, call, envelope);
        return spoil(app, peer, &action, fault.effect, reply, envelope).await;
    }
    match fault.effect {
        Effect::Hold => {
            app.hold(&action).await;
            app.carry_out(wire, call, envelope).into_response()
        }
        Effect::SlowBody { ms } => app
            .carry_out(wire, call, envelope)
            .into_slow_response(Duration::from_millis(ms)),
        effect @ (Effect::Error { .. }
        | Effect::Throttle { .. }
        | Effect::Hang
        | Effect::Cut
        | Effect::Html502) => {
            app.record(
                &action,
                &format!("fault {effect:?}"),
                true,
                call.params.iter(),
            );
            // The reply that is spoilt was never made.
            spoil(app, peer, &action, effect, Reply::text(500, ""), envelope).await
        }
    }
}

/// Answers with the effect of a fault instead of the reply.
async fn spoil(
    app: &App,
    peer: &Peer,
    action: &str,
    effect: Effect,
    reply: Reply,
    envelope: &Envelope<'_>,
) -> Response {
    let refusal = |status: u16, code: &str| {
        let error = ApiError::new(status, code, "This answer was scripted.");
        Reply::refusal(&error, envelope)
    };
    match effect {
        Effect::Error { status, code } => refusal(status, &code).into_response(),
        Effect::Throttle {
            status,
            code,
            retry_after_ms: None,
        } => refusal(status, &code).into_response(),
        Effect::Throttle {
            status,
            code,
            retry_after_ms: Some(ms),
        } => refusal(status, &code)
            .with_header("x-acs-retry-after", ms.to_string())
            .into_response(),
        Effect::Hang => std::future::pending().await,
        Effect::Cut => {
            peer.cut();
            reply.into_response()
        }
        Effect::Html502 => Reply::html_502().into_response(),
        Effect::SlowBody { ms } => reply.into_slow_response(Duration::from_millis(ms)),
        Effect::Hold => {
            app.hold(action).await;
            reply.into_response()
        }
    }
}

impl App {
    /// Checks and does what a call asks; everything that changes happens under one lock, without waiting.
    fn carry_out(
        self: &Arc<Self>,
        wire: &WireRequest,
        mut call: Call,
        envelope: &Envelope<'_>,
    ) -> Reply {
        let now = clock::now();
        let outcome = self.check_and_dispatch(wire, &mut call, now);
        let code = outcome
            .as_ref()
            .err()
            .map_or("OK", |error| error.code.as_str());
        self.record(&call.action, code, outcome.is_err(), call.params.iter());
        self.start_effects();
        let mut reply = Reply::outcome(&outcome, envelope);
        if code.starts_with("Throttling") {
            let left_ms = 60_000 - now.as_millisecond().rem_euclid(60_000);
            reply = reply.with_header("x-acs-retry-after", left_ms.to_string());
        }
        reply
    }

    fn check_and_dispatch(
        &self,
        wire: &WireRequest,
        call: &mut Call,
        now: jiff::Timestamp,
    ) -> Result<Value, ApiError> {
        let mut state = self.state();
        let limit = state.world.rate_limits.get(&call.action).copied();
        self.faults().check_rate(&call.action, limit, now)?;
        let is_anonymous =
            wire.header("authorization").is_none() && call.params.text("Signature").is_none();
        if !(is_anonymous && ANONYMOUS.contains(&call.action.as_str())) {
            call.access_key_id = Some(state.keyring.verify(wire, &call.params, now)?);
        }
        api::dispatch(&mut state, call, now)
    }

    pub(crate) fn record<'a>(
        &self,
        action: &str,
        outcome: &str,
        refused: bool,
        params: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        tracing::debug!(%action, %outcome, "call");
        let record = Record::new(clock::now(), action, outcome.to_owned(), params);
        self.calls().record(record, refused);
    }

    async fn hold(&self, action: &str) {
        let released = self.faults().hold(action);
        // The sender goes away only together with the simulator.
        let _ = released.await;
    }
}

async fn read(request: Request) -> Option<WireRequest> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.ok()?;
    let text =
        |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Some(WireRequest {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: decode_pairs(head.uri.query().unwrap_or_default()),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body: body.to_vec(),
    })
}

fn envelope<'a>(app: &App, wire: &'a WireRequest) -> Envelope<'a> {
    let params = wire.params();
    let is_rpc_v1 = params.text("Action").is_some();
    let wants_json = params
        .text("Format")
        .is_some_and(|format| format.eq_ignore_ascii_case("json"));
    Envelope {
        request_id: app.next_request_id(),
        host: wire.header("host").unwrap_or_default(),
        is_roa: is_roa(wire),
        is_xml: is_rpc_v1 && !wants_json,
    }
}
