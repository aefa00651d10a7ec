//! ECSNodeClass: what its selectors mean in the cloud, whether its policies serve, and saying so in its status.

pub mod catalog;
pub mod spec;
pub mod status;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::TypeList;
use kerf_cloud::provider::class::{ResolveProblem, ResolvedNodeClass};
use kerf_core::ids::ZoneId;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kube::{Api, ResourceExt};

use crate::adoption;
use crate::context::Context;
use crate::disruption::hash::CLASS_HASH;
use crate::error::{Error, chain};
use crate::reconciler::Action;
use crate::{clock, patch};

/// Its name in metrics.
const CONTROLLER: &str = "nodeclass";

/// A class with a problem is looked at again after this long: the problem is often mended in the cloud, unseen by us.
const PROBLEM_RETRY: Duration = Duration::from_secs(15);

/// A class that can be launched from, with what it can be launched as.
#[derive(Debug)]
pub struct ClassState {
    /// The hash of the class as it was resolved.
    pub hash: String,
    /// What the selectors found.
    pub resolved: Arc<ResolvedNodeClass>,
    /// In name order.
    pub instance_types: TypeList,
    /// Free addresses per zone.
    pub free_ips: BTreeMap<ZoneId, u64>,
    /// Whether zones are kept in balance before prices are compared.
    pub is_zone_balanced: bool,
}

impl ClassState {
    /// Whether nodes of it would be what nodes of the other are. Stock, prices and free addresses come and go.
    #[must_use]
    pub fn offers_the_same(&self, other: &Self) -> bool {
        self.hash == other.hash
            && is_sold_alike(&self.instance_types, &other.instance_types)
            && (Arc::ptr_eq(&self.resolved, &other.resolved)
                || is_found_alike(&self.resolved, &other.resolved))
    }
}

/// Whether the selectors found the same, as far as nodes show it.
fn is_found_alike(one: &ResolvedNodeClass, other: &ResolvedNodeClass) -> bool {
    let vswitches = one.vswitches.iter().map(|it| &it.id);
    let groups = one.security_groups.iter().map(|it| &it.id);
    one.images == other.images
        && vswitches.eq(other.vswitches.iter().map(|it| &it.id))
        && groups.eq(other.security_groups.iter().map(|it| &it.id))
}

/// Whether both have the same types in the same zones.
fn is_sold_alike(one: &TypeList, other: &TypeList) -> bool {
    fn place(it: &Offering) -> (&ZoneId, CapacityType) {
        (&it.zone, it.capacity_type)
    }
    let is_alike = |(one, other): (&Arc<InstanceType>, &Arc<InstanceType>)| {
        let places = one.offerings.iter().map(place);
        Arc::ptr_eq(one, other)
            || (one.name == other.name && places.eq(other.offerings.iter().map(place)))
    };
    Arc::ptr_eq(one, other) || (one.len() == other.len() && one.iter().zip(&**other).all(is_alike))
}

/// The classes that were looked at: usable ones, and why the others are not.
#[derive(Debug, Default)]
pub struct Classes {
    by_name: RwLock<HashMap<String, Result<Arc<ClassState>, String>>>,
}

impl Classes {
    /// The class, or why it cannot be used.
    ///
    /// # Errors
    /// The message names the class and the next step.
    pub fn usable(&self, name: &str) -> Result<Arc<ClassState>, String> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        match by_name.get(name) {
            Some(state) => state.clone(),
            None => Err(format!(
                "ECSNodeClass {name} does not exist or was not looked at yet"
            )),
        }
    }

    /// All usable classes.
    #[must_use]
    pub fn all_usable(&self) -> Vec<(String, Arc<ClassState>)> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        by_name
            .iter()
            .filter_map(|(name, state)| Some((name.clone(), state.clone().ok()?)))
            .collect()
    }

    /// Forgets a class that was deleted.
    pub fn remove(&self, name: &str) {
        self.by_name
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
    }

    fn put(&self, name: String, state: Result<Arc<ClassState>, String>) {
        self.by_name
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name, state);
    }
}

