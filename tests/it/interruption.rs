//! Interruption on the real control plane: what the platform takes back or works on gives its pods away before that.

use std::time::{Duration, Instant};

use ecs_sim::{Announced, Effect, Fault, Notice, Planted};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kerf_api::memory::MEMORY_NAME;
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::{NAMESPACE, Stage};

/// What the market leaves a spot machine.
const NOTICE: Duration = Duration::from_secs(300);

fn spot(pool: &str) -> String {
    pool.replace(r#"values: ["on-demand"]"#, r#"values: ["spot"]"#)
}

/// A pod on the one node of a started controller.
fn stage_with(pool: &str, args: &[&str]) -> Stage {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(pool);
    stage.start_kerf(args);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    stage
}

fn interrupt(stage: &Stage, id: &str, after: Duration, notice: Notice) {
    let _inside = stage.runtime.enter();
    assert!(stage.sim.interrupt_by(id, after, notice));
}

fn announce(stage: &Stage, id: &str, state: &str, in_secs: i64) {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(in_secs);
    stage.sim.announce(Announced {
        event_id: "e-1".to_owned(),
        instance_id: id.to_owned(),
        event_type: "SystemMaintenance.Reboot".to_owned(),
        state: state.to_owned(),
        not_before: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
}

async fn is_initialized_besides(stage: &Stage, name: &str) -> bool {
    let claims: Vec<NodeClaim> = stage.list_async().await;
    claims
        .iter()
        .any(|it| it.name_any() != name && it.is_true("Initialized"))
}

/// Waits until the claim is being deleted or gone; a replacement is ready by then.
fn until_leaving(stage: &Stage, name: &str) {
    let is_replaced = stage.until("the drain of the interrupted claim", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_staying = claims
            .iter()
            .any(|it| it.name_any() == name && it.metadata.deletion_timestamp.is_none());
        if is_staying {
            return None;
        }
        Some(is_initialized_besides(stage, name).await)
    });
    assert!(is_replaced, "drained before its replacement was ready");
}

fn until_gone(stage: &Stage, name: &str) {
    stage.until("the interrupted claim is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.iter().all(|it| it.name_any() != name).then_some(())
    });
}

/// The reason of the claim's condition Drifted.
async fn drift(stage: &Stage) -> Option<String> {
    let claims: Vec<NodeClaim> = stage.list_async().await;
    let drifted = kerf_api::condition::find(claims.first()?.conditions(), "Drifted")?;
    drifted.is_true().then(|| drifted.reason.clone())
}

fn each_alone(source: &str, notice: Notice) {
    let args = [
        "--interruption-sources",
        source,
        "--interruption-poll-duration",
        "1s",
    ];
    let stage = stage_with(&spot(&pool("720h", "")), &args);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let instance = stage.instances().remove(0);
    // Of another owner, and announced first: it must not stop the handling of ours.
    let strange = Planted {
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        image_id: instance.image_id.clone(),
        is_spot: true,
        tags: Default::default(),
    };
    let strange = stage.sim.plant(strange).unwrap().id;
    interrupt(&stage, &strange, NOTICE, notice);

    interrupt(&stage, &instance.id, NOTICE, notice);

    until_leaving(&stage, &first);
    until_gone(&stage, &first);
    stage.until_bound(1);
    let old = |it: &ecs_sim::InstanceView| (it.instance_type.clone(), it.zone.clone());
    let now: Vec<_> = stage.instances();
    let ours = now.iter().find(|it| it.id != strange).unwrap();
    assert_ne!(old(ours), old(&instance), "the same offering again");
}

#[test]
fn a_lock_alone_drains_a_spot_node_when_its_replacement_is_ready() {
    each_alone("lock", Notice::Lock);
}

#[test]
fn an_event_alone_drains_a_spot_node_when_its_replacement_is_ready() {
    each_alone("events", Notice::Event);
}

#[test]
fn a_node_condition_alone_drains_a_spot_node_when_its_replacement_is_ready() {
    each_alone("conditions", Notice::Condition);
}

#[test]
fn a_spot_notice_leads_to_a_drained_node_within_five_minutes_though_the_replacement_boots_for_one()
{
    // As it is installed, but that the account lacks the permission for events: that costs one warning.
    let mut stage = Stage::set();
    stage.sim.add_fault(Fault {
        action: "DescribeInstanceHistoryEvents".to_owned(),
        when: Default::default(),
        skip: 0,
        times: u32::MAX,
        after: false,
        effect: Effect::Error {
            status: 403,
            code: "Forbidden.RAM".to_owned(),
        },
    });
    stage.apply(ECSNODECLASS);
    stage.apply(&spot(&pool("720h", "")));
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 3, "1", "1Gi", ""));
    stage.until_bound(3);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let id = stage.instances().remove(0).id;
    stage
        .sim
        .change_world(|world| world.timing.running_after_ms = 60_000);

    let announced = Instant::now();
    interrupt(&stage, &id, NOTICE, Notice::Lock);

    until_leaving(&stage, &first);
    let leaving = announced.elapsed();
    until_gone(&stage, &first);
    let gone = announced.elapsed();
    stage.until_bound(3);
    assert!(leaving >= Duration::from_secs(60), "{leaving:?}");
    assert!(gone < NOTICE, "{gone:?}");
    eprintln!("the drain began {leaving:?} after the notice and ended {gone:?} after it");
    let warnings = stage
        .log()
        .matches("interruptions are not announced by this source")
        .count();
    assert_eq!(warnings, 1);
    let memory: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let memory = stage.runtime.block_on(memory.get(MEMORY_NAME)).unwrap();
    assert!(memory.data.unwrap()["unavailable"].contains("SpotReclaimed"));
}

