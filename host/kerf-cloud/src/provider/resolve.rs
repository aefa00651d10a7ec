//! What a node class's selectors mean right now.
//!
//! A kind (vSwitches, security groups, images) is resolved when at least one of its terms finds something; a term that
//! finds nothing is then a warning. A security group that is named by id must exist: without it the node would come up
//! with other rules than the user wrote.

mod account;
mod images;
mod network;

use futures::join;

use crate::error::{AuthProblem, CloudError, ErrorClass};
use crate::provider::class::{
    NodeClassSpec, ResolveKind, ResolveProblem, ResolvedNodeClass, SecurityGroup, VSwitch,
};
use crate::rpc::Client;

/// What one kind's terms found, and what they did not.
#[derive(Debug)]
struct Found<T> {
    items: Vec<T>,
    problems: Vec<ResolveProblem>,
}

impl<T> Found<T> {
    /// Sorts the problems into those that stop the class and those that it can live with.
    fn settle(
        self,
        problems: &mut Vec<ResolveProblem>,
        warnings: &mut Vec<ResolveProblem>,
    ) -> Vec<T> {
        let is_usable = !self.items.is_empty();
        for problem in self.problems {
            let is_fatal = !is_usable || problem.is_transient || is_named_group(&problem);
            if is_fatal {
                problems.push(problem);
            } else {
                warnings.push(problem);
            }
        }
        self.items
    }
}

fn is_named_group(problem: &ResolveProblem) -> bool {
    problem.kind == ResolveKind::SecurityGroup && problem.field.ends_with(".id")
}

/// Asks for everything at once.
///
/// # Errors
/// All problems that stop the class, not only the first.
pub(crate) async fn resolve(
    client: &Client,
    spec: &NodeClassSpec,
    controller_cluster_id: &str,
) -> Result<ResolvedNodeClass, Vec<ResolveProblem>> {
    let (vswitches, groups, images, key_pairs, pools) = join!(
        network::vswitches(client, &spec.vswitch_selector_terms),
        network::security_groups(client, &spec.security_group_selector_terms),
        images::images(client, &spec.image_selector_terms),
        account::key_pairs(client, &spec.key_pair_selector_terms),
        account::private_pools(client, &spec.private_pools),
    );
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    let vswitches = vswitches.settle(&mut problems, &mut warnings);
    let security_groups = groups.settle(&mut problems, &mut warnings);
    let images = images.settle(&mut problems, &mut warnings);
    let key_pairs = key_pairs.settle(&mut problems, &mut warnings);
    let private_pools = pools.settle(&mut problems, &mut warnings);
    let cluster_id = cluster_id(spec, controller_cluster_id).unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    problems.extend(vpc_problems(&vswitches, &security_groups));
    if !problems.is_empty() {
        return Err(problems);
    }
    let spec = spec.clone();
    let named = Some(spec.key_pair_name.clone()).filter(|name| !name.is_empty());
    Ok(ResolvedNodeClass {
        key_pair_name: named.or(key_pairs.into_iter().next()).unwrap_or_default(),
        private_pools,
        spec,
        cluster_id,
        vswitches,
        security_groups,
        images,
        warnings,
    })
}

/// The class's own cluster, else the controller's, else none if the class says how to join without one.
fn cluster_id(spec: &NodeClassSpec, of_controller: &str) -> Result<String, ResolveProblem> {
    let own = [spec.cluster_id.as_str(), of_controller]
        .into_iter()
        .find(|id| !id.is_empty());
    match own {
        Some(id) => Ok(id.to_owned()),
        None if !spec.join_template.trim().is_empty() => Ok(String::new()),
        None => Err(ResolveProblem {
            kind: ResolveKind::Cluster,
            field: "spec.clusterID".to_owned(),
            value: String::new(),
            message: format!(
                "ECSNodeClass {} names no ACK cluster and the controller has none: set spec.clusterID, start the \
                 controller with a cluster id, or give a join template for a self-managed cluster",
                spec.name
            ),
            is_transient: false,
        }),
    }
}

