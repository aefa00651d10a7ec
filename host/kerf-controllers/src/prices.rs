//! Prices: what types cost this account, asked one at a time, and where the prices in use come from.
//!
//! Nothing waits for it: without an answer prices are those of the list. At thirty seconds a question it makes two calls
//! a minute, whatever the cluster does; what was asked is used ten minutes later at the latest.

mod trickle;

use std::sync::Arc;
use std::time::Duration;

use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::error::ErrorClass;
use kerf_core::ids::ZoneId;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::price::Price;
use kube::ResourceExt;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::metrics::offerings::{Offerings, Shown};
use crate::prices::trickle::{Candidate, Candidates, Kind, Outcome, Question, Trickle};

/// The name of Karpenter's controller for AWS' prices, in metrics.
const CONTROLLER: &str = "pricing";
/// Without questions this is all that is done.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// In so many rounds what could be asked is looked up once: with many pools the look costs more than the question.
const LOOKED_EVERY: u64 = 2;

/// Asks until the process ends.
pub(crate) async fn run(context: Arc<Context>) {
    let poll = context.settings.price_poll;
    let every = poll.unwrap_or(REPORTED_EVERY);
    // The first one is no part of a start.
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trickle = Trickle::default();
    let mut candidates = Candidates::new();
    for round in 0_u64.. {
        ticks.tick().await;
        if candidates.is_empty() || round.is_multiple_of(LOOKED_EVERY) {
            let (found, allowed) = look(&context);
            candidates = found;
            report(allowed, &context);
        }
        if poll.is_some() {
            ask_next(&mut trickle, &candidates, &context).await;
            publish(&trickle, &candidates, &context);
        }
    }
}

async fn ask_next(trickle: &mut Trickle, candidates: &Candidates, context: &Context) {
    let Some(question) = trickle.next(candidates, Instant::now()) else {
        return;
    };
    let zone = candidates.get(&question).map(|it| &*it.zone);
    let (outcome, message) = ask(&question, zone.unwrap_or_default(), context).await;
    let is_news = trickle.note(question.clone(), outcome, Instant::now());
    tell(&question, outcome, &message, is_news);
}

fn tell(question: &Question, outcome: Outcome, message: &str, is_news: bool) {
    let Question {
        kind,
        instance_type,
    } = question;
    if is_news {
        tracing::warn!(%message, "the account may not ask for prices ({kind:?}); those of the list are used, and they are asked for again in an hour");
    } else {
        tracing::debug!(%instance_type, ?kind, ?outcome, %message, "asked for a price");
    }
}

fn publish(trickle: &Trickle, candidates: &Candidates, context: &Context) {
    let is_round_over = !candidates.is_empty() && trickle.is_round_over(candidates, Instant::now());
    if context.cloud.publish_prices(is_round_over) {
        tracing::info!("prices are now as the account is told, as far as it was asked");
    }
}

async fn ask(question: &Question, zone: &str, context: &Context) -> (Outcome, String) {
    let calls = context.cloud.on(CONTROLLER);
    let name = &question.instance_type;
    let answer = match question.kind {
        Kind::OnDemand => calls.ask_price(name, zone).await,
        Kind::Spot => calls.ask_spot_prices(name).await,
    };
    match answer {
        Ok(true) => (Outcome::Answered, String::new()),
        Ok(false) => (Outcome::Answered, "no price in the answer".to_owned()),
        Err(error) => {
            let outcome = match error.class() {
                ErrorClass::Auth(_) => Outcome::Denied,
                _ => Outcome::Failed,
            };
            (outcome, chain(&error))
        }
    }
}

/// Shows what pools allow, and where its prices come from.
fn report(allowed: Offerings, context: &Context) {
    let offerings = allowed
        .keys()
        .map(|(name, zone, capacity_type)| (&**name, &**zone, *capacity_type));
    if let Some(quotes) = context.cloud.quotes(offerings) {
        context.metrics.prices.show(&quotes, clock::now());
    }
    if let Some(offerings) = &context.metrics.offerings {
        offerings.show(allowed);
    }
}

