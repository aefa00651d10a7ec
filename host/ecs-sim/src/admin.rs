//! The admin API under `/_sim/`, for tests in another process and for people with curl. It needs no signature.
//!
//! | request | does |
//! |---|---|
//! | `GET /_sim/state` | instances, money per hour, calls, held replies, faults, stock |
//! | `GET /_sim/instances` | all instances that ever were |
//! | `POST /_sim/instances` | put a machine there that another program launched, with its tags |
//! | `GET /_sim/instances/{id}/boot-log` | what its user data printed |
//! | `GET /_sim/instances/{id}/file?path=/etc/x` | a file that its user data wrote |
//! | `POST /_sim/instances/{id}/interrupt?after-ms=n&by=lock` | take a spot machine back, announced by `lock`, `event` or `condition` |
//! | `POST /_sim/events` | announce an event, or another state of one |
//! | `GET /_sim/calls` | the latest calls |
//! | `POST /_sim/faults`, `DELETE /_sim/faults` | add to the fault script (one entry or a list); clear it |
//! | `PUT /_sim/weather` | trouble by chance: `{"seed": 1, "throttlePercent": 50, "cutPercent": 10, "noStockPercent": 5}`; `{}` ends it |
//! | `GET /_sim/held`, `POST /_sim/release?action=A` | replies that wait; let them go |
//! | `PUT /_sim/stock`, `PUT /_sim/timing`, `PUT /_sim/rate-limits` | replace that part of the world |

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post, put};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::announced::{Announced, Notice};
use crate::app::App;
use crate::faults::Fault;
use crate::nodes_http;
use crate::params::Params;
use crate::planted::Planted;
use crate::reply::Reply;
use crate::wire::decode_pairs;

const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Between announcement and end of a spot machine; in life five minutes.
const INTERRUPT_AFTER_MS: u64 = 2000;

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/_sim/state", get(state))
        .route("/_sim/instances", get(instances).post(plant))
        .route("/_sim/instances/{id}/boot-log", get(boot_log))
        .route("/_sim/instances/{id}/file", get(file))
        .route("/_sim/instances/{id}/interrupt", post(interrupt))
        .route("/_sim/events", post(announce))
        .route("/_sim/calls", get(calls))
        .route("/_sim/faults", post(add_faults).delete(clear_faults))
        .route("/_sim/weather", put(weather))
        .route("/_sim/held", get(held))
        .route("/_sim/release", post(release))
        .route("/_sim/stock", put(stock))
        .route("/_sim/timing", put(timing))
        .route("/_sim/rate-limits", put(rate_limits))
        .route("/_sim/join", post(nodes_http::join))
        .route(
            "/public/pkg/run/attach/{version}/attach_node.sh",
            get(nodes_http::attach_node),
        )
        .route(
            "/public/pkg/run/attach/{version}/{arch}/attach_node.sh",
            get(nodes_http::attach_node_of_arch),
        )
        .route(
            "/latest/{*path}",
            get(nodes_http::metadata).put(nodes_http::metadata),
        )
}

async fn state(State(app): State<Arc<App>>) -> Response {
    Reply::json(200, &app.overview()).into_response()
}

async fn instances(State(app): State<Arc<App>>) -> Response {
    let views = serde_json::to_value(app.views()).unwrap_or_default();
    Reply::json(200, &views).into_response()
}

async fn plant(State(app): State<Arc<App>>, request: Request) -> Response {
    match body::<Planted>(request).await.and_then(|it| app.plant(it)) {
        Ok(view) => Reply::json(200, &json!(view)).into_response(),
        Err(error) => Reply::json(400, &json!({"error": error})).into_response(),
    }
}

async fn boot_log(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    text(app.boot_log(&id).map(String::into_bytes)).into_response()
}

async fn file(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let path = query(&request).text("path").unwrap_or_default().to_owned();
    text(app.read_file(&id, &path)).into_response()
}

fn text(content: Option<Vec<u8>>) -> Reply {
    content.map_or_else(
        || Reply::text(404, "not found\n"),
        |content| Reply::text(200, content),
    )
}

async fn interrupt(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let query = query(&request);
    let after_ms = query
        .int("after-ms")
        .ok()
        .flatten()
        .and_then(|ms| u64::try_from(ms).ok());
    let by = query.text("by").unwrap_or("lock");
    let Some(notice) = Notice::parse(by) else {
        let error = json!({"error": format!("{by}: no such notice")});
        return Reply::json(400, &error).into_response();
    };
    let after = Duration::from_millis(after_ms.unwrap_or(INTERRUPT_AFTER_MS));
    done(app.interrupt(&id, after, notice)).into_response()
}

async fn announce(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(body::<Announced>(request).await.map(|it| app.announce(it)))
}

async fn calls(State(app): State<Arc<App>>) -> Response {
    let log: Vec<_> = app.calls().log().map(|record| json!(record)).collect();
    Reply::json(200, &Value::Array(log)).into_response()
}

async fn add_faults(State(app): State<Arc<App>>, request: Request) -> Response {
    let added = body::<Value>(request).await.and_then(|value| {
        let list = if value.is_array() {
            value
        } else {
            Value::Array(vec![value])
        };
        serde_json::from_value::<Vec<Fault>>(list).map_err(|error| error.to_string())
    });
    answer(added.map(|faults| {
        for fault in faults {
            app.faults().add(fault);
        }
    }))
}

async fn clear_faults(State(app): State<Arc<App>>) -> Response {
    app.faults().clear();
    done(true).into_response()
}

async fn weather(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(
        body(request)
            .await
            .map(|weather| app.faults().set_weather(weather)),
    )
}

async fn held(State(app): State<Arc<App>>) -> Response {
    let held = json!(app.faults().held());
    Reply::json(200, &held).into_response()
}

async fn release(State(app): State<Arc<App>>, request: Request) -> Response {
    let released = app.faults().release(query(&request).text("action"));
    Reply::json(200, &json!({"released": released})).into_response()
}

async fn stock(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(
        body(request)
            .await
            .map(|stock| app.state().world.stock = stock),
    )
}

async fn timing(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(
        body(request)
            .await
            .map(|timing| app.state().world.timing = timing),
    )
}

async fn rate_limits(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(
        body(request)
            .await
            .map(|limits| app.state().world.rate_limits = limits),
    )
}

fn query(request: &Request) -> Params {
    decode_pairs(request.uri().query().unwrap_or_default())
        .into_iter()
        .collect()
}

async fn body<T: DeserializeOwned>(request: Request) -> Result<T, String> {
    let bytes = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX)
        .await
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn answer(outcome: Result<(), String>) -> Response {
    match outcome {
        Ok(()) => done(true).into_response(),
        Err(error) => Reply::json(400, &json!({"error": error})).into_response(),
    }
}

fn done(done: bool) -> Reply {
    if done {
        Reply::json(200, &json!({}))
    } else {
        Reply::json(404, &json!({"error": "no such instance"}))
    }
}
