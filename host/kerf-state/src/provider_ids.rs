//! Which Nodes and NodeClaims have which providerID, kept as they change, so that nobody has to search.

use std::collections::BTreeMap;

/// Names of objects of one kind by their providerID.
#[derive(Debug, Default)]
pub(crate) struct ProviderIds {
    /// In order. Mostly one: a set has room for eleven.
    names: BTreeMap<String, Vec<String>>,
    ids: BTreeMap<String, String>,
}

/// Some clusters put this in front of `<region>.<instance-id>`; both forms mean the same instance.
const SCHEME: &str = "alicloud://";

/// The form in which providerIDs are compared.
pub(crate) fn bare(provider_id: &str) -> &str {
    provider_id.strip_prefix(SCHEME).unwrap_or(provider_id)
}

impl ProviderIds {
    /// Takes in what the object has now; none also when it is gone.
    pub(crate) fn set(&mut self, name: &str, id: Option<&str>) {
        if self.ids.get(name).map(String::as_str) == id {
            return;
        }
        if let Some(old) = self.ids.remove(name)
            && let Some(names) = self.names.get_mut(&old)
        {
            names.retain(|known| known != name);
            if names.is_empty() {
                self.names.remove(&old);
            }
        }
        if let Some(id) = id {
            self.ids.insert(name.to_owned(), id.to_owned());
            let names = self.names.entry(id.to_owned()).or_default();
            if let Err(place) = names.binary_search_by(|known| known.as_str().cmp(name)) {
                names.reserve_exact(1);
                names.insert(place, name.to_owned());
            }
        }
    }

    /// The names of the objects with this id (in its bare form), in order.
    pub(crate) fn names(&self, id: &str) -> impl Iterator<Item = &str> {
        self.names.get(id).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_under_its_latest_id_only() {
        let mut ids = ProviderIds::default();
        ids.set("b", Some("i-1"));
        ids.set("a", Some("i-1"));
        assert_eq!(ids.names("i-1").collect::<Vec<_>>(), ["a", "b"]);

        ids.set("a", Some("i-2"));
        ids.set("b", None);

        assert_eq!(ids.names("i-1").count(), 0);
        assert_eq!(ids.names("i-2").collect::<Vec<_>>(), ["a"]);
        assert_eq!(ids.names.len(), 1);
    }
}
