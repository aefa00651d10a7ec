//! vSwitches and security groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::actions::network::{NetworkFilter, SecurityGroupItem, VSwitchItem};
use crate::provider::class::{ResolveKind, SecurityGroup, SecurityGroupTerm, VSwitch, VSwitchTerm};
use crate::provider::resolve::{Found, could_not_ask, empty_term, not_found};
use crate::rpc::Client;

/// A tag value that stands for any.
const ANY: &str = "*";

pub(super) async fn vswitches(client: &Client, terms: &[VSwitchTerm]) -> Found<VSwitch> {
    const KIND: ResolveKind = ResolveKind::VSwitch;
    let mut found: BTreeMap<String, VSwitch> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let field = field_of("vSwitchSelectorTerms", index, &term.id, false);
        if term.id.is_empty() && term.tags.is_empty() {
            problems.push(empty_term(KIND, field, "an id or tags"));
            continue;
        }
        match client
            .describe_vswitches(&filter(&term.id, "", &term.tags))
            .await
        {
            Ok(items) => {
                let matching: Vec<_> = items
                    .into_iter()
                    .filter(|item| vswitch_matches(item, term))
                    .collect();
                if matching.is_empty() {
                    let value = describe(&term.id, "", &term.tags, &term.zone_id);
                    problems.push(not_found(KIND, "vSwitch", field, value));
                }
                for item in matching {
                    found.insert(item.vswitch_id.clone(), vswitch(item));
                }
            }
            Err(error) => problems.push(could_not_ask(KIND, field, &error)),
        }
    }
    Found {
        items: found.into_values().collect(),
        problems,
    }
}

pub(super) async fn security_groups(
    client: &Client,
    terms: &[SecurityGroupTerm],
) -> Found<SecurityGroup> {
    const KIND: ResolveKind = ResolveKind::SecurityGroup;
    let mut found: BTreeMap<String, SecurityGroup> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let field = field_of(
            "securityGroupSelectorTerms",
            index,
            &term.id,
            !term.name.is_empty(),
        );
        if term.id.is_empty() && term.name.is_empty() && term.tags.is_empty() {
            problems.push(empty_term(KIND, field, "an id, a name or tags"));
            continue;
        }
        match client
            .describe_security_groups(&filter(&term.id, &term.name, &term.tags))
            .await
        {
            Ok(items) => {
                let matching: Vec<_> = items
                    .into_iter()
                    .filter(|item| group_matches(item, term))
                    .collect();
                if matching.is_empty() {
                    let value = describe(&term.id, &term.name, &term.tags, "");
                    problems.push(not_found(KIND, "security group", field, value));
                }
                for item in matching {
                    found.insert(item.security_group_id.clone(), security_group(item));
                }
            }
            // This action answers an unknown id with an error in some regions and with an empty list in others.
            Err(error) if is_missing_group(&error) => {
                problems.push(not_found(KIND, "security group", field, term.id.clone()));
            }
            Err(error) => problems.push(could_not_ask(KIND, field, &error)),
        }
    }
    Found {
        items: found.into_values().collect(),
        problems,
    }
}

fn is_missing_group(error: &crate::error::CloudError) -> bool {
    use crate::error::{ErrorClass, Missing};
    error.class() == ErrorClass::NotFound(Missing::SecurityGroup)
}

fn field_of(list: &str, index: usize, id: &str, is_named: bool) -> String {
    let leaf = if !id.is_empty() {
        "id"
    } else if is_named {
        "name"
    } else {
        "tags"
    };
    format!("spec.{list}[{index}].{leaf}")
}

/// What to ask for; a tag with any value is filtered here, because the API wants a value.
fn filter(id: &str, name: &str, tags: &BTreeMap<String, String>) -> NetworkFilter {
    NetworkFilter {
        ids: Some(id)
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .into_iter()
            .collect(),
        name: name.to_owned(),
        tags: exact(tags),
    }
}

/// Tags without those that may have any value.
pub(super) fn exact(tags: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let exact = tags.iter().filter(|(_, value)| *value != ANY);
    exact
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The server's filter is not trusted: an API that ignores one would hand us foreign networks.
fn vswitch_matches(item: &VSwitchItem, term: &VSwitchTerm) -> bool {
    let tags = item
        .tags
        .tag
        .iter()
        .map(|tag| (tag.key.as_str(), tag.value.as_str()));
    let id_matches = term.id.is_empty() || item.vswitch_id == term.id;
    let zone_matches = term.zone_id.is_empty() || item.zone_id == term.zone_id;
    id_matches && zone_matches && has_tags(tags, &term.tags)
}

fn group_matches(item: &SecurityGroupItem, term: &SecurityGroupTerm) -> bool {
    let tags = item
        .tags
        .tag
        .iter()
        .map(|tag| (tag.tag_key.as_str(), tag.tag_value.as_str()));
    let id_matches = term.id.is_empty() || item.security_group_id == term.id;
    let name_matches = term.name.is_empty() || item.security_group_name == term.name;
    id_matches && name_matches && has_tags(tags, &term.tags)
}

pub(super) fn has_tags<'a>(
    have: impl Iterator<Item = (&'a str, &'a str)>,
    want: &BTreeMap<String, String>,
) -> bool {
    let have: BTreeSet<_> = have.collect();
    want.iter().all(|(key, value)| {
        if value == ANY {
            have.iter().any(|(have, _)| have == key)
        } else {
            have.contains(&(key.as_str(), value.as_str()))
        }
    })
}

pub(super) fn describe(
    id: &str,
    name: &str,
    tags: &BTreeMap<String, String>,
    zone: &str,
) -> String {
    let tags = tags.iter().map(|(key, value)| format!("{key}={value}"));
    let given = [id, name]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    let zone = (!zone.is_empty()).then(|| format!("zone {zone}"));
    given.chain(tags).chain(zone).collect::<Vec<_>>().join(",")
}

fn vswitch(item: VSwitchItem) -> VSwitch {
    VSwitch {
        id: item.vswitch_id,
        zone_id: item.zone_id,
        vpc_id: item.vpc_id,
        ips_available: item.available_ip_address_count,
    }
}

fn security_group(item: SecurityGroupItem) -> SecurityGroup {
    SecurityGroup {
        id: item.security_group_id,
        name: item.security_group_name,
        vpc_id: item.vpc_id,
    }
}
