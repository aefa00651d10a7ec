//! Leader election by a Lease: at most one controller acts at a time.
//!
//! Expiry is judged by how long *we* have seen the lease unchanged, never by the other machine's clock
//! (client-go: same). Who loses the lease stops the whole process: a stale leader must not launch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kerf_core::sabotage::{self, Sabotage};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::api_call::bounded_by;

/// A holder that did not renew for this long has lost the lease (controller-runtime: same).
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// The holder gives up when it could not renew for this long: well before another may take over.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// No renewal takes longer than this, the wait for its turn included: shorter than the deadline.
const CALL_MAX: Duration = Duration::from_secs(8);
/// How often the lease is renewed or looked at (controller-runtime: same).
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Whether this process may act, for those who are about to do what must not be done twice.
///
/// A process that was frozen or starved for longer than its lease finds out by its next renewal; what it had begun goes on
/// at the same moment. So the last step before a launch looks here.
#[derive(Debug, Default)]
pub struct Leash(Mutex<Hold>);

#[derive(Debug, Clone, Copy, Default)]
enum Hold {
    /// No lease is needed.
    #[default]
    Alone,
    /// The renewal that was asked for then succeeded.
    Since(tokio::time::Instant),
    /// The lease is not ours, or we are giving it back.
    Not,
}

impl Leash {
    /// True while nobody else can hold the lease.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held_at(tokio::time::Instant::now())
    }

    fn is_held_at(&self, now: tokio::time::Instant) -> bool {
        if sabotage::is_on(Sabotage::StaleLeaderLaunches) {
            return true;
        }
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Hold::Alone => true,
            Hold::Since(renewed_at) => now.duration_since(renewed_at) < LEASE_DURATION,
            Hold::Not => false,
        }
    }

    /// Nothing more is launched from now on.
    pub fn let_go(&self) {
        self.set(Hold::Not);
    }

    fn set(&self, hold: Hold) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = hold;
    }
}

/// The lease that this process competes for.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    leash: Arc<Leash>,
    seen: Option<Seen>,
}

/// A foreign holder's lease, and since when it has not changed.
#[derive(Debug)]
struct Seen {
    resource_version: Option<String>,
    since: tokio::time::Instant,
}

impl Election {
    /// `identity` must differ between processes: a restart is another holder. `leash` says from now on whether the lease
    /// is held.
    #[must_use]
    pub fn new(api: Api<Lease>, name: String, identity: String, leash: Arc<Leash>) -> Self {
        leash.let_go();
        Self {
            api,
            name,
            identity,
            leash,
            seen: None,
        }
    }

