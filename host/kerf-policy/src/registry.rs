//! All policies of all NodeClasses, and the swap from one version to the next.
//!
//! A swap is: verify, compile, describe, validate the configuration, make a trial call, and only then switch. Readers
//! take the chain that is current and keep it for their decision; they never wait for a swap.

use crate::catalogs::Catalogs;
use crate::chain::{Chain, Memos};
use crate::digest::PolicyDigest;
use crate::engine::Engine;
use crate::error::LoadError;
use crate::hook::Hook;
use crate::link::{Link, Refused, Serving};
use crate::listener::Listener;
use crate::pack::unpack;
use crate::policy::{Metadata, Policy};
use crate::recorder::Recorder;
use crate::signature::{self, PolicyKey};
use crate::smoke;
use crate::spec::{PolicySpec, PolicyStatus};
use crate::stage::{Obstacle, Stage};
use crate::wasi::Wasi;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Instant;

/// Thread-safe; reading is a shared lock for the time of one pointer copy.
#[derive(Debug)]
pub struct Registry {
    engine: Engine,
    memos: Arc<Memos>,
    catalogs: Catalogs,
    /// By name of the NodeClass.
    chains: RwLock<BTreeMap<String, Arc<Chain>>>,
    /// One swap at a time: compiling uses a core, and the later of two swaps must win.
    swap: Mutex<Compiled>,
    allows_unpinned_bootstrap: bool,
    keys: Vec<PolicyKey>,
    listener: Option<Listener>,
    recorder: Option<Arc<Recorder>>,
}

/// Components that some chain still uses, so that the same bytes in two NodeClasses are compiled once.
type Compiled = HashMap<(PolicyDigest, Hook, Wasi), Weak<Policy>>;

/// What serves after a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub digest: PolicyDigest,
    pub metadata: Metadata,
    /// False when exactly this served before.
    pub is_new: bool,
}

