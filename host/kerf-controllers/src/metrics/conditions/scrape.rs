//! What conditions hold now and what is going, from the stores.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::Labels;
use super::object::{KINDS, Observed};
use crate::metrics::text::{self, Sink};
use crate::stores::Stores;

/// Passes on the text of what holds now: of all objects that reconcilers read.
///
/// # Errors
/// When nobody takes the text any more.
pub fn render(stores: &Stores, now: Timestamp, pass_on: Sink<'_>) -> fmt::Result {
    render_kind(stores.nodeclaims.iter(), now, pass_on)?;
    render_kind(stores.nodepools.state(), now, pass_on)?;
    render_kind(stores.nodes.iter(), now, pass_on)?;
    render_kind(stores.node_classes.state(), now, pass_on)?;
    render_kind(stores.buffers.state(), now, pass_on)
}

/// Each object is looked at once: they are many, and read from text.
pub(in crate::metrics) fn render_kind<K: Observed>(
    objects: impl IntoIterator<Item = Arc<K>>,
    now: Timestamp,
    pass_on: Sink<'_>,
) -> fmt::Result {
    let kind = KINDS[K::PLACE];
    let age = |since: Timestamp| now.duration_since(since).as_secs_f64().max(0.0);
    let current = format!("operator_{kind}_status_condition_current_status_seconds");
    let count = format!("operator_{kind}_status_condition_count");
    let going = format!("operator_{kind}_termination_current_time_seconds");
    let mut ages = String::new();
    let mut ones = String::new();
    let mut ends = String::new();
    for object in objects {
        let more = object.more_labels();
        for condition in object.said() {
            let own = [
                ("type", condition.type_),
                ("status", condition.status.as_str()),
                ("reason", condition.reason),
            ];
            let labels = named(&*object, &own, &more);
            text::sample(&count, labels.clone(), 1.0, &mut ones);
            text::sample(&current, labels, age(condition.since), &mut ages);
        }
        if let Some(since) = &object.meta().deletion_timestamp {
            text::sample(&going, named(&*object, &[], &more), age(since.0), &mut ends);
        }
    }
    for (name, help, samples) in [
        (
            &current,
            "For how long a condition has had its status",
            &ages,
        ),
        (
            &count,
            "Conditions of objects as they are now; always 1",
            &ones,
        ),
        (&going, "For how long an object has been going", &ends),
    ] {
        pass_on(text::gauge(name, help, samples))?;
    }
    Ok(())
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