/// Instances take security groups of their own VPC only.
fn vpc_problems(vswitches: &[VSwitch], groups: &[SecurityGroup]) -> Vec<ResolveProblem> {
    let Some(vpc) = vswitches.first().map(|vswitch| vswitch.vpc_id.as_str()) else {
        return Vec::new();
    };
    let other_vswitch = vswitches.iter().find(|vswitch| vswitch.vpc_id != vpc);
    let other_group = groups
        .iter()
        .find(|group| !group.vpc_id.is_empty() && group.vpc_id != vpc);
    let problem = |kind, field: &str, value: &str, other_vpc: &str| ResolveProblem {
        kind,
        field: field.to_owned(),
        value: value.to_owned(),
        message: format!(
            "{field}: {value} is in VPC {other_vpc}, but vSwitch {} is in {vpc}; select from one VPC",
            vswitches[0].id
        ),
        is_transient: false,
    };
    let vswitch = other_vswitch.map(|it| {
        problem(
            ResolveKind::VSwitch,
            "spec.vSwitchSelectorTerms",
            &it.id,
            &it.vpc_id,
        )
    });
    let group = other_group.map(|it| {
        problem(
            ResolveKind::SecurityGroup,
            "spec.securityGroupSelectorTerms",
            &it.id,
            &it.vpc_id,
        )
    });
    vswitch.into_iter().chain(group).collect()
}

/// A term that found nothing.
fn not_found(kind: ResolveKind, what: &str, field: String, value: String) -> ResolveProblem {
    let message =
        format!("{field}: no {what} matches {value:?}; correct the term or make the {what}");
    ResolveProblem {
        kind,
        field,
        value,
        message,
        is_transient: false,
    }
}

/// A term that says nothing that can be looked for.
fn empty_term(kind: ResolveKind, field: String, wanted: &str) -> ResolveProblem {
    let message = format!("{field}: the term selects nothing; give it {wanted}");
    ResolveProblem {
        kind,
        field,
        value: String::new(),
        message,
        is_transient: false,
    }
}

/// A kind that could not be asked for.
fn could_not_ask(kind: ResolveKind, field: String, error: &CloudError) -> ResolveProblem {
    let is_transient = match error.class() {
        ErrorClass::Transient
        | ErrorClass::Throttled
        | ErrorClass::StaleSignature
        | ErrorClass::Auth(AuthProblem::TokenExpired) => true,
        ErrorClass::NoCapacity(_)
        | ErrorClass::DiskCategory
        | ErrorClass::IpExhausted
        | ErrorClass::Quota(_)
        | ErrorClass::Auth(_)
        | ErrorClass::Billing
        | ErrorClass::SpotPrice
        | ErrorClass::NotFound(_)
        | ErrorClass::State(_)
        | ErrorClass::Idempotent(_)
        | ErrorClass::ImageMismatch
        | ErrorClass::UserData
        | ErrorClass::DryRun
        | ErrorClass::Invalid => false,
    };
    let hint = match error.class() {
        ErrorClass::Auth(AuthProblem::Permission) => {
            "; allow the action in the controller's RAM policy"
        }
        ErrorClass::Auth(_) => "; check the controller's credentials",
        _ => "",
    };
    let message = format!("{field}: {error}{hint}");
    ResolveProblem {
        kind,
        field,
        value: String::new(),
        message,
        is_transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_the_classes_own_then_the_controllers() {
        let check = |class: &str, controller: &str, template: &str| {
            let spec = NodeClassSpec {
                cluster_id: class.to_owned(),
                join_template: template.to_owned(),
                ..NodeClassSpec::default()
            };
            cluster_id(&spec, controller).map_err(|problem| problem.field)
        };

        assert_eq!(check("c-1", "c-2", ""), Ok("c-1".to_owned()));
        assert_eq!(check("", "c-2", ""), Ok("c-2".to_owned()));
        assert_eq!(check("", "", "#!/bin/bash"), Ok(String::new()));
        assert_eq!(check("", "", " "), Err("spec.clusterID".to_owned()));
    }
}