impl Registry {
    /// An empty registry.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            memos: Arc::default(),
            catalogs: Catalogs::default(),
            chains: RwLock::default(),
            swap: Mutex::default(),
            allows_unpinned_bootstrap: false,
            keys: Vec::new(),
            listener: None,
            recorder: None,
        }
    }

    /// The same, but BootstrapUserData policies need no digest. Whoever can write a ConfigMap then gets root on every node.
    #[must_use]
    pub fn allowing_unpinned_bootstrap(mut self) -> Self {
        self.allows_unpinned_bootstrap = true;
        self
    }

    /// The same, and what one of these keys signed needs no digest. A signature by another key is refused.
    #[must_use]
    pub fn trusting(mut self, keys: Vec<PolicyKey>) -> Self {
        self.keys = keys;
        self
    }

    /// The same, and the listener hears which class has a policy that begins to fail or answers again.
    #[must_use]
    pub fn telling(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The same, and the recorder keeps some of the questions.
    #[must_use]
    pub fn recording(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// What keeps some of the questions, if anything does.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Makes `bytes`, a component or one packed with zstd or gzip, serve as `spec` of `node_class`. On failure what served before goes on serving, with the new
    /// settings that concern only the host (order, mode, failure policy, limits, pools), and the status says why.
    ///
    /// Takes 50 to 200 ms for a Rust policy and seconds for interpreters: call it on a thread that may block.
    pub fn update(
        &self,
        node_class: &str,
        spec: PolicySpec,
        bytes: &[u8],
    ) -> Result<Loaded, LoadError> {
        let mut compiled = self.lock_swap();
        let source = PolicyDigest::of(bytes);
        if let Some(known) = self.known(node_class, &spec, source) {
            return known;
        }
        let old = self.serving(node_class, &spec.name);
        let outcome = self.load(&mut compiled, (node_class, &spec), bytes, old.as_ref());
        let link = match &outcome {
            Ok((serving, _)) => Link {
                source: Some(source),
                serving: Some(Arc::clone(serving)),
                obstacle: None,
                refused: None,
                spec,
            },
            Err(error) => Link {
                source: None,
                serving: old,
                obstacle: Some(Obstacle::of(error)),
                refused: Refused::new(&spec, source, error),
                spec,
            },
        };
        self.put(node_class, link);
        compiled.retain(|_, policy| policy.strong_count() > 0);
        outcome.map(|(_, loaded)| loaded)
    }

    /// As `update` with a source that it was given before, whose bytes need not be had again. False when they must: another
    /// entry asks for something else of them.
    pub fn renew(&self, node_class: &str, spec: &PolicySpec, source: PolicyDigest) -> bool {
        let _one_at_a_time = self.lock_swap();
        self.known(node_class, spec, source).is_some()
    }

    /// Notes that the source of a policy could not be had; what served before goes on serving.
    pub fn fail(&self, node_class: &str, spec: PolicySpec, reason: &str) {
        self.miss(node_class, spec, reason, false);
    }

    /// Notes that the source of a policy is on its way; what served before goes on serving.
    pub fn wait(&self, node_class: &str, spec: PolicySpec, reason: &str) {
        self.miss(node_class, spec, reason, true);
    }

    fn miss(&self, node_class: &str, spec: PolicySpec, reason: &str, is_wait: bool) {
        let _one_at_a_time = self.lock_swap();
        let link = Link {
            source: None,
            serving: self.serving(node_class, &spec.name),
            obstacle: Some(Obstacle {
                misses: Stage::Fetched,
                reason: reason.to_owned(),
                is_wait,
            }),
            refused: None,
            spec,
        };
        self.put(node_class, link);
    }

    /// What came of this source and an entry that asks for the same before: neither has to be tried again.
    fn known(
        &self,
        node_class: &str,
        spec: &PolicySpec,
        source: PolicyDigest,
    ) -> Option<Result<Loaded, LoadError>> {
        let link = self.find(node_class, &spec.name)?;
        let (source, serving, refused, outcome) = match link.serves(spec, source) {
            Some((serving, loaded)) => (Some(source), Some(serving), None, Ok(loaded)),
            None => {
                let refused = link.refused.clone().filter(|it| it.is_same(spec, source))?;
                let error = refused.error.clone();
                (None, link.serving.clone(), Some(refused), Err(error))
            }
        };
        let link = Link {
            spec: spec.clone(),
            source,
            serving,
            obstacle: outcome.as_ref().err().map(Obstacle::of),
            refused,
        };
        self.put(node_class, link);
        Some(outcome)
    }

    fn serving(&self, node_class: &str, name: &str) -> Option<Arc<Serving>> {
        self.find(node_class, name)?.serving.clone()
    }

    /// Drops the policies of a NodeClass that are not in `names`.
    pub fn retain(&self, node_class: &str, names: &[&str]) {
        let _one_at_a_time = self.lock_swap();
        let chain = self.chain(node_class);
        let kept: Vec<_> = chain
            .links()
            .iter()
            .filter(|link| names.contains(&link.spec.name.as_str()))
            .cloned()
            .collect();
        if kept.len() != chain.links().len() {
            self.replace(node_class, kept);
        }
    }

    /// Drops all policies of a NodeClass.
    pub fn remove(&self, node_class: &str) {
        self.retain(node_class, &[]);
    }

    /// The policies of a NodeClass as they are now; an empty chain when there are none.
    pub fn chain(&self, node_class: &str) -> Arc<Chain> {
        let chains = self.chains.read().unwrap_or_else(PoisonError::into_inner);
        chains.get(node_class).cloned().unwrap_or_default()
    }

    /// The state of each policy of a NodeClass, in the order in which they are asked.
    pub fn statuses(&self, node_class: &str, now: Instant) -> Vec<PolicyStatus> {
        self.chain(node_class).statuses(now)
    }

    pub(crate) fn catalogs(&self) -> &Catalogs {
        &self.catalogs
    }

    fn load(
        &self,
        compiled: &mut Compiled,
        (node_class, spec): (&str, &PolicySpec),
        bytes: &[u8],
        old: Option<&Arc<Serving>>,
    ) -> Result<(Arc<Serving>, Loaded), LoadError> {
        let bytes = &*unpack(bytes)?;
        let is_signed = self.check_signature(spec, bytes)?;
        if spec.hook == Hook::BootstrapUserData
            && spec.digest.is_none()
            && !spec.has_pinned_source
            && !is_signed
            && !self.allows_unpinned_bootstrap
        {
            return Err(LoadError::Unpinned {
                found: PolicyDigest::of(bytes),
            });
        }
        let policy = self.compile(compiled, spec, bytes)?;
        let config = config_text(spec, &policy);
        let same = old.filter(|old| Arc::ptr_eq(&old.policy, &policy) && old.config == config);
        let loaded = Loaded {
            digest: policy.digest(),
            metadata: policy.metadata().clone(),
            is_new: same.is_none(),
        };
        if let Some(same) = same {
            return Ok((Arc::clone(same), loaded));
        }
        check_config(&policy, &config, spec)?;
        smoke::call(&policy, &config, &spec.limits).map_err(LoadError::Smoke)?;
        let listener = self.listener.clone();
        let listener = listener.map(|it| (it, node_class.to_owned()));
        Ok((
            Arc::new(Serving::new(
                policy,
                config,
                listener,
                self.recorder.clone(),
            )),
            loaded,
        ))
    }

    /// Whether a key that is trusted signed the component. Without any key signatures are not looked at.
    fn check_signature(&self, spec: &PolicySpec, bytes: &[u8]) -> Result<bool, LoadError> {
        let Some(signature) = spec.signature.as_ref().filter(|_| !self.keys.is_empty()) else {
            return Ok(false);
        };
        signature::verify(&self.keys, bytes, signature).map(|()| true)
    }

    fn compile(
        &self,
        compiled: &mut Compiled,
        spec: &PolicySpec,
        bytes: &[u8],
    ) -> Result<Arc<Policy>, LoadError> {
        let key = (PolicyDigest::of(bytes), spec.hook, spec.wasi);
        let is_pinned_to_another = spec.digest.is_some_and(|pin| pin != key.0);
        if let Some(policy) = compiled
            .get(&key)
            .and_then(Weak::upgrade)
            .filter(|_| !is_pinned_to_another)
        {
            return Ok(policy);
        }
        let policy = Policy::load_with(&self.engine, bytes, spec.hook, spec.digest, spec.wasi)?;
        let policy = Arc::new(policy);
        compiled.insert(key, Arc::downgrade(&policy));
        Ok(policy)
    }

    fn find(&self, node_class: &str, name: &str) -> Option<Arc<Link>> {
        self.chain(node_class)
            .links()
            .iter()
            .find(|link| link.spec.name == name)
            .cloned()
    }

    /// Under `swap`: nobody else changes the chain between reading and writing it.
    fn put(&self, node_class: &str, link: Link) {
        let mut links = self.chain(node_class).links().to_vec();
        links.retain(|other| other.spec.name != link.spec.name);
        links.push(Arc::new(link));
        self.replace(node_class, links);
    }

    fn replace(&self, node_class: &str, links: Vec<Arc<Link>>) {
        let mut chains = self.chains.write().unwrap_or_else(PoisonError::into_inner);
        if links.is_empty() {
            chains.remove(node_class);
        } else {
            chains.insert(
                node_class.to_owned(),
                Arc::new(Chain::new(links, Arc::clone(&self.memos))),
            );
        }
    }

    fn lock_swap(&self) -> MutexGuard<'_, Compiled> {
        self.swap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config_text(spec: &PolicySpec, policy: &Policy) -> String {
    spec.config
        .as_ref()
        .unwrap_or(&policy.metadata().default_config)
        .to_string()
}

fn check_config(policy: &Policy, config: &str, spec: &PolicySpec) -> Result<(), LoadError> {
    let errors = policy
        .validate_config(config, &spec.limits)
        .map_err(LoadError::Validate)?;
    if errors.is_empty() {
        return Ok(());
    }
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    Err(LoadError::Config(messages.join("; ")))
}
