//! The keys of objects that are to be looked at, each in its time. Who asks says what time it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tokio::time::Instant;

/// `namespace/name`, or the name alone of an object without a namespace (client-go: same).
pub(super) type Key = Arc<str>;

/// When a key is due, and how many were asked for before it.
type Turn = (Instant, u64);

/// Each key is here once: due at some time, or worked on.
#[derive(Debug, Default)]
pub(super) struct Queue {
    due: BTreeMap<Turn, Key>,
    turns: HashMap<Key, Turn>,
    /// What is worked on, with the time at which somebody asked for it meanwhile.
    working: HashMap<Key, Option<Instant>>,
    asked: u64,
}

impl Queue {
    /// Asks for a look at this time. Of several times that were asked for the soonest counts.
    pub(super) fn ask(&mut self, key: Key, at: Instant) {
        if let Some(again_at) = self.working.get_mut(&key) {
            *again_at = Some(again_at.map_or(at, |it| it.min(at)));
            return;
        }
        let turn = (at, self.asked);
        match self.turns.get(&key) {
            Some((planned_at, _)) if *planned_at <= at => return,
            Some(later) => self.due.remove(later),
            None => None,
        };
        self.asked = self.asked.wrapping_add(1);
        self.turns.insert(Arc::clone(&key), turn);
        self.due.insert(turn, key);
    }

    /// The key that is due for the longest time, which is worked on from now.
    pub(super) fn take(&mut self, now: Instant) -> Option<Key> {
        let first = self.due.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let key = first.remove();
        self.turns.remove(&key);
        self.working.insert(Arc::clone(&key), None);
        Some(key)
    }

    /// The work on it has ended. It is looked at again when somebody asked for it meanwhile, or at this time.
    pub(super) fn done(&mut self, key: Key, again_at: Option<Instant>) {
        let asked_at = self.working.remove(&key).flatten();
        if let Some(at) = asked_at.into_iter().chain(again_at).min() {
            self.ask(key, at);
        }
    }

    /// When the next key is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
}

/// The key of an object.
pub(super) fn key_of<K: Resource<DynamicType = ()>>(reference: &ObjectRef<K>) -> Key {
    match &reference.namespace {
        Some(namespace) => format!("{namespace}/{}", reference.name).into(),
        None => reference.name.as_str().into(),
    }
}

/// The object of a key. Neither names nor namespaces have a slash (Kubernetes, "Object Names and IDs").
pub(super) fn reference<K: Resource<DynamicType = ()>>(key: &Key) -> ObjectRef<K> {
    match key.split_once('/') {
        Some((namespace, name)) => ObjectRef::new(name).within(namespace),
        None => ObjectRef::new(key),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::{ConfigMap, Node};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// All that is due, in its order.
    fn taken(queue: &mut Queue, now: Instant) -> Vec<Key> {
        std::iter::from_fn(|| queue.take(now)).collect()
    }

    #[test]
    fn keys_come_when_they_are_due_and_in_the_order_of_asking() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.ask("late".into(), now + SECOND);
        queue.ask("b".into(), now);
        queue.ask("a".into(), now);

        assert_eq!(taken(&mut queue, now), ["b".into(), "a".into()] as [Key; 2]);
        assert_eq!(queue.next_due(), Some(now + SECOND));
        assert_eq!(taken(&mut queue, now + SECOND), ["late".into()] as [Key; 1]);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_key_that_is_asked_for_twice_comes_once_at_the_sooner_time() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.ask("a".into(), now + SECOND);
        queue.ask("a".into(), now);
        queue.ask("a".into(), now + SECOND);

        assert_eq!(taken(&mut queue, now + SECOND).len(), 1);
        queue.done("a".into(), None);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn an_object_that_is_named_while_it_is_worked_on_is_looked_at_after_and_not_beside() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.ask("a".into(), now);
        let key = queue.take(now).unwrap();
        queue.ask("a".into(), now);

        assert_eq!(queue.take(now), None);
        queue.done(key, Some(now + SECOND));
        assert_eq!(taken(&mut queue, now).len(), 1);
    }

    #[test]
    fn work_that_ended_comes_again_at_its_time() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.ask("a".into(), now);
        let key = queue.take(now).unwrap();
        queue.done(key, Some(now + SECOND));

        assert_eq!(queue.take(now), None);
        assert!(queue.take(now + SECOND).is_some());
    }

    #[test]
    fn a_key_leads_back_to_its_object() {
        let node = ObjectRef::<Node>::new("cn-hangzhou.10.0.0.1");
        let policies = ObjectRef::<ConfigMap>::new("policies").within("kerf-system");

        assert_eq!(reference::<Node>(&key_of(&node)), node);
        assert_eq!(reference::<ConfigMap>(&key_of(&policies)), policies);
    }
}
