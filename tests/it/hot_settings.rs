//! Level: `kerf` on the real API server. What an operator writes into the ConfigMap `kerf-hot-settings` holds without a restart.

use k8s_openapi::api::core::v1::Pod;
use kerf_api::nodeclaim::NodeClaim;

use crate::events::note;
use crate::scenarios::{deployment, ready_stage};
use crate::stage::{NAMESPACE, Stage};

const TAKEN: &str = "settings of kerf-hot-settings taken over";

/// Writes the ConfigMap and waits until the controller has it.
fn write(stage: &Stage, data: &str) {
    let before = lines(stage, TAKEN);
    stage.apply(&format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kerf-hot-settings, namespace: {NAMESPACE}}}\ndata: {{{data}}}"
    ));
    stage.until("the settings", || async {
        (lines(stage, TAKEN) > before).then_some(())
    });
}

/// Lines about this in the log.
fn lines(stage: &Stage, text: &str) -> usize {
    stage.log().lines().filter(|it| it.contains(text)).count()
}

#[test]
fn pods_in_a_window_of_ten_minutes_are_planned_as_soon_as_it_is_made_shorter() {
    let stage = ready_stage("720h", "");
    write(&stage, "BATCH_IDLE_DURATION: 10m, BATCH_MAX_DURATION: 10m");
    stage.apply(&deployment("web", 3, "500m", "100Mi", ""));
    stage.until("three pods that wait", || async {
        (stage.list_async::<Pod>().await.len() == 3).then_some(())
    });
    let claims_in_the_window = stage.list::<NodeClaim>().len();

    let level = "'info,kerf_controllers=debug'";
    write(
        &stage,
        &format!("BATCH_IDLE_DURATION: 1s, LOG_LEVEL: {level}"),
    );
    stage.until_bound(3);
    write(&stage, "BATCH_IDLE_DURATION: soon, LOG_LEVEL: loud");

    assert_eq!(claims_in_the_window, 0);
    assert!(lines(&stage, "batch closed") > 0, "the level did not hold");
    for problem in ["BATCH_IDLE_DURATION: \"soon\"", "\"loud\" is not known"] {
        stage.until(problem, || async {
            (lines(&stage, problem) > 0).then_some(())
        });
        assert_eq!(lines(&stage, problem), 1, "{problem}");
    }
    let told = note(&stage, "ConfigMap", "kerf-hot-settings", "InvalidObject");
    assert!(told.contains("as the controller was started"), "{told}");
}
