//! Objects as the API server last told them, kept as squeezed text.
//!
//! A NodeClaim with its labels and conditions is 15 KB as an object and 3 KB as text, most of which stands in the claim
//! before it as well: squeezed against that pattern, some hundred bytes are left. An object is read anew for each look
//! at it, which takes some ten microseconds; who looks at all of them looks at one after the other.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};

use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use memchr::memmem::Finder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::squeezed::{Press, Squeezed};
use crate::watch::Watched;

mod squeezed;

/// What is kept of a kind without namespaces. Clones look at the same objects.
pub struct Kept<K: Watched> {
    objects: Arc<RwLock<Objects>>,
    words: Arc<Words>,
    kind: PhantomData<fn() -> K>,
}

/// What is looked for in all texts every second. Whether a text has it is found out once, when it is kept.
struct Words(Vec<Finder<'static>>);

impl Words {
    /// Of the first eight; others are looked for in the texts each time.
    fn new(words: &[&str]) -> Self {
        let words = words.iter().take(u8::BITS as usize);
        Self(words.map(|word| Finder::new(word).into_owned()).collect())
    }

    fn said(&self, text: &[u8]) -> u8 {
        self.bits(|finder| finder.find(text).is_some())
    }

    /// The bits of all these; none when one is not known.
    fn of(&self, words: &[&str]) -> Option<u8> {
        let is = |finder: &Finder<'_>, word: &str| finder.needle() == word.as_bytes();
        let is_known = |word: &&str| self.0.iter().any(|it| is(it, word));
        let is_wanted = |finder: &Finder<'_>| words.iter().any(|it| is(finder, it));
        words.iter().all(is_known).then(|| self.bits(is_wanted))
    }

    fn bits(&self, is_set: impl Fn(&Finder<'_>) -> bool) -> u8 {
        let finders = self.0.iter().rev();
        finders.fold(0, |bits, finder| (bits << 1) | u8::from(is_set(finder)))
    }
}

type ByName = BTreeMap<Box<str>, Entry>;

struct Entry {
    squeezed: Arc<Squeezed>,
    /// Which of the [`Words`] its text has, one bit for each.
    says: u8,
    /// None where the API server's versions are not numbers.
    version: Option<u64>,
}

#[derive(Default)]
struct Objects {
    by_name: ByName,
    /// Versions that we have written and that no watch has shown yet.
    written: BTreeMap<Box<str>, u64>,
    changes: u64,
}

impl<K: Watched> Clone for Kept<K> {
    fn clone(&self) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
            words: Arc::clone(&self.words),
            kind: PhantomData,
        }
    }
}

impl<K: Watched> Debug for Kept<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// Takes in what a watch tells.
pub trait Keeper<K>: Send {
    /// Takes in one event.
    fn take_in(&mut self, event: &Event<K>);
}

impl<K: Watched> Keeper<K> for Writer<K> {
    fn take_in(&mut self, event: &Event<K>) {
        self.apply_watcher_event(event);
    }
}

/// Fills a [`Kept`].
pub struct KeptWriter<K: Watched> {
    kept: Kept<K>,
    press: Press,
    listing: ByName,
}

impl<K: Watched> Debug for KeptWriter<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptWriter").finish_non_exhaustive()
    }
}

/// An empty store, and what fills it. The words are those that are looked for often, at most eight.
#[must_use]
pub fn store<K: Watched>(words: &[&str]) -> (Kept<K>, KeptWriter<K>) {
    let kept = Kept {
        objects: Arc::default(),
        words: Arc::new(Words::new(words)),
        kind: PhantomData,
    };
    let writer = KeptWriter {
        kept: kept.clone(),
        press: Press::default(),
        listing: ByName::new(),
    };
    (kept, writer)
}

