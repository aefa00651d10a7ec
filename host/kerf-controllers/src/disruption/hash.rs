//! Hashes of what claims are made from, kept in a pair of annotations: the hash and the version of its algorithm. Pure.

use std::collections::BTreeMap;

use kerf_api::ecsnodeclass::ECSNODECLASS_HASH_VERSION;
use kerf_api::names::{annotation, condition};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NODEPOOL_HASH_VERSION;
use kube::ResourceExt;

type Annotations = BTreeMap<String, String>;

/// A hash and where it is kept.
#[derive(Debug, Clone, Copy)]
pub struct HashKeys {
    hash: &'static str,
    version: &'static str,
    /// The version of today.
    current: &'static str,
}

/// Of a NodePool's template.
pub const POOL_HASH: HashKeys = HashKeys {
    hash: annotation::NODEPOOL_HASH,
    version: annotation::NODEPOOL_HASH_VERSION,
    current: NODEPOOL_HASH_VERSION,
};

/// Of an ECSNodeClass.
pub const CLASS_HASH: HashKeys = HashKeys {
    hash: annotation::ECSNODECLASS_HASH,
    version: annotation::ECSNODECLASS_HASH_VERSION,
    current: ECSNODECLASS_HASH_VERSION,
};

impl HashKeys {
    /// Writes down a hash of today's version.
    pub fn put(&self, hash: &str, annotations: &mut Annotations) {
        annotations.insert(self.hash.to_owned(), hash.to_owned());
        annotations.insert(self.version.to_owned(), self.current.to_owned());
    }

    /// The hash, if it is of today's version.
    #[must_use]
    pub fn read<'a>(&self, annotations: &'a Annotations) -> Option<&'a str> {
        let version = annotations.get(self.version)?;
        let hash = annotations.get(self.hash)?;
        (version == self.current).then_some(hash)
    }

    /// The annotation with the version of a hash, and today's version.
    #[must_use]
    pub fn version(&self) -> (&'static str, &'static str) {
        (self.version, self.current)
    }

    /// The claim with today's version of the hash, none when it has it: what had drifted stays so, and nothing drifts
    /// by an update of the controller (Karpenter: same).
    #[must_use]
    pub fn migrated(&self, hash: &str, claim: &NodeClaim) -> Option<NodeClaim> {
        let is_current = claim
            .annotations()
            .get(self.version)
            .is_some_and(|version| version == self.current);
        if is_current {
            return None;
        }
        let mut claim = claim.clone();
        let has_drifted = claim.is_true(condition::DRIFTED);
        let annotations = claim.annotations_mut();
        annotations.insert(self.version.to_owned(), self.current.to_owned());
        if !has_drifted {
            annotations.insert(self.hash.to_owned(), hash.to_owned());
        }
        Some(claim)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kerf_api::condition::Conditions;

    use super::*;

    #[test]
    fn a_claim_of_an_older_hash_version_takes_the_new_hash_unless_it_had_drifted() {
        let mut claim = NodeClaim::new("general-1", Default::default());
        for (key, value) in [
            (annotation::NODEPOOL_HASH, "old"),
            (annotation::NODEPOOL_HASH_VERSION, "v2"),
        ] {
            claim
                .annotations_mut()
                .insert(key.to_owned(), value.to_owned());
        }

        let taken = POOL_HASH.migrated("new", &claim).unwrap();
        assert_eq!(POOL_HASH.read(taken.annotations()), Some("new"));
        assert_eq!(POOL_HASH.migrated("new", &taken), None);

        let mut conditions = Conditions::open(
            NodeClaim::CONDITIONS,
            &[],
            1,
            Timestamp::UNIX_EPOCH,
            Timestamp::UNIX_EPOCH,
        );
        conditions.set_true(condition::DRIFTED);
        claim.status.get_or_insert_default().conditions = conditions.finish();
        let drifted = POOL_HASH.migrated("new", &claim).unwrap();
        assert_eq!(POOL_HASH.read(drifted.annotations()), Some("old"));
    }

    #[test]
    fn a_hash_of_another_version_is_no_hash() {
        let annotations = Annotations::from([
            (annotation::ECSNODECLASS_HASH.to_owned(), "1".to_owned()),
            (
                annotation::ECSNODECLASS_HASH_VERSION.to_owned(),
                "v0".to_owned(),
            ),
        ]);

        assert_eq!(CLASS_HASH.read(&annotations), None);
    }
}
