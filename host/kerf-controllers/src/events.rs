//! Kubernetes events: what happened, on the object that it happened to.
//!
//! An event is a courtesy. It never fails a reconcile, and nothing waits for the API server to take it: events are
//! queued, and written by a task of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::events::EventType;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::api_call::bounded;
use crate::clock;
use crate::hash_of::hash_of;
use crate::patch::FIELD_MANAGER;

/// The API server refuses longer notes.
const NOTE_MAX_BYTES: usize = 1024;
/// The API server refuses longer names; what we append to the object's is shorter than the rest.
const OBJECT_NAME_MAX_BYTES: usize = 200;
/// An equal event is counted at once but written this much later at the earliest: a drain that is held up says so every
/// second, for every pod (Karpenter: two minutes, without a count).
const REPEAT_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// After this long the same thing is news again.
const FORGET_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// Events that are remembered, a quarter of a kilobyte each: what repeats itself does so for some hundred objects at a time.
/// Beyond that those that were not seen for a minute are forgotten, or else all, which costs no more than repeated events.
const TOLD_MAX: usize = 4_096;

/// Events that wait to be written. Whoever tells more than the API server takes waits here, for the sake of memory.
const QUEUE_MAX: usize = 4_096;
/// Events that are written at the same time: enough to hide the API server's latency, too few to be in others' way.
const CONCURRENCY: usize = 4;

/// Publishes events in kerf's name. Equal events, text and all, become one with a count; another text is another event.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Job>,
    instance: String,
    told: Arc<Mutex<HashMap<u64, Told>>>,
}

/// Writes what [`Events`] publish.
pub struct EventWriter {
    client: Client,
    queue: mpsc::Receiver<Job>,
    told: Arc<Mutex<HashMap<u64, Told>>>,
}

/// One write.
#[derive(Debug)]
struct Job {
    key: u64,
    namespace: String,
    call: Call,
}

#[derive(Debug)]
enum Call {
    Create(Box<Event>),
    Count { name: String, series: EventSeries },
}

/// An event that was published.
#[derive(Debug, Clone)]
struct Told {
    /// The name of the object that the API server has.
    name: String,
    count: i32,
    seen_at: Timestamp,
    written_at: Timestamp,
}

/// What an event needs from the API server.
#[derive(Debug, PartialEq, Eq)]
enum Write {
    New { name: String },
    Again { name: String, count: i32 },
    Nothing,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// `instance` tells apart the replicas. Events are written while the writer runs.
    #[must_use]
    pub fn new(client: Client, instance: String) -> (Self, EventWriter) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let told = Arc::default();
        let writer = EventWriter {
            client,
            queue,
            told: Arc::clone(&told),
        };
        let events = Self {
            queue: sender,
            instance,
            told,
        };
        (events, writer)
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
        if let Some(job) = self.job(type_, object, reason, note) {
            // The writer ends with the process only.
            let _ = self.queue.send(job).await;
        }
    }

    /// As [`Self::publish`], for whoever may not wait: while too many events wait to be written, this one is left out.
    /// Whether it was not.
    pub fn offer(
        &self,
        type_: EventType,
        object: &ObjectReference,
        reason: &str,
        note: &str,
    ) -> bool {
        let Some(job) = self.job(type_, object, reason, note) else {
            return true;
        };
        let Err(TrySendError::Full(job) | TrySendError::Closed(job)) = self.queue.try_send(job)
        else {
            return true;
        };
        // The next one is new.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.remove(&job.key);
        false
    }

    /// What is to be written of an event now, if anything.
    fn job(
        &self,
        type_: EventType,
        object: &ObjectReference,
        reason: &str,
        note: &str,
    ) -> Option<Job> {
        let now = clock::now();
        let note = shorten(note, NOTE_MAX_BYTES);
        let key = key(object, reason, &note);
        let write = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            decide(&mut told, key, object, now)
        };
        let call = match write {
            Write::Nothing => return None,
            Write::New { name } => {
                let event = self.event(name, type_, object, (reason, note), now);
                Call::Create(Box::new(event))
            }
            Write::Again { name, count } => {
                let series = EventSeries {
                    count,
                    last_observed_time: MicroTime(now),
                };
                Call::Count { name, series }
            }
        };
        let namespace = object.namespace.as_deref().unwrap_or("default").to_owned();
        Some(Job {
            key,
            namespace,
            call,
        })
    }

    fn event(
        &self,
        name: String,
        type_: EventType,
        object: &ObjectReference,
        (reason, note): (&str, String),
        now: Timestamp,
    ) -> Event {
        let type_ = match type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: object.namespace.clone(),
                ..ObjectMeta::default()
            },
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            action: Some(reason.to_owned()),
            note: Some(note),
            regarding: Some(object.clone()),
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(FIELD_MANAGER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

impl std::fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventWriter").finish_non_exhaustive()
    }
}