/// What could be asked, and what is for sale to pools. Makes no call.
fn look(context: &Context) -> (Candidates, Offerings) {
    let evaluated = context.evaluated();
    let (mut candidates, mut allowed) = (Candidates::new(), Offerings::new());
    for pool in context.stores.nodepools.state() {
        let Some(offers) = evaluated.catalog.get(pool.name_any().as_str()) else {
            continue;
        };
        let seen = crate::node_pool::seen(&pool, Arc::clone(&offers.instance_types));
        for (it, offering) in seen.allowed_offerings() {
            let Some(kind) = kind(offering.capacity_type) else {
                continue;
            };
            let key = (
                it.name.clone(),
                offering.zone.clone(),
                offering.capacity_type,
            );
            let seen = Shown::of(offering);
            let shown = allowed.entry(key).or_insert(seen);
            shown.add(seen);
            if offering.is_available() {
                let question = Question {
                    kind,
                    instance_type: it.name.clone(),
                };
                let candidate = candidates
                    .entry(question)
                    .or_insert_with(|| candidate(&it.name, offering.zone.clone()));
                candidate.per_vcpu = candidate.per_vcpu.min(per_vcpu(it, offering));
            }
        }
    }
    for claim in context.stores.nodeclaims.iter() {
        add_running(&claim, &mut candidates);
    }
    (candidates, allowed)
}

/// What runs is asked for also where it is sold out or no pool allows it any longer: to replace it or not depends on it.
fn add_running(claim: &NodeClaim, candidates: &mut Candidates) {
    let label = |key: &str| claim.labels().get(key).map(String::as_str);
    let (Some(name), Some(zone)) = (label(labels::INSTANCE_TYPE), label(labels::ZONE)) else {
        return;
    };
    let bought = label(labels::CAPACITY_TYPE).and_then(CapacityType::parse);
    let Some(kind) = bought.and_then(kind) else {
        return;
    };
    let question = Question {
        kind,
        instance_type: name.into(),
    };
    let candidate = candidates
        .entry(question)
        .or_insert_with(|| candidate(name, zone.into()));
    candidate.is_running = true;
}

fn candidate(name: &str, zone: ZoneId) -> Candidate {
    Candidate {
        family: name
            .rsplit_once('.')
            .map_or(name, |(family, _)| family)
            .to_owned(),
        zone,
        is_running: false,
        per_vcpu: Price::UNKNOWN,
    }
}

/// What is reserved is paid for already.
fn kind(capacity_type: CapacityType) -> Option<Kind> {
    match capacity_type {
        CapacityType::OnDemand => Some(Kind::OnDemand),
        CapacityType::Spot => Some(Kind::Spot),
        CapacityType::Reserved => None,
    }
}

/// Per vCPU and hour; unknown where the price is.
fn per_vcpu(it: &InstanceType, offering: &Offering) -> Price {
    let vcpus = u64::try_from(it.capacity.cpu_milli() / 1000).unwrap_or_default();
    if !offering.price.is_known() {
        return Price::UNKNOWN;
    }
    Price::from_micros(offering.price.micros() / vcpus.max(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(labels: &serde_json::Value) -> NodeClaim {
        let object = json!({
            "metadata": {"name": "a", "labels": labels},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_running_type_is_asked_for_as_it_was_bought() {
        let mut candidates = Candidates::new();
        let spot = json!({
            "node.kubernetes.io/instance-type": "ecs.g7.large",
            "topology.kubernetes.io/zone": "cn-hangzhou-i",
            "karpenter.sh/capacity-type": "spot",
        });

        add_running(&claim(&spot), &mut candidates);
        add_running(&claim(&json!({})), &mut candidates);

        let (question, found) = candidates.iter().next().unwrap();
        assert_eq!(candidates.len(), 1);
        assert_eq!(
            (question.kind, &*question.instance_type),
            (Kind::Spot, "ecs.g7.large")
        );
        assert!(found.is_running && found.family == "ecs.g7" && &*found.zone == "cn-hangzhou-i");
    }
}