#[test]
fn a_notice_outlives_a_kill_though_nobody_announces_it_again() {
    let args = ["--interruption-poll-duration", "1s"];
    let mut stage = stage_with(&spot(&pool("720h", "")), &args);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let id = stage.instances().remove(0).id;
    // Nothing that is launched from now on gets ready before the kill.
    stage
        .sim
        .change_world(|world| world.timing.running_after_ms = 12_000);
    interrupt(&stage, &id, NOTICE, Notice::Lock);
    stage.until("the notice on the claim", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let key = "karpenter.alibabacloud.com/interruption";
        let noted = claims
            .iter()
            .find(|it| it.annotations().contains_key(key))?;
        noted.is_true("DisruptionReason").then_some(())
    });

    stage.kill_kerf();
    stage.start_kerf(&["--interruption-sources", "conditions"]);

    until_leaving(&stage, &first);
    until_gone(&stage, &first);
    stage.until_bound(1);
}

#[test]
fn a_pod_that_may_not_be_disrupted_is_ended_while_its_machine_still_runs() {
    let args = ["--interruption-poll-duration", "1s"];
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&spot(&pool("720h", "")));
    stage.start_kerf(&args);
    let held = deployment("web", 1, "1", "1Gi", "").replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}",
    );
    stage.apply(&held);
    stage.until_bound(1);
    let id = stage.instances().remove(0).id;
    let pod = stage
        .runtime
        .block_on(stage.bound_pods())
        .remove(0)
        .name_any();

    interrupt(&stage, &id, Duration::from_secs(40), Notice::Event);

    stage.until("the pod is gone", || async {
        let pods: Vec<Pod> = stage.list_async().await;
        pods.iter().all(|it| it.name_any() != pod).then_some(())
    });
    let machine = stage.instances().into_iter().find(|it| it.id == id);
    assert_eq!(machine.map(|it| it.status).as_deref(), Some("Running"));
    stage.until_bound(1);
}

#[test]
fn maintenance_keeps_to_the_budgets_until_it_is_near_and_is_forgotten_when_it_is_called_off() {
    let args = ["--interruption-poll-duration", "1s"];
    let closed = pool("720h", "").replace(r#"[{nodes: "100%"}]"#, r#"[{nodes: "0"}]"#);
    let stage = stage_with(&closed, &args);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let id = stage.instances().remove(0).id;
    announce(&stage, &id, "Scheduled", 24 * 60 * 60);
    stage.until("drift because of maintenance", || async {
        drift(&stage)
            .await
            .filter(|it| it == "MaintenanceScheduled")
    });

    announce(&stage, &id, "Canceled", 24 * 60 * 60);
    stage.until("no drift any more", || async {
        drift(&stage).await.is_none().then_some(())
    });
    assert_eq!(stage.list::<NodeClaim>().remove(0).name_any(), first);

    announce(&stage, &id, "Scheduled", 10 * 60);
    until_leaving(&stage, &first);
    until_gone(&stage, &first);
    stage.until_bound(1);
}

#[test]
fn maintenance_that_is_far_off_is_drift_within_the_budgets() {
    let args = ["--interruption-poll-duration", "1s"];
    let stage = stage_with(&pool("720h", ""), &args);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let id = stage.instances().remove(0).id;

    announce(&stage, &id, "Scheduled", 24 * 60 * 60);

    until_leaving(&stage, &first);
    until_gone(&stage, &first);
    stage.until_bound(1);
    let disrupted = stage.log().contains("DisruptionReason") || stage.log().contains("drifted");
    assert!(disrupted);
}
