//! Components on their way from registries.
//!
//! Each pull runs beside the reconciler, which never waits for a registry: it is told that the component is on its way, and
//! is called again when it is here or cannot be had.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::policy::OciSource;
use kerf_policy::PolicyDigest;
use kube::Api;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::Semaphore;

use crate::context::Context;
use crate::error::chain;
use crate::oci::{Login, OciError, Pulled, Reference, Registries};
use crate::reconciler::Trigger;

/// The key of a Secret of type kubernetes.io/dockerconfigjson.
const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// The first rest after a pull that failed; it doubles from there.
const RETRY: Duration = Duration::from_secs(10);
/// A registry that was down is asked at least this often.
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Doublings from the one to the other.
const DOUBLINGS_MAX: u32 = 5;
/// Pulls at the same time: after a restart all policies are pulled at once.
const PULLS_MAX: usize = 2;

/// The pulls of all classes.
#[derive(Debug, Clone)]
pub(super) struct Pulls {
    roots: Option<Arc<[u8]>>,
    registries: Arc<OnceLock<Registries>>,
    /// By class and policy.
    all: Arc<Mutex<HashMap<(String, String), Pull>>>,
    trigger: Trigger<EcsNodeClass>,
    /// Each pull holds a component of up to 32 MiB.
    places: Arc<Semaphore>,
    generations: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Pull {
    /// Tells it from earlier ones of the same name, whose end must change nothing.
    generation: u64,
    source: OciSource,
    state: State,
    /// Why the last one failed, and how many did in a row.
    failed: Option<(String, u32)>,
}

#[derive(Debug)]
enum State {
    Running,
    /// Here; its bytes only until the policy host has them.
    Here(PolicyDigest, Option<Arc<Vec<u8>>>),
    Resting {
        until: Instant,
    },
}

/// What there is of a component.
#[derive(Debug)]
pub(super) enum Found {
    /// All of it.
    Bytes(Arc<Vec<u8>>),
    /// It was given to the policy host before.
    Known(PolicyDigest),
    /// It is on its way.
    Coming(String),
    /// It cannot be had for now.
    Failed(String),
}

impl Pulls {
    pub(super) fn new(roots: Option<Arc<[u8]>>, trigger: Trigger<EcsNodeClass>) -> Self {
        Self {
            roots,
            registries: Arc::default(),
            all: Arc::default(),
            trigger,
            places: Arc::new(Semaphore::new(PULLS_MAX)),
            generations: Arc::default(),
        }
    }

    /// What there is of the component of a class's policy now; whatever is missing is fetched from here on.
    pub(super) fn look(
        &self,
        (class, policy): (&str, &str),
        source: &OciSource,
        context: &Context,
        now: Instant,
    ) -> Found {
        let key = (class.to_owned(), policy.to_owned());
        let mut all = self.lock();
        let new = || {
            let generation = self.generations.fetch_add(1, Ordering::Relaxed);
            Pull::new(generation, source, now)
        };
        let pull = all.entry(key.clone()).or_insert_with(new);
        if pull.source != *source {
            *pull = new();
        }
        if matches!(pull.state, State::Resting { until } if until <= now) {
            pull.state = State::Running;
            self.start((key, pull.generation), source.clone(), context);
        }
        pull.found()
    }

    /// The policy host has the bytes: they need no room here any more.
    pub(super) fn taken(&self, class: &str, policy: &str) {
        let key = (class.to_owned(), policy.to_owned());
        if let Some(Pull {
            state: State::Here(_, bytes),
            ..
        }) = self.lock().get_mut(&key)
        {
            *bytes = None;
        }
    }

    /// Forgets one and asks for the look that fetches it anew.
    pub(super) fn forget(&self, class: &str, policy: &str) {
        self.lock().remove(&(class.to_owned(), policy.to_owned()));
        self.trigger.send(&ObjectRef::new(class));
    }

    /// Forgets those of a class that are not in `names`.
    pub(super) fn retain(&self, class: &str, names: &[&str]) {
        self.lock()
            .retain(|(of, policy), _| of != class || names.contains(&policy.as_str()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Pull>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a pull ends, and its end is noted, also by a panic"
    )]
    fn start(
        &self,
        (key, generation): ((String, String), u64),
        source: OciSource,
        context: &Context,
    ) {
        let secrets: Api<Secret> =
            Api::namespaced(context.client.clone(), &context.settings.namespace);
        let own = self.clone();
        let pulling = tokio::spawn(async move {
            // Never closed, so that there is always a place at last.
            let _place = own.places.acquire().await;
            own.pull(&source, &secrets).await
        });
        let pulls = self.clone();
        tokio::spawn(async move {
            let pulled = pulling.await;
            let pulled = pulled.unwrap_or_else(|error| Err(format!("the pull died: {error}")));
            pulls.finish(&key, generation, pulled);
        });
    }

    async fn pull(&self, source: &OciSource, secrets: &Api<Secret>) -> Result<Pulled, String> {
        let told = |error: OciError| chain(&error);
        let (reference, digest) = pinned(source).map_err(told)?;
        let login = match &source.pull_secret {
            Some(name) => Some(login(secrets, name, &reference).await?),
            None => None,
        };
        let registries = self.registries().map_err(told)?;
        registries
            .pull(&reference, &digest, login.as_ref())
            .await
            .map_err(told)
    }

    /// Made when the first component is asked for: most controllers never need it.
    fn registries(&self) -> Result<Registries, OciError> {
        if let Some(known) = self.registries.get() {
            return Ok(known.clone());
        }
        let made = Registries::new(self.roots.as_deref())?;
        Ok(self.registries.get_or_init(|| made).clone())
    }

    fn finish(&self, key: &(String, String), generation: u64, pulled: Result<Pulled, String>) {
        let mut all = self.lock();
        let found = all.get_mut(key);
        if let Some(pull) = found.filter(|it| it.generation == generation) {
            pull.finish(pulled, Instant::now());
        }
        drop(all);
        self.trigger.send(&ObjectRef::new(&key.0));
    }
}

impl Pull {
    fn new(generation: u64, source: &OciSource, now: Instant) -> Self {
        Self {
            generation,
            source: source.clone(),
            state: State::Resting { until: now },
            failed: None,
        }
    }

