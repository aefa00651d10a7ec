//! Telling pods which node is meant for them: at a measured pace, and only those that still wait when their turn comes.
//!
//! Most pods are bound before. Who asks for the others is somebody who looks at a pod that waits.

use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::event;
use kerf_core::ids::PodUid;
use kerf_core::pod::Pod;
use kube::runtime::events::EventType;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::events::pod_reference;
use crate::pace::Pace;

/// Five a second after a burst of ten (Karpenter: same, and what is beyond is never told there).
const PAUSE: Duration = Duration::from_millis(200);
const BURST: u32 = 10;
/// Nominations that wait for their turn: some three minutes' worth, which is how long nodes take to come.
const WAITING_MAX: usize = 1_024;

/// What a pod is to be told.
#[derive(Debug)]
struct Nomination {
    namespace: Arc<str>,
    name: Arc<str>,
    uid: PodUid,
    note: Arc<str>,
}

/// Takes nominations in.
#[derive(Debug)]
pub struct Nominator(Sender<Nomination>);

/// Tells them.
#[derive(Debug)]
pub struct Teller {
    waiting: Receiver<Nomination>,
    pace: Pace,
}

/// Both ends.
#[must_use]
pub fn channel() -> (Nominator, Teller) {
    let (sender, waiting) = mpsc::channel(WAITING_MAX);
    let pace = Pace::new(PAUSE, BURST);
    (Nominator(sender), Teller { waiting, pace })
}

impl Nominator {
    /// Whether there was room for it; the next plan that has the pod says it again.
    pub(super) fn offer(&self, pod: &Pod, note: &Arc<str>) -> bool {
        let nomination = Nomination {
            namespace: Arc::clone(&pod.namespace),
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
            note: Arc::clone(note),
        };
        self.0.try_send(nomination).is_ok()
    }
}

impl Teller {
    /// Tells until the process ends.
    pub async fn run(mut self, context: Arc<Context>) {
        while let Some(it) = self.waiting.recv().await {
            let is_waiting = || context.cluster.is_waiting(&it.namespace, &it.name, &it.uid);
            // Whoever is bound by now takes nobody's turn.
            if !is_waiting() {
                continue;
            }
            sleep_until(self.pace.due(Instant::now())).await;
            if !is_waiting() {
                continue;
            }
            self.pace.take(Instant::now());
            let reference = pod_reference(&it.namespace, &it.name, &it.uid.text());
            let events = &context.events;
            events
                .publish(EventType::Normal, &reference, event::NOMINATED, &it.note)
                .await;
        }
    }
}
