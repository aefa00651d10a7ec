//! Kubernetes events: what happened, on the object that it happened to.
//!
//! An event is a courtesy. It never fails a reconcile, and it never waits long.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};

use crate::api_call::bounded;

/// The API server refuses longer notes.
const NOTE_MAX_BYTES: usize = 1024;

/// Publishes events in kerf's name. Equal events within minutes become one with a count.
#[derive(Clone)]
pub struct Events {
    recorder: Arc<Recorder>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// `instance` tells apart the replicas.
    #[must_use]
    pub fn new(client: Client, instance: String) -> Self {
        let reporter = Reporter {
            controller: crate::patch::FIELD_MANAGER.to_owned(),
            instance: Some(instance),
        };
        Self {
            recorder: Arc::new(Recorder::new(client, reporter)),
        }
    }

    /// Something went as it should.
    pub async fn normal<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &str,
        note: &str,
    ) {
        self.publish(EventType::Normal, &object.object_ref(&()), reason, note)
            .await;
    }

    /// Something needs a look.
    pub async fn warning<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &str,
        note: &str,
    ) {
        self.publish(EventType::Warning, &object.object_ref(&()), reason, note)
            .await;
    }

    /// As the others, on an object that is only known by reference.
    pub async fn publish(
        &self,
        type_: EventType,
        object: &ObjectReference,
        reason: &str,
        note: &str,
    ) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(shorten(note)),
            action: reason.to_owned(),
            secondary: None,
        };
        if let Err(error) = bounded(self.recorder.publish(&event, object)).await {
            tracing::debug!(%reason, object = object.name.as_deref().unwrap_or_default(), %error, "event not published");
        }
    }
}

/// A pod that is known by its names.
#[must_use]
pub fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// When the object was created; the epoch while the API server has not said.
#[must_use]
pub fn created_at<K: Resource<DynamicType = ()>>(object: &K) -> jiff::Timestamp {
    object
        .creation_timestamp()
        .map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0)
}

fn shorten(note: &str) -> String {
    if note.len() <= NOTE_MAX_BYTES {
        return note.to_owned();
    }
    let end = (0..=NOTE_MAX_BYTES - '…'.len_utf8())
        .rev()
        .find(|end| note.is_char_boundary(*end));
    format!("{}…", &note[..end.unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = shorten(&"节".repeat(NOTE_MAX_BYTES));

        assert!(note.len() <= NOTE_MAX_BYTES);
        assert!(note.ends_with("节…"));
    }
}