impl<K: Watched> Kept<K> {
    /// The object of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<K>> {
        let squeezed = self.read(|it| Some(Arc::clone(&it.by_name.get(name)?.squeezed)))?;
        parsed(squeezed.text())
    }

    /// All that are there now, by name. Each is read when its turn comes, so that no two need be in memory.
    pub fn iter(&self) -> impl Iterator<Item = Arc<K>> + use<K> {
        self.iter_where(&|_, _| true, |_| true)
    }

    /// Those that say one of the words anywhere in their text. The caller looks at where they say it.
    pub fn iter_saying(&self, words: &[&str]) -> impl Iterator<Item = Arc<K>> + use<K> {
        let bits = self.words.of(words);
        let finders: Vec<_> = words
            .iter()
            .map(|it| Finder::new(it).into_owned())
            .collect();
        self.iter_where(
            &|_, entry| bits.is_none_or(|bits| entry.says & bits != 0),
            move |text| bits.is_some() || finders.iter().any(|it| it.find(text).is_some()),
        )
    }

    /// Those in which no annotation, label or other key has the value; a few others may be among them.
    pub fn iter_without(&self, key: &str, value: &str) -> impl Iterator<Item = Arc<K>> + use<K> {
        let pair = pair(key, value);
        let bits = self.words.of(&[&pair]);
        let finder = Finder::new(&pair).into_owned();
        self.iter_where(
            &|_, entry| bits.is_none_or(|bits| entry.says & bits == 0),
            move |text| bits.is_some() || finder.find(text).is_none(),
        )
    }

    /// Those that are wanted by their name and version; the others are not read.
    pub fn iter_of(
        &self,
        is_wanted: &dyn Fn(&str, Option<u64>) -> bool,
    ) -> impl Iterator<Item = Arc<K>> + use<K> {
        self.iter_where(&|name, entry| is_wanted(name, entry.version), |_| true)
    }

    /// Those that are wanted by what is known of them, and then by their text.
    fn iter_where<F: Fn(&[u8]) -> bool>(
        &self,
        is_candidate: &dyn Fn(&str, &Entry) -> bool,
        is_wanted: F,
    ) -> impl Iterator<Item = Arc<K>> + use<K, F> {
        let candidates: Vec<Arc<Squeezed>> = self.read(|it| {
            let entries = it.by_name.iter();
            let candidates = entries.filter(|(name, entry)| is_candidate(name, entry));
            candidates.map(|(_, it)| Arc::clone(&it.squeezed)).collect()
        });
        candidates.into_iter().filter_map(move |squeezed| {
            let text = squeezed.text();
            match &text {
                Ok(text) if !is_wanted(text) => None,
                _ => parsed(text),
            }
        })
    }

    /// The version that is kept of the object, where it is a number.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<u64> {
        self.read(|it| it.by_name.get(name)?.version)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read(|it| it.by_name.is_empty())
    }

    /// Another number after each change; who has seen this one need not look again.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.read(|it| it.changes)
    }

    /// Remembers what was just written: until a watch shows it, what is kept of the object is the past.
    pub fn note_written(&self, written: &K) {
        let Some(version) = version_of(written) else {
            return;
        };
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let name = name_of(written);
        let known = objects.by_name.get(&name).and_then(|it| it.version);
        if known.is_some_and(|known| known < version) {
            objects.written.insert(name, version);
        }
    }

    /// Whether we have written the object since it was as this one, and no watch has shown that yet. Who decides by it would
    /// decide the same once more, and be refused.
    #[must_use]
    pub fn is_behind(&self, object: &K) -> bool {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let written = self.read(|it| it.written.get(name).copied());
        written.is_some_and(|written| version_of(object).is_some_and(|it| it < written))
    }

    /// Moves what is kept together in memory: it was made among objects that are gone by now. Nothing of what it says changes.
    pub fn repack(&self) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let anew = objects.by_name.iter().map(|(name, entry)| {
            let entry = Entry {
                squeezed: Arc::new(entry.squeezed.anew()),
                says: entry.says,
                version: entry.version,
            };
            (name.clone(), entry)
        });
        objects.by_name = anew.collect();
    }

    fn read<T>(&self, look: impl FnOnce(&Objects) -> T) -> T {
        look(&self.objects.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// None only when what we have written ourselves cannot be read, which is told and stops nobody.
fn parsed<K: DeserializeOwned>(text: Result<Vec<u8>, String>) -> Option<Arc<K>> {
    let read =
        text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    match read {
        Ok(object) => Some(Arc::new(object)),
        Err(error) => {
            tracing::error!(%error, "an object that was kept cannot be read and is passed over; hint: this is a bug, restart kerf and report it");
            None
        }
    }
}

impl<K: Watched + Serialize> Keeper<K> for KeptWriter<K> {
    fn take_in(&mut self, event: &Event<K>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                if let Some(squeezed) = self.squeeze(object) {
                    self.listing.insert(name_of(object), squeezed);
                }
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                self.change(|objects| {
                    objects.by_name = listed;
                    objects.written.clear();
                });
            }
            Event::Apply(object) => {
                if let Some(squeezed) = self.squeeze(object) {
                    self.change(|objects| objects.put(name_of(object), squeezed));
                }
            }
            Event::Delete(object) => self.change(|objects| objects.remove(&name_of(object))),
        }
    }
}

impl<K: Watched + Serialize> KeptWriter<K> {
    fn squeeze(&mut self, object: &K) -> Option<Entry> {
        match serde_json::to_vec(object) {
            Ok(text) => Some(Entry {
                squeezed: Arc::new(self.press.squeeze(&text)),
                says: self.kept.words.said(&text),
                version: version_of(object),
            }),
            Err(error) => {
                tracing::error!(kind = %K::kind(&()), object = %object.name_any(), %error, "an object cannot be written as text and stays as it was; hint: this is a bug, report it");
                None
            }
        }
    }
}

impl<K: Watched> KeptWriter<K> {
    fn change(&self, change: impl FnOnce(&mut Objects)) {
        let mut objects = self
            .kept
            .objects
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut objects);
        objects.changes = objects.changes.wrapping_add(1);
    }
}

impl Objects {
    fn put(&mut self, name: Box<str>, entry: Entry) {
        let is_shown = |written: &u64| entry.version.is_none_or(|version| *written <= version);
        if self.written.get(&name).is_some_and(is_shown) {
            self.written.remove(&name);
        }
        self.by_name.insert(name, entry);
    }

    fn remove(&mut self, name: &str) {
        self.written.remove(name);
        self.by_name.remove(name);
    }
}

/// A key with its value as they stand in a text.
#[must_use]
pub fn pair(key: &str, value: &str) -> String {
    // As serde_json writes it.
    format!("\"{key}\":\"{value}\"")
}

/// Versions of one kind count up (Kubernetes API concepts, "Resource versions"); where they are no numbers, nothing is behind.
pub fn version_of<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

fn name_of<K: Resource>(object: &K) -> Box<str> {
    object.meta().name.as_deref().unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
