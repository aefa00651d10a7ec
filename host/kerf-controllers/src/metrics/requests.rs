//! Requests to the cloud, one by one: what [`super::cloud`] counts as one call may be several, with waits between them.

use std::collections::BTreeMap;

use kerf_cloud::rpc::ActionStats;

use super::text::{head, sample};

/// By action, as the client has counted since its start.
type Stats = BTreeMap<&'static str, ActionStats>;

/// A counter by action and its meaning.
type Counter = (&'static str, &'static str, fn(&ActionStats) -> f64);

const COUNTERS: [Counter; 3] = [
    (
        "kerf_cloud_requests_total",
        "Requests sent to Alibaba Cloud, each attempt by itself",
        |it| count(it.attempts),
    ),
    (
        "kerf_cloud_request_seconds_total",
        "Time that requests to Alibaba Cloud took from sending to the last byte, all together",
        |it| it.latency.as_secs_f64(),
    ),
    (
        "kerf_cloud_limiter_wait_seconds_total",
        "Time that requests waited so as to stay below the account's limits, all together",
        |it| it.throttle_wait.as_secs_f64(),
    ),
];

const ERRORS: &str = "kerf_cloud_request_errors_total";

/// The series of now.
#[must_use]
pub fn render(stats: &Stats) -> String {
    let mut out = String::new();
    if stats.is_empty() {
        return out;
    }
    for (name, help, value) in COUNTERS {
        head(name, "counter", help, &mut out);
        for (action, it) in stats {
            sample(name, [("action", *action)], value(it), &mut out);
        }
    }
    let help = "Requests to Alibaba Cloud that failed, by the kind of the error";
    if stats.values().any(|it| !it.errors.is_empty()) {
        head(ERRORS, "counter", help, &mut out);
    }
    for (action, it) in stats {
        for (error, times) in &it.errors {
            let labels = [("action", *action), ("error", *error)];
            sample(ERRORS, labels, count(*times), &mut out);
        }
    }
    out
}

#[expect(
    clippy::cast_precision_loss,
    reason = "requests are far fewer than 2^53, and the text format knows only floats"
)]
fn count(times: u64) -> f64 {
    times as f64
}

/// One action that failed once, for the table of metrics.
#[cfg(test)]
pub(super) fn example() -> Stats {
    let stats = ActionStats {
        attempts: 3,
        errors: BTreeMap::from([("Throttled", 1)]),
        latency: std::time::Duration::from_millis(1500),
        throttle_wait: std::time::Duration::from_secs(2),
    };
    Stats::from([("RunInstances", stats)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_its_attempts_its_errors_and_its_times() {
        let text = render(&example());

        for line in [
            "kerf_cloud_requests_total{action=\"RunInstances\"} 3\n",
            "kerf_cloud_request_seconds_total{action=\"RunInstances\"} 1.5\n",
            "kerf_cloud_limiter_wait_seconds_total{action=\"RunInstances\"} 2\n",
            "kerf_cloud_request_errors_total{action=\"RunInstances\",error=\"Throttled\"} 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(render(&Stats::new()), "");
    }
}
