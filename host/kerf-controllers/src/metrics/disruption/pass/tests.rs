//! Unit level: reports of decisions in, series out.

use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::report::Score;
use prometheus_client::encoding::prometheus_text::encode;

use super::*;

pub(in crate::metrics) fn report() -> PassReport {
    let score = |percent, is_approved| Score {
        pool: "general".into(),
        percent,
        is_approved,
    };
    PassReport {
        eligible: [
            (DisruptionReason::Empty, 1),
            (DisruptionReason::Underutilized, 3),
        ]
        .into(),
        work: [(CommandKind::Multi, 30), (CommandKind::Single, 10)].into(),
        cut_off: vec![CommandKind::Single],
        scores: vec![score(150, true), score(20, false)],
    }
}

#[test]
fn a_decision_shows_who_could_go_what_the_searches_took_and_what_balanced_pools_thought() {
    let mut registry = Registry::default();
    let metrics = PassMetrics::new(&mut registry);

    metrics.decided(4.0, &report());

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let moved =
        |decision| format!("{{decision=\"{decision}\",nodepool=\"general\",policy=\"balanced\"}}");
    let took = |reason, type_| format!("{{reason=\"{reason}\",consolidation_type=\"{type_}\"}}");
    let seconds = "voluntary_disruption_decision_evaluation_duration_seconds_sum";
    for line in [
        format!("{seconds}{} 3.0", took("underutilized", "multi")),
        format!("{seconds}{} 1.0", took("underutilized", "single")),
        format!("{seconds}{} 0.0", took("empty", "empty")),
        "voluntary_disruption_eligible_nodes{reason=\"underutilized\"} 3".to_owned(),
        "voluntary_disruption_consolidation_timeouts_total{consolidation_type=\"multi\"} 0"
            .to_owned(),
        "voluntary_disruption_consolidation_timeouts_total{consolidation_type=\"single\"} 1"
            .to_owned(),
        format!("consolidation_moves_total{} 1", moved("rejected")),
        format!("consolidation_score_sum{} 1.5", moved("approved")),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn the_time_of_a_decision_without_a_search_is_that_of_looking_for_empty_nodes() {
    let shares = shares(2.0, &BTreeMap::new());

    assert_eq!(shares.map(|(kind, _)| kind), METHODS);
    assert!((shares[0].1 - 2.0).abs() < 1e-9, "{shares:?}");
}