impl EventWriter {
    /// Writes events until the process ends.
    pub async fn run(self) {
        let Self {
            client,
            queue,
            told,
        } = self;
        let jobs = stream::unfold(queue, |mut queue| async {
            queue.recv().await.map(|job| (job, queue))
        });
        jobs.for_each_concurrent(CONCURRENCY, |job| {
            let (client, told) = (client.clone(), Arc::clone(&told));
            async move {
                if let Err(error) = write(&job, client).await {
                    // It may be gone (the API server keeps events for an hour): the next one is new.
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    told.remove(&job.key);
                    tracing::debug!(call = ?job.call, %error, "event not published");
                }
            }
        })
        .await;
    }
}

async fn write(job: &Job, client: Client) -> Result<(), kube::Error> {
    let events: Api<Event> = Api::namespaced(client, &job.namespace);
    match &job.call {
        Call::Create(event) => {
            let params = PostParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            bounded(events.create(&params, event)).await.map(drop)
        }
        Call::Count { name, series } => {
            let patch = Patch::Merge(json!({ "series": series }));
            let params = PatchParams::apply(FIELD_MANAGER);
            bounded(events.patch(name, &params, &patch)).await.map(drop)
        }
    }
}

/// Equal events have the same key: same object, reason and text.
fn key(object: &ObjectReference, reason: &str, note: &str) -> u64 {
    let object = (&object.kind, &object.namespace, &object.name, &object.uid);
    hash_of(&(object, reason, note))
}

/// Counts the event and says what is to be written of it. Pure.
fn decide(
    told: &mut HashMap<u64, Told>,
    key: u64,
    object: &ObjectReference,
    now: Timestamp,
) -> Write {
    let is_old = |it: &Told| now.duration_since(it.seen_at) >= FORGET_AFTER;
    if let Some(known) = told.get_mut(&key).filter(|it| !is_old(it)) {
        known.count = known.count.saturating_add(1);
        known.seen_at = now;
        if now.duration_since(known.written_at) < REPEAT_AFTER {
            return Write::Nothing;
        }
        known.written_at = now;
        return Write::Again {
            name: known.name.clone(),
            count: known.count,
        };
    }
    if told.len() >= TOLD_MAX {
        told.retain(|_, it| now.duration_since(it.seen_at) < REPEAT_AFTER);
    }
    if told.len() >= TOLD_MAX {
        told.clear();
    }
    let base = object.name.as_deref().unwrap_or(FIELD_MANAGER);
    let base = cut(base, OBJECT_NAME_MAX_BYTES);
    // The key too: two events on one object may fall into the same nanosecond.
    let name = format!("{base}.{:x}.{key:x}", now.as_nanosecond());
    let new = Told {
        name: name.clone(),
        count: 1,
        seen_at: now,
        written_at: now,
    };
    told.insert(key, new);
    Write::New { name }
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

fn shorten(note: &str, bytes_max: usize) -> String {
    if note.len() <= bytes_max {
        return note.to_owned();
    }
    format!("{}…", cut(note, bytes_max - '…'.len_utf8()))
}

/// As much of the text as fits, up to a whole character.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut ends = (0..=bytes_max.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn is_new(write: &Write) -> bool {
        matches!(write, Write::New { .. })
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = shorten(&"节".repeat(NOTE_MAX_BYTES), NOTE_MAX_BYTES);

        assert!(note.len() <= NOTE_MAX_BYTES);
        assert!(note.ends_with("节…"));
    }

    #[test]
    fn a_second_reason_for_the_same_trouble_on_the_same_object_is_an_event_of_its_own() {
        let (pod, mut told) = (pod_reference("default", "web", "u-1"), HashMap::new());
        let mut say = |note| decide(&mut told, key(&pod, "FailedDraining", note), &pod, time(0));

        assert!(is_new(&say("budget a allows nothing")));
        assert!(is_new(&say("the pod has two budgets")));
        assert_eq!(say("budget a allows nothing"), Write::Nothing);
    }

    #[test]
    fn an_equal_event_is_counted_at_once_and_written_a_minute_later() {
        let (pod, mut told) = (pod_reference("default", "web", "u-1"), HashMap::new());
        let mut say = |secs| decide(&mut told, 1, &pod, time(secs));

        assert!(is_new(&say(0)));
        assert_eq!(say(30), Write::Nothing);
        let Write::Again { count, .. } = say(60) else {
            panic!("not written again");
        };
        assert_eq!(count, 3);
        assert_eq!(say(119), Write::Nothing);
        assert!(is_new(&say(119 + 600)));
    }

    #[test]
    fn what_is_remembered_stays_small_and_names_stay_short() {
        let (pod, mut told) = (
            pod_reference("default", &"p".repeat(300), "u-1"),
            HashMap::new(),
        );
        for key in 0..=TOLD_MAX as u64 {
            let Write::New { name } = decide(&mut told, key, &pod, time(0)) else {
                panic!("not new");
            };
            assert!(name.len() <= 253, "{name}");
        }

        assert!(told.len() <= TOLD_MAX);
    }
}
