//! What belongs to the account rather than to a network: key pairs and private capacity pools.

use std::collections::{BTreeMap, BTreeSet};

use crate::actions::capacity_reservations::CapacityReservationItem;
use crate::actions::key_pairs::KeyPairItem;
use crate::provider::class::{KeyPairTerm, PrivatePool, PrivatePools, ResolveKind};
use crate::provider::resolve::network::{describe, exact, has_tags};
use crate::provider::resolve::{Found, could_not_ask, empty_term, not_found};
use crate::rpc::Client;

/// A pool from which instances can be had.
const ACTIVE: &str = "Active";

/// The names of the key pairs that the terms find, in order.
pub(super) async fn key_pairs(client: &Client, terms: &[KeyPairTerm]) -> Found<String> {
    const KIND: ResolveKind = ResolveKind::KeyPair;
    let mut names = BTreeSet::new();
    let mut problems = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let leaf = if term.name.is_empty() { "tags" } else { "name" };
        let field = format!("spec.sshKeySelectorTerms[{index}].{leaf}");
        if term.name.is_empty() && term.tags.is_empty() {
            problems.push(empty_term(KIND, field, "a name or tags"));
            continue;
        }
        match client
            .describe_key_pairs(&term.name, &exact(&term.tags))
            .await
        {
            Ok(items) => {
                let before = names.len();
                let matching = items.into_iter().filter(|item| is_key_pair(item, term));
                names.extend(matching.map(|item| item.key_pair_name));
                if names.len() == before {
                    let value = describe("", &term.name, &term.tags, "");
                    problems.push(not_found(KIND, "key pair", field, value));
                }
            }
            Err(error) => problems.push(could_not_ask(KIND, field, &error)),
        }
    }
    Found {
        items: names.into_iter().collect(),
        problems,
    }
}

fn is_key_pair(item: &KeyPairItem, term: &KeyPairTerm) -> bool {
    let tags = item.tags.tag.iter();
    let tags = tags.map(|tag| (tag.tag_key.as_str(), tag.tag_value.as_str()));
    (term.name.is_empty() || item.key_pair_name == term.name) && has_tags(tags, &term.tags)
}

/// The room in the pools that the terms find, sorted by pool; nothing is asked unless the class takes these pools only.
pub(super) async fn private_pools(client: &Client, pools: &PrivatePools) -> Found<PrivatePool> {
    const KIND: ResolveKind = ResolveKind::CapacityReservation;
    let mut found = BTreeSet::new();
    let mut problems = Vec::new();
    let terms: &[_] = if pools.is_targeted() {
        &pools.selector_terms
    } else {
        &[]
    };
    for (index, term) in terms.iter().enumerate() {
        let leaf = if term.id.is_empty() { "tags" } else { "id" };
        let field = format!("spec.capacityReservationSelectorTerms[{index}].{leaf}");
        if term.id.is_empty() && term.tags.is_empty() {
            problems.push(empty_term(KIND, field, "an id or tags"));
            continue;
        }
        match client
            .describe_capacity_reservations(&term.id, &exact(&term.tags))
            .await
        {
            Ok(items) => {
                let matching = items
                    .into_iter()
                    .filter(|item| is_pool(item, &term.id, &term.tags));
                let matching: Vec<_> = matching.collect();
                if matching.is_empty() {
                    let value = describe(&term.id, "", &term.tags, "");
                    problems.push(not_found(KIND, "active private pool", field, value));
                }
                found.extend(matching.into_iter().flat_map(rooms));
            }
            Err(error) => problems.push(could_not_ask(KIND, field, &error)),
        }
    }
    Found {
        items: found.into_iter().collect(),
        problems,
    }
}

fn is_pool(item: &CapacityReservationItem, id: &str, tags: &BTreeMap<String, String>) -> bool {
    let have = item.tags.tag.iter();
    let have = have.map(|tag| (tag.tag_key.as_str(), tag.tag_value.as_str()));
    item.status == ACTIVE
        && (id.is_empty() || item.private_pool_options_id == id)
        && has_tags(have, tags)
}

fn rooms(item: CapacityReservationItem) -> Vec<PrivatePool> {
    let id = item.private_pool_options_id;
    let rooms = item.allocated_resources.allocated_resource.into_iter();
    rooms
        .map(|it| PrivatePool {
            id: id.clone(),
            zone_id: it.zone_id,
            instance_type: it.instance_type,
            left: it.total_amount.saturating_sub(it.used_amount),
        })
        .collect()
}