/// One pass over one class.
///
/// # Errors
/// When the status cannot be written.
pub async fn reconcile(class: Arc<EcsNodeClass>, context: Arc<Context>) -> Result<Action, Error> {
    let name = class.name_any();
    let policies = context.policies.sync(&class, &context).await;
    let resolved = context
        .cloud
        .on(CONTROLLER)
        .resolve(&spec::spec(&class, &context.settings.default_node_role))
        .await;
    let hash = class.hash().map_err(|source| Error::Encode {
        object: crate::error::describe(&*class),
        source,
    })?;
    let outcome = match &resolved {
        Ok(resolved) => {
            load(
                resolved,
                (&hash, catalog::is_zone_balanced(&class)),
                &context,
            )
            .await
        }
        Err(problems) => Err(describe(&name, problems)),
    };
    let mut wanted = (*class).clone();
    wanted.status = Some(status::status(
        &class,
        &resolved,
        outcome.as_ref(),
        &policies,
        clock::now(),
    ));
    CLASS_HASH.put(&hash, wanted.annotations_mut());
    announce(&class, &wanted, &context).await;
    if let Ok(resolved) = &resolved {
        warn_of_idle_terms(&class, &resolved.warnings, &context).await;
    }
    let was_usable = context.classes.usable(&name).is_ok();
    let is_usable = outcome.is_ok();
    context.classes.put(name, outcome);
    if was_usable != is_usable {
        context.cluster.demand_changed();
    }
    migrate(&class.name_any(), &hash, &context).await?;
    patch::write(&Api::all(context.client.clone()), &*class, &wanted).await?;
    let has_problem = !is_usable || policies.iter().any(|policy| policy.last_error.is_some());
    Ok(Action::requeue(if has_problem {
        PROBLEM_RETRY
    } else {
        context.settings.node_class_resync
    }))
}

/// Gives claims of another version of the hash today's.
async fn migrate(class: &str, hash: &str, context: &Context) -> Result<(), Error> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let (key, version) = CLASS_HASH.version();
    let claims = context.stores.nodeclaims.iter_without(key, version);
    let is_of_class = |claim: &Arc<NodeClaim>| {
        let reference = &claim.spec.node_class_ref;
        adoption::is_ours(reference) && reference.name == class
    };
    for claim in claims.filter(is_of_class) {
        if let Some(wanted) = CLASS_HASH.migrated(hash, &claim) {
            patch::write(&api, &*claim, &wanted).await?;
        }
    }
    Ok(())
}

/// Fills in what the class can be launched as.
///
/// # Errors
/// When the cloud cannot be asked and never was.
pub async fn load(
    resolved: &Arc<ResolvedNodeClass>,
    (hash, is_zone_balanced): (&str, bool),
    context: &Context,
) -> Result<Arc<ClassState>, String> {
    let types = context
        .cloud
        .on(CONTROLLER)
        .instance_types(resolved)
        .await
        .map_err(|error| format!("cannot read the instance types: {}", chain(&error)))?;
    Ok(Arc::new(ClassState {
        hash: hash.to_owned(),
        resolved: Arc::clone(resolved),
        instance_types: types,
        free_ips: catalog::free_ips(resolved),
        is_zone_balanced,
    }))
}

/// Reads stock and prices of all usable classes again; a class whose reading fails keeps what it had.
pub async fn refresh(context: &Context) {
    for (name, state) in context.classes.all_usable() {
        let about = (state.hash.as_str(), state.is_zone_balanced);
        match load(&state.resolved, about, context).await {
            Ok(fresh) => context.classes.put(name, Ok(fresh)),
            Err(message) => {
                tracing::warn!(nodeclass = %name, %message, "stock and prices stay as they were");
            }
        }
    }
}

fn describe(name: &str, problems: &[ResolveProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(|it| it.message.clone()).collect();
    format!("ECSNodeClass {name}: {}", problems.join("; "))
}

/// A term that finds nothing while others of its kind do stops nobody, but it is not what the user meant.
async fn warn_of_idle_terms(class: &EcsNodeClass, warnings: &[ResolveProblem], context: &Context) {
    for warning in warnings {
        context
            .events
            .warning(class, event::RESOLUTION_FAILED, &warning.message)
            .await;
    }
}

/// One event when a condition turns bad or its reason changes.
async fn announce(before: &EcsNodeClass, after: &EcsNodeClass, context: &Context) {
    for condition in status::worsened(before.conditions(), after.conditions()) {
        let note = format!("{}: {}", condition.type_, condition.message);
        context
            .events
            .warning(before, event::RESOLUTION_FAILED, &note)
            .await;
    }
}
