//! What must outlive a restart and has no object of its own: read before anything acts, written soon after it changed.
//!
//! The ConfigMap is ours, but anyone may have written it: what cannot be read is told and starts empty. Losing all of
//! it costs a few refused calls, never an instance.

mod marks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::memory::{Dropped, LearnedSize, MEMORY_NAME, Memory};
use kerf_api::names::event;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use tokio::time::{MissedTickBehavior, interval};

use crate::api_call::bounded;
use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::patch::FIELD_MANAGER;

/// Writes are at least this far apart: a burst of refusals is one write, and a crash forgets two seconds at most.
const WRITE_PAUSE: Duration = Duration::from_secs(2);

/// The one that reads and writes the ConfigMap.
#[derive(Debug, Default)]
pub struct Keeper {
    was_read: bool,
    written: Option<BTreeMap<String, String>>,
    /// Nothing learns sizes yet; what a version that does has written is kept.
    sizes: Vec<LearnedSize>,
}

impl Keeper {
    /// Reads what a predecessor left. When the API server cannot be asked, [`Self::run`] tries again, and nothing is
    /// written before.
    pub async fn open(context: &Context) -> Self {
        let mut keeper = Self::default();
        keeper.read(context).await;
        keeper
    }

    /// Writes what changed until the process ends.
    pub async fn run(mut self, context: Arc<Context>) {
        let mut ticks = interval(WRITE_PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.was_read {
                self.read(&context).await;
            } else {
                self.write(&context).await;
            }
        }
    }

    async fn read(&mut self, context: &Context) {
        let found = match bounded(api(context).get_opt(MEMORY_NAME)).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "cannot read the ConfigMap {MEMORY_NAME}; tried again soon");
                return;
            }
        };
        self.was_read = true;
        let Some(config_map) = found else { return };
        let (memory, errors) = Memory::read(&config_map, clock::now());
        for error in &errors {
            tell(&config_map, &chain(error), context).await;
        }
        let (marks, strange) = marks::from_memory(&memory.unavailable);
        if strange > 0 {
            let note = format!("{strange} unavailable offerings name nothing that is known");
            tell(&config_map, &note, context).await;
        }
        tracing::info!(
            unavailable = marks.len(),
            pools = memory.registrations.len(),
            "memory of the last run read"
        );
        context.cloud.unavailable().restore(marks);
        context.registrations.restore(memory.registrations);
        self.sizes = memory.sizes;
        self.written = config_map.data;
    }

    async fn write(&mut self, context: &Context) {
        let now = clock::now();
        let memory = self.current(context, now);
        let written = memory.write(&context.settings.namespace, now);
        let Ok((config_map, dropped)) = written.inspect_err(|error| {
            tracing::error!(error = %chain(error), "memory not written");
        }) else {
            return;
        };
        let is_needless = self.written.is_none() && memory == Memory::default();
        if is_needless || self.written == config_map.data {
            return;
        }
        if dropped != Dropped::default() {
            tracing::warn!(
                ?dropped,
                "the ConfigMap {MEMORY_NAME} is full: the least useful was left out"
            );
        }
        if store(&config_map, context).await {
            self.written = config_map.data;
        }
    }

    fn current(&self, context: &Context, now: Timestamp) -> Memory {
        let pools = context.stores.nodepools.state();
        let alive: BTreeSet<String> = pools.iter().filter_map(|pool| pool.uid()).collect();
        let mut registrations = context.registrations.results();
        registrations.retain(|pool, _| alive.contains(pool));
        Memory {
            sizes: self.sizes.clone(),
            unavailable: marks::to_memory(context.cloud.unavailable().snapshot(now)),
            registrations,
        }
    }
}

/// Server-side apply: the keys are ours, whoever wrote them last; other keys stay.
async fn store(config_map: &ConfigMap, context: &Context) -> bool {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let api = api(context);
    let stored = bounded(api.patch(MEMORY_NAME, &params, &Patch::Apply(config_map))).await;
    if let Err(error) = &stored {
        tracing::warn!(error = %chain(error), "cannot write the ConfigMap {MEMORY_NAME}; tried again soon");
    }
    stored.is_ok()
}

fn api(context: &Context) -> Api<ConfigMap> {
    Api::namespaced(context.client.clone(), &context.settings.namespace)
}

async fn tell(config_map: &ConfigMap, note: &str, context: &Context) {
    tracing::warn!("{note}");
    context
        .events
        .warning(config_map, event::MEMORY_UNREADABLE, note)
        .await;
}
