//! The tag contract: every key that kerf writes on an instance, in one table.
//!
//! Lookups and orphan deletion rely on exactly these, so a change here is a migration.

use std::collections::BTreeMap;

/// Who made the instance; value [`MANAGED_BY_KERF`].
pub const MANAGED_BY: &str = "karpenter.sh/managed-by";
/// Not `karpenter`: another provider lists by that value alone and would take our instances for its own.
pub const MANAGED_BY_KERF: &str = "kerf";
/// The cluster that the instance belongs to.
pub const CLUSTER: &str = "karpenter.sh/cluster-id";
/// The NodePool's name.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// The NodeClaim's name.
pub const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// The ECSNodeClass's name.
pub const NODE_CLASS: &str = "karpenter.alibabacloud.com/ecsnodeclass";
/// The frozen launch group, written ahead of the call that makes the instance.
pub const LAUNCH_GROUP: &str = "karpenter.alibabacloud.com/launch-group";

/// Keys that a user's tags may not override.
pub const RESERVED: &[&str] = &[
    MANAGED_BY,
    CLUSTER,
    NODE_POOL,
    NODE_CLAIM,
    NODE_CLASS,
    LAUNCH_GROUP,
];

/// The most tags that RunInstances takes.
pub const TAGS_MAX: usize = 20;

/// Who an instance is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner<'a> {
    pub cluster: &'a str,
    pub node_pool: &'a str,
    pub node_class: &'a str,
    pub node_claim: &'a str,
    pub launch_group: &'a str,
}

/// The tags of a new instance: ours first and untouchable, then the user's in name order up to the limit.
#[must_use]
pub fn for_instance(owner: &Owner<'_>, user: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let ours = [
        (MANAGED_BY, MANAGED_BY_KERF),
        (CLUSTER, owner.cluster),
        (NODE_POOL, owner.node_pool),
        (NODE_CLASS, owner.node_class),
        (NODE_CLAIM, owner.node_claim),
        (LAUNCH_GROUP, owner.launch_group),
    ];
    let ours = ours.into_iter().filter(|(_, value)| !value.is_empty());
    let ours = ours.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let theirs = user
        .iter()
        .filter(|(key, _)| !RESERVED.contains(&key.as_str()));
    let theirs = theirs.map(|(key, value)| (key.clone(), value.clone()));
    ours.chain(theirs).take(TAGS_MAX).collect()
}

/// True if the tags prove that kerf made the instance for this cluster.
#[must_use]
pub fn is_ours(tags: &BTreeMap<String, String>, cluster: &str) -> bool {
    let has = |key: &str, value: &str| tags.get(key).is_some_and(|found| found == value);
    !cluster.is_empty() && has(MANAGED_BY, MANAGED_BY_KERF) && has(CLUSTER, cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn user_tags_never_override_ours() {
        let owner = Owner {
            cluster: "c-1",
            node_pool: "default",
            ..Owner::default()
        };

        let tags = for_instance(&owner, &user(&[(CLUSTER, "other"), ("team", "a")]));

        let tags: BTreeMap<_, _> = tags.into_iter().collect();
        assert_eq!(tags[CLUSTER], "c-1");
        assert_eq!(tags["team"], "a");
        assert!(is_ours(&tags, "c-1"));
        assert!(!is_ours(&tags, "other"));
    }

    #[test]
    fn an_empty_cluster_owns_nothing() {
        assert!(!is_ours(
            &user(&[(MANAGED_BY, MANAGED_BY_KERF), (CLUSTER, "")]),
            ""
        ));
    }

    #[test]
    fn tags_stay_within_what_the_call_takes() {
        let many = (0..30).map(|n| (format!("k{n}"), String::new())).collect();

        let tags = for_instance(
            &Owner {
                cluster: "c-1",
                ..Owner::default()
            },
            &many,
        );

        assert_eq!(tags.len(), TAGS_MAX);
        assert_eq!(tags[0].0, MANAGED_BY);
    }
}
