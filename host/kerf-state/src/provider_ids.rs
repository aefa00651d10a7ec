//! Which Nodes and NodeClaims have which providerID, kept as they change, so that nobody has to search.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Objects of one kind by their providerID. Ids and names are shared with the objects.
#[derive(Debug, Default)]
pub(crate) struct ProviderIds(
    /// Ids with names. There should be one name for each id.
    BTreeSet<(Arc<str>, Arc<str>)>,
);

/// Some clusters put this in front of `<region>.<instance-id>`; both forms mean the same instance.
const SCHEME: &str = "alicloud://";

/// The form in which providerIDs are compared.
pub(crate) fn bare(provider_id: &str) -> &str {
    provider_id.strip_prefix(SCHEME).unwrap_or(provider_id)
}

impl ProviderIds {
    /// Takes in what the object has now and had before; none also where it is or was not there.
    pub(crate) fn change(
        &mut self,
        name: &Arc<str>,
        before: Option<Arc<str>>,
        now: Option<Arc<str>>,
    ) {
        if before == now {
            return;
        }
        if let Some(id) = before {
            self.0.remove(&(id, Arc::clone(name)));
        }
        if let Some(id) = now {
            self.0.insert((id, Arc::clone(name)));
        }
    }

    /// The names of the objects with this id (in its bare form), in order.
    pub(crate) fn names(&self, id: Arc<str>) -> impl Iterator<Item = &Arc<str>> {
        let first = (Arc::clone(&id), Arc::default());
        let from_there = self.0.range(first..);
        let of_id = from_there.take_while(move |(found, _)| *found == id);
        of_id.map(|(_, name)| name)
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for ProviderIds {
    /// Of all ids with their names.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(id: &str, ids: &'a ProviderIds) -> Vec<&'a str> {
        ids.names(Arc::from(id)).map(|name| &**name).collect()
    }

    #[test]
    fn an_object_is_found_under_its_latest_id_only() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let id = |id: &str| Some(Arc::from(id));
        let mut ids = ProviderIds::default();
        ids.change(&b, None, id("i-1"));
        ids.change(&a, None, id("i-1"));
        ids.change(&a, id("i-1"), id("i-1"));
        assert_eq!(names("i-1", &ids), ["a", "b"]);
        assert_eq!(ids.names(Arc::from("i-")).count(), 0);

        ids.change(&a, id("i-1"), id("i-2"));
        ids.change(&b, id("i-1"), None);

        assert_eq!(ids.names(Arc::from("i-1")).count(), 0);
        assert_eq!(names("i-2", &ids), ["a"]);
    }
}
