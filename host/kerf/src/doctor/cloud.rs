//! Credentials, the permissions of the account, and what the selectors of each class find.

use std::sync::Arc;
use std::time::Duration;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_cloud::error::{AuthProblem, CloudError, ErrorClass};
use kerf_cloud::provider::Provider;
use kerf_cloud::provider::class::{Architecture, ResolvedNodeClass};
use kerf_cloud::provider::permissions::{LaunchTrial, Verdict};
use kerf_controllers::node_class::spec;
use kube::ResourceExt;

use super::PATIENCE;
use super::report::{Finding, Report};
use crate::args::Controller;
use crate::controller::provider;

/// For the first call, so that a wrong endpoint is told soon.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// A vSwitch with fewer free addresses than this is full before anybody looks again.
const ADDRESSES_MIN: u64 = 16;

/// Asks the cloud; nothing further when it does not answer or does not know us.
pub(super) async fn examine(settings: &Controller, classes: &[EcsNodeClass], report: &mut Report) {
    let provider = match provider(settings) {
        Ok(provider) => provider,
        Err(error) => {
            report.add(Finding::problem(
                "credentials",
                "the controller's environment",
                format!("{error:#}"),
                "the chart's settings.* and credentials.*",
            ));
            return;
        }
    };
    if !is_known(&provider, report).await {
        return;
    }
    permissions(&provider, report).await;
    for class in classes {
        let object = format!("ECSNodeClass {}", class.name_any());
        let looked = look(&provider, settings, class, &object, report);
        if tokio::time::timeout(PATIENCE, Box::pin(looked))
            .await
            .is_err()
        {
            report.add(silent(&object));
        }
    }
}

fn silent(object: &str) -> Finding {
    Finding::warning(
        "cloud",
        object,
        format!("the cloud did not answer within {} s", PATIENCE.as_secs()),
        "ask again; if that stays so, look at the way to the endpoints",
    )
}

async fn is_known(provider: &Provider, report: &mut Report) -> bool {
    let asked = tokio::time::timeout(ANSWER_MAX, provider.client().describe_zones()).await;
    let error = match asked {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error),
        Err(_) => {
            report.add(Finding::problem(
                "cloud",
                "the endpoint of ECS",
                format!("no answer within {} s", ANSWER_MAX.as_secs()),
                "nodes without a way to the internet need settings.network=vpc; networkPolicy.enabled lets port 443 out only",
            ));
            return false;
        }
    };
    let class = error.as_ref().map(CloudError::class);
    let (Some(error), Some(class)) = (error, class) else {
        report.fine("credentials", "the cloud takes them".to_owned());
        return true;
    };
    match class {
        ErrorClass::Auth(AuthProblem::Permission) => true,
        ErrorClass::Auth(_) => {
            report.add(Finding::problem(
                "credentials",
                "the controller's environment",
                error.to_string(),
                "credentials.rrsa.roleARN with oidcProviderARN, or the access key in credentials.secretName; a role must trust the service account",
            ));
            false
        }
        _ => {
            report.add(Finding::problem(
                "cloud",
                "the endpoint of ECS",
                error.to_string(),
                "look at settings.region, settings.network and the way from the pod to the endpoint",
            ));
            false
        }
    }
}

async fn permissions(provider: &Provider, report: &mut Report) {
    let Ok(found) = tokio::time::timeout(PATIENCE, provider.permissions()).await else {
        report.add(silent("RAM"));
        return;
    };
    let mut allowed = Vec::new();
    for permission in found {
        let action = permission.action;
        match permission.verdict {
            Verdict::Allowed => allowed.push(action),
            Verdict::NotTried => report.fine(
                "permissions",
                format!("{action} has no dry run and is not tried"),
            ),
            Verdict::Denied(words) => {
                let finding = Finding::problem(
                    "permissions",
                    "the RAM policy of the controller",
                    words,
                    "add it to the policy of the role or user; docs/operations.md lists what is needed",
                );
                report.add(finding.at(&format!("Statement[].Action: {action}")));
            }
            Verdict::Unknown(words) => report.add(Finding::warning(
                "permissions",
                action,
                format!("not known: {words}"),
                "ask again",
            )),
        }
    }
    report.fine("permissions", format!("allowed: {}", allowed.join(", ")));
}

/// What the class's selectors find, and whether it could be launched from.
async fn look(
    provider: &Provider,
    settings: &Controller,
    class: &EcsNodeClass,
    object: &str,
    report: &mut Report,
) {
    let resolved = match provider
        .resolve(&spec::spec(class, &settings.default_node_role))
        .await
    {
        Ok(resolved) => resolved,
        Err(problems) => {
            for problem in problems {
                let finding = Finding::problem(
                    "selectors",
                    object,
                    problem.message,
                    "mend the selector, or the tags of what it means",
                );
                report.add(finding.at(&problem.field));
            }
            return;
        }
    };
    for warning in &resolved.warnings {
        let finding = Finding::warning(
            "selectors",
            object,
            warning.message.clone(),
            "take the term out, or mend it",
        );
        report.add(finding.at(&warning.field));
    }
    addresses(&resolved, object, report);
    images(&resolved, object, report);
    launch(provider, &resolved, object, report).await;
}

fn addresses(resolved: &ResolvedNodeClass, object: &str, report: &mut Report) {
    let mut free = 0;
    for vswitch in &resolved.vswitches {
        free += vswitch.ips_available;
        if vswitch.ips_available >= ADDRESSES_MIN {
            continue;
        }
        let message = format!(
            "{} in {} has {} free addresses",
            vswitch.id, vswitch.zone_id, vswitch.ips_available
        );
        let next = "add a vSwitch of that zone to the VPC and to what the selector finds";
        let finding = if vswitch.ips_available == 0 {
            Finding::problem(
                "vswitches",
                object,
                format!("{message}: no node can be made there"),
                next,
            )
        } else {
            Finding::warning("vswitches", object, message, next)
        };
        report.add(finding.at("spec.vSwitchSelectorTerms"));
    }
    report.fine(
        "vswitches",
        format!(
            "{object}: {} vSwitches with {free} free addresses",
            resolved.vswitches.len()
        ),
    );
}

fn images(resolved: &ResolvedNodeClass, object: &str, report: &mut Report) {
    let has = |architecture: Architecture| {
        resolved
            .image_for(architecture)
            .map(|it| format!("{} ({architecture})", it.id))
    };
    let found: Vec<String> = [Architecture::Amd64, Architecture::Arm64]
        .into_iter()
        .filter_map(has)
        .collect();
    report.fine("images", format!("{object}: {}", found.join(", ")));
}

async fn launch(
    provider: &Provider,
    resolved: &Arc<ResolvedNodeClass>,
    object: &str,
    report: &mut Report,
) {
    match provider.try_launch(resolved).await {
        Ok(LaunchTrial::Passed { instance_type, zone }) => {
            report.fine("launch", format!("{object}: a dry run of {instance_type} in {zone} passes"));
        }
        Ok(LaunchTrial::Refused(error)) => report.add(Finding::problem(
            "launch",
            object,
            format!("a dry run of a launch is refused: {error}"),
            "the code says which field of the class the cloud does not take",
        )),
        Ok(LaunchTrial::Nothing) => report.add(Finding::problem(
            "launch",
            object,
            "no instance type has stock, an image of its architecture and a free address in its zone".to_owned(),
            "add zones (vSwitches) or an image of the other architecture",
        )),
        Err(error) => report.add(Finding::warning(
            "launch",
            object,
            format!("the instance types cannot be read: {error}"),
            "ask again",
        )),
    }
}