    fn found(&self) -> Found {
        match (&self.state, &self.failed) {
            (State::Here(_, Some(bytes)), _) => Found::Bytes(Arc::clone(bytes)),
            (State::Here(digest, None), _) => Found::Known(*digest),
            (_, Some((reason, _))) => Found::Failed(reason.clone()),
            (_, None) => {
                Found::Coming(format!("it is being pulled from {}", self.source.reference))
            }
        }
    }

    fn finish(&mut self, pulled: Result<Pulled, String>, now: Instant) {
        match pulled {
            Ok(Pulled { bytes, digest }) => {
                self.state = State::Here(digest, Some(Arc::new(bytes)));
                self.failed = None;
            }
            Err(reason) => {
                let times = self.failed.as_ref().map_or(0, |(_, times)| *times);
                let rest = RETRY * 2_u32.pow(times.min(DOUBLINGS_MAX));
                self.state = State::Resting {
                    until: now + rest.min(RETRY_MAX),
                };
                self.failed = Some((reason, times.saturating_add(1)));
            }
        }
    }
}

/// The artifact and the digest of its manifest, from wherever the source names it.
fn pinned(source: &OciSource) -> Result<(Reference, String), OciError> {
    let reference: Reference = source.reference.parse()?;
    let digest = match (&source.digest, &reference.digest) {
        (Some(one), Some(other)) if one != other => return Err(OciError::TwoDigests),
        (Some(digest), _) | (None, Some(digest)) => digest.clone(),
        (None, None) => return Err(OciError::NoDigest),
    };
    Ok((reference, digest))
}

async fn login(secrets: &Api<Secret>, name: &str, reference: &Reference) -> Result<Login, String> {
    let secret = secrets.get(name).await.map_err(|error| match &error {
        kube::Error::Api(status) if status.is_forbidden() => format!(
            "source.oci.pullSecret: the controller may not read the Secret {name}: list it in the chart's policies.pullSecrets"
        ),
        kube::Error::Api(status) if status.is_not_found() => {
            format!("source.oci.pullSecret: there is no Secret {name} in the controller's namespace")
        }
        _ => format!("source.oci.pullSecret: the Secret {name} cannot be read: {}", chain(&error)),
    })?;
    let text = secret.data.as_ref().and_then(|it| it.get(DOCKER_CONFIG));
    let text = text.ok_or_else(|| {
        format!("source.oci.pullSecret: the Secret {name} has no key {DOCKER_CONFIG}; make it with `kubectl create secret docker-registry`")
    })?;
    let found = Login::in_docker_config(&text.0, reference)
        .map_err(|error| format!("source.oci.pullSecret: Secret {name}: {error}"))?;
    found.ok_or_else(|| {
        format!(
            "source.oci.pullSecret: the Secret {name} has no login for {}",
            reference.host
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(reference: &str, digest: Option<&str>) -> OciSource {
        OciSource {
            reference: reference.to_owned(),
            digest: digest.map(str::to_owned),
            pull_secret: None,
        }
    }

    #[test]
    fn an_artifact_is_pulled_by_digest_or_not_at_all() {
        let (one, other) = (
            format!("sha256:{}", "1".repeat(64)),
            format!("sha256:{}", "2".repeat(64)),
        );
        let named = format!("r.example.com/cheap:v1@{one}");
        let tagged = "r.example.com/cheap:v1";

        assert_eq!(pinned(&source(&named, None)).unwrap().1, one);
        assert_eq!(pinned(&source(tagged, Some(&other))).unwrap().1, other);
        let refused = |it: &OciSource| pinned(it).unwrap_err().to_string();
        assert!(refused(&source(tagged, None)).contains("set source.oci.digest"));
        assert!(refused(&source(&named, Some(&other))).contains("differ"));
    }

    #[test]
    fn a_registry_that_is_down_is_asked_less_and_less_often_and_the_reason_stays() {
        let now = Instant::now();
        let mut pull = Pull::new(0, &source("r.example.com/cheap", None), now);
        let rests = (0..8).map(|_| {
            pull.finish(Err("down".to_owned()), now);
            assert!(matches!(pull.found(), Found::Failed(reason) if reason == "down"));
            match pull.state {
                State::Resting { until } => (until - now).as_secs(),
                _ => 0,
            }
        });
        let rests: Vec<u64> = rests.collect();

        assert_eq!(rests, [10, 20, 40, 80, 160, 300, 300, 300]);
    }
}