    /// Waits until this process holds the lease.
    pub async fn acquire(&mut self) {
        let mut ticks = tokio::time::interval(RETRY_PERIOD);
        loop {
            ticks.tick().await;
            match self.try_acquire().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(lease = %self.name, %error, "cannot take part in the leader election");
                }
            }
        }
    }

    /// Renews until that failed for [`RENEW_DEADLINE`] or another process holds the lease; then returns.
    pub async fn hold(&mut self) {
        let mut ticks = tokio::time::interval(RETRY_PERIOD);
        let mut renewed_at = tokio::time::Instant::now();
        while renewed_at.elapsed() < RENEW_DEADLINE {
            ticks.tick().await;
            match self.try_acquire().await {
                _ if sabotage::is_on(Sabotage::StaleLeaderLaunches) => {
                    renewed_at = tokio::time::Instant::now();
                }
                Ok(true) => renewed_at = tokio::time::Instant::now(),
                Ok(false) => return,
                Err(error) => tracing::warn!(lease = %self.name, %error, "cannot renew the lease"),
            }
        }
    }

    /// Gives the lease back, so that a standby takes over at once.
    ///
    /// # Errors
    /// When the API server refuses; the lease then runs out by itself.
    pub async fn release(&mut self) -> Result<(), kube::Error> {
        self.leash.let_go();
        let Some(lease) = bounded_by(CALL_MAX, self.api.get_opt(&self.name)).await? else {
            return Ok(());
        };
        if !self.is_mine(&lease) {
            return Ok(());
        }
        self.patch(&lease, json!({"holderIdentity": null}))
            .await
            .map(drop)
    }

    async fn try_acquire(&mut self) -> Result<bool, kube::Error> {
        // Others count from when they see the renewal, which is later.
        let asked_at = tokio::time::Instant::now();
        let is_held = self.write_lease().await?;
        self.leash.set(if is_held {
            Hold::Since(asked_at)
        } else {
            Hold::Not
        });
        Ok(is_held)
    }

    async fn write_lease(&mut self) -> Result<bool, kube::Error> {
        let now = crate::clock::now();
        let Some(lease) = bounded_by(CALL_MAX, self.api.get_opt(&self.name)).await? else {
            let lease = self.first_lease(now);
            return written(
                bounded_by(CALL_MAX, self.api.create(&PostParams::default(), &lease)).await,
            );
        };
        let is_mine = self.is_mine(&lease);
        if !is_mine && !self.may_take(&lease) {
            return Ok(false);
        }
        let mut spec = json!({
            "holderIdentity": self.identity,
            "renewTime": MicroTime(now),
            "leaseDurationSeconds": lease_duration_secs(),
        });
        if !is_mine {
            let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
            spec["acquireTime"] = json!(MicroTime(now));
            spec["leaseTransitions"] = json!(transitions.unwrap_or_default().saturating_add(1));
        }
        written(self.patch(&lease, spec).await)
    }

    /// The resourceVersion that was read goes along: of two that try, the API server lets one through. A patch, because
    /// the chart grants no update.
    async fn patch(&self, lease: &Lease, spec: serde_json::Value) -> Result<Lease, kube::Error> {
        let version = &lease.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let params = PatchParams::default();
        bounded_by(
            CALL_MAX,
            self.api.patch(&self.name, &params, &Patch::Merge(patch)),
        )
        .await
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        let holder = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref());
        holder == Some(self.identity.as_str())
    }

    /// True if nobody holds the lease, or its holder has not renewed for as long as it promised to.
    fn may_take(&mut self, lease: &Lease) -> bool {
        let spec = lease.spec.as_ref();
        let holder = spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default();
        if holder.is_empty() {
            return true;
        }
        let promised = spec
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or_else(lease_duration_secs);
        let promised = Duration::from_secs(u64::try_from(promised).unwrap_or_default());
        let resource_version = lease.metadata.resource_version.clone();
        match &self.seen {
            Some(seen) if seen.resource_version == resource_version => {
                seen.since.elapsed() > promised
            }
            _ => {
                self.seen = Some(Seen {
                    resource_version,
                    since: tokio::time::Instant::now(),
                });
                false
            }
        }
    }

    fn first_lease(&self, now: Timestamp) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                acquire_time: Some(MicroTime(now)),
                renew_time: Some(MicroTime(now)),
                lease_duration_seconds: Some(lease_duration_secs()),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn lease_duration_secs() -> i32 {
    i32::try_from(LEASE_DURATION.as_secs()).unwrap_or(i32::MAX)
}

/// A conflict means that another process was faster.
fn written<T>(result: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_slept_through_the_lease_does_not_hold_it_when_it_wakes() {
        let leash = Leash::default();
        let renewed_at = tokio::time::Instant::now();
        assert!(leash.is_held(), "a process that needs no lease may act");

        leash.set(Hold::Since(renewed_at));
        assert!(leash.is_held_at(renewed_at + LEASE_DURATION - Duration::from_millis(1)));
        assert!(!leash.is_held_at(renewed_at + LEASE_DURATION));

        leash.let_go();
        assert!(
            !leash.is_held_at(renewed_at),
            "who gives it back launches nothing more"
        );
    }
}
