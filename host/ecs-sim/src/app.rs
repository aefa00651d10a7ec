//! One running simulator: the cloud's state and what works on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::calls::Calls;
use crate::catalog::fingerprint;
use crate::clock::Tasks;
use crate::faults::Faults;
use crate::machine_room::MachineRoom;
use crate::state::{Effect, State};

#[derive(Debug)]
pub(crate) struct App {
    /// Where clients reach the server, without a slash at the end.
    pub(crate) url: String,
    pub(crate) tasks: Tasks,
    pub(crate) machine_room: MachineRoom,
    state: Mutex<State>,
    faults: Mutex<Faults>,
    calls: Mutex<Calls>,
    requests: AtomicU64,
}

impl App {
    pub(crate) fn new(url: String, state: State, machine_room: MachineRoom) -> Self {
        Self {
            url,
            tasks: Tasks::default(),
            machine_room,
            state: Mutex::new(state),
            faults: Mutex::default(),
            calls: Mutex::default(),
            requests: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where both are needed, the state is locked first.
    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request id in the form of the real ones.
    pub(crate) fn next_request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed).to_string();
        let (a, b) = (
            fingerprint(&["request", &number]),
            fingerprint(&[&number, "request"]),
        );
        let hex = format!("{a:016X}{b:016X}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// Starts what the last action left to be done.
    pub(crate) fn start_effects(self: &Arc<Self>) {
        let effects = std::mem::take(&mut self.state().effects);
        for effect in effects {
            let app = Arc::clone(self);
            match effect {
                Effect::Boot(id) => self.tasks.spawn(async move { app.live(&id).await }),
                Effect::Release(id) => self.tasks.spawn(async move { app.release(&id).await }),
            }
        }
    }
}
