//! What conditions hold now and what is going, from the stores.

use std::sync::Arc;

use jiff::Timestamp;

use super::Labels;
use super::object::{KINDS, Observed};
use crate::metrics::text;
use crate::stores::Stores;

/// The text of what holds now: of all objects that reconcilers read.
#[must_use]
pub fn render(stores: &Stores, now: Timestamp) -> String {
    let mut out = String::new();
    render_kind(&stores.nodeclaims.state(), now, &mut out);
    render_kind(&stores.nodepools.state(), now, &mut out);
    render_kind(&stores.nodes.state(), now, &mut out);
    render_kind(&stores.node_classes.state(), now, &mut out);
    render_kind(&stores.buffers.state(), now, &mut out);
    out
}

pub(in crate::metrics) fn render_kind<K: Observed>(
    objects: &[Arc<K>],
    now: Timestamp,
    out: &mut String,
) {
    let kind = KINDS[K::PLACE];
    let age = |since: Timestamp| now.duration_since(since).as_secs_f64().max(0.0);
    let current = format!("operator_{kind}_status_condition_current_status_seconds");
    let count = format!("operator_{kind}_status_condition_count");
    let has_conditions = objects.iter().any(|it| !it.said().is_empty());
    for (name, help) in [
        (&current, "For how long a condition has had its status"),
        (&count, "Conditions of objects as they are now; always 1"),
    ] {
        if has_conditions {
            text::head(name, "gauge", help, out);
        }
        for object in objects {
            let more = object.more_labels();
            for condition in object.said() {
                let own = [
                    ("type", condition.type_),
                    ("status", condition.status),
                    ("reason", condition.reason),
                ];
                let value = if *name == current {
                    age(condition.since)
                } else {
                    1.0
                };
                text::sample(name, named(&**object, &own, &more), value, out);
            }
        }
    }
    let terminating = |it: &&Arc<K>| it.meta().deletion_timestamp.is_some();
    let name = format!("operator_{kind}_termination_current_time_seconds");
    if objects.iter().any(|it| terminating(&it)) {
        text::head(&name, "gauge", "For how long an object has been going", out);
    }
    for object in objects.iter().filter(terminating) {
        let since = object.meta().deletion_timestamp.as_ref().map(|it| it.0);
        let value = since.map_or(0.0, age);
        let more = object.more_labels();
        text::sample(&name, named(&**object, &[], &more), value, out);
    }
}

fn named<'a, K: Observed>(
    object: &'a K,
    own: &[(&'a str, &'a str)],
    more: &'a Labels,
) -> Vec<(&'a str, &'a str)> {
    let meta = object.meta();
    let mut labels = vec![
        ("namespace", meta.namespace.as_deref().unwrap_or_default()),
        ("name", meta.name.as_deref().unwrap_or_default()),
    ];
    labels.extend(own);
    labels.extend(more.iter().map(|(key, value)| (*key, value.as_str())));
    labels
}
