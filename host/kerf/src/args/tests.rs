use clap::CommandFactory;

use super::*;

/// Karpenter's flags with their variables and defaults (karpenter-behaviour.md, 6.3, without kwok's own).
const KARPENTERS: &[(&str, &str, &str)] = &[
    ("karpenter-service", "KARPENTER_SERVICE", ""),
    ("metrics-port", "METRICS_PORT", "8080"),
    ("health-probe-port", "HEALTH_PROBE_PORT", "8081"),
    ("kube-client-qps", "KUBE_CLIENT_QPS", "200"),
    ("kube-client-burst", "KUBE_CLIENT_BURST", "300"),
    ("enable-profiling", "ENABLE_PROFILING", "false"),
    (
        "disable-controller-warmup",
        "DISABLE_CONTROLLER_WARMUP",
        "true",
    ),
    (
        "disable-leader-election",
        "DISABLE_LEADER_ELECTION",
        "false",
    ),
    (
        "disable-cluster-state-observability",
        "DISABLE_CLUSTER_STATE_OBSERVABILITY",
        "false",
    ),
    (
        "leader-election-name",
        "LEADER_ELECTION_NAME",
        "karpenter-leader-election",
    ),
    ("leader-election-namespace", "LEADER_ELECTION_NAMESPACE", ""),
    ("memory-limit", "MEMORY_LIMIT", "-1"),
    ("cpu-requests", "CPU_REQUESTS", "1000"),
    ("log-level", "LOG_LEVEL", "info"),
    ("log-output-paths", "LOG_OUTPUT_PATHS", "stdout"),
    ("log-error-output-paths", "LOG_ERROR_OUTPUT_PATHS", "stderr"),
    ("batch-max-duration", "BATCH_MAX_DURATION", "10s"),
    ("batch-idle-duration", "BATCH_IDLE_DURATION", "1s"),
    ("preference-policy", "PREFERENCE_POLICY", "Respect"),
    ("min-values-policy", "MIN_VALUES_POLICY", "Strict"),
    ("ignore-dra-requests", "IGNORE_DRA_REQUESTS", "true"),
    ("feature-gates", "FEATURE_GATES", ""),
    ("scheduler-config", "SCHEDULER_CONFIG", ""),
];

fn parse(args: &[&str]) -> Result<Controller, String> {
    let all = ["kerf", "controller", "--cluster-id", "c1"];
    let parsed = Args::try_parse_from(all.iter().chain(args));
    match parsed.map_err(|error| error.to_string())?.command {
        Command::Controller(controller) => Ok(*controller),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn the_arguments_are_consistent() {
    Args::command().debug_assert();
}

#[test]
fn karpenters_flags_have_karpenters_variables_and_defaults() {
    let mut command = Args::command();
    command.build();
    let controller = command.find_subcommand("controller").unwrap();

    for (flag, variable, default) in KARPENTERS {
        let found = controller
            .get_arguments()
            .find(|it| it.get_long() == Some(flag))
            .unwrap_or_else(|| panic!("no --{flag}"));

        assert_eq!(found.get_env().unwrap(), *variable, "--{flag}");
        let defaults: Vec<_> = found.get_default_values().to_vec();
        assert_eq!(defaults, [*default], "--{flag}");
    }
}

#[test]
fn every_flag_of_the_controller_has_a_heading_and_a_variable() {
    let mut command = Args::command();
    command.build();
    let controller = command.find_subcommand("controller").unwrap();

    let bare: Vec<_> = controller
        .get_arguments()
        .filter(|it| {
            !matches!(
                it.get_id().as_str(),
                "help" | "version" | "level" | "format"
            )
        })
        .filter(|it| it.get_help_heading().is_none() || it.get_env().is_none())
        .map(|it| it.get_id().to_string())
        .collect();

    assert!(bare.is_empty(), "{bare:?}");
}

#[test]
fn secrets_never_show_in_the_help() {
    let help = Args::command()
        .find_subcommand_mut("controller")
        .map(|command| command.render_long_help().to_string())
        .unwrap_or_default();

    assert!(help.contains("ALIBABA_CLOUD_ACCESS_KEY_SECRET"));
    assert!(!help.contains("ALIBABA_CLOUD_ACCESS_KEY_SECRET="), "{help}");
}

#[test]
fn a_switch_takes_what_go_takes() {
    let on = |args: &[&str]| parse(args).map(|it| it.process.disable_leader_election);

    assert_eq!(on(&[]), Ok(false));
    assert_eq!(on(&["--disable-leader-election"]), Ok(true));
    assert_eq!(on(&["--disable-leader-election=T"]), Ok(true));
    assert_eq!(on(&["--disable-leader-election=false"]), Ok(false));
}

#[test]
fn wrong_values_are_refused_with_the_reason() {
    let cases = [
        ("--metrics-port=70000", "70000"),
        ("--kube-client-qps=0", "0 is not in 1.."),
        ("--batch-idle-duration=soon", "soon"),
        ("--preference-policy=Maybe", "it must be Respect or Ignore"),
        ("--min-values-policy=Lax", "it must be Strict or BestEffort"),
        ("--enable-profiling=yes", "it must be true or false"),
        (
            "--feature-gates=NoSuchGate=true",
            "no feature gate is called \"NoSuchGate\"",
        ),
        ("--feature-gates=NodeRepair", "NodeRepair=true"),
        ("--scheduler-config=profiles: []", "profiles"),
        ("--memory-limit=1Gi", "invalid digit"),
    ];
    for (arg, reason) in cases {
        let error = parse(&[arg]).unwrap_err();

        assert!(error.contains(reason), "{arg}: {error}");
    }
}

#[test]
fn probes_have_a_port_of_their_own_unless_one_address_is_given() {
    let addresses = |args: &[&str]| parse(args).unwrap().process.addresses();

    let (metrics, probes) = addresses(&[]);
    assert_eq!((metrics.port(), probes.unwrap().port()), (8080, 8081));
    assert_eq!(addresses(&["--health-probe-port=8080"]).1, None);
    assert!(
        addresses(&["--metrics-port=0", "--health-probe-port=0"])
            .1
            .is_some()
    );
    assert_eq!(addresses(&["--metrics-address=127.0.0.1:1"]).1, None);
}

#[test]
fn no_thread_is_alone() {
    let threads = |millis: &str| {
        parse(&["--cpu-requests", millis])
            .unwrap()
            .process
            .threads()
    };

    assert_eq!(
        [
            threads("100"),
            threads("1000"),
            threads("2500"),
            threads("90000")
        ],
        [2, 2, 3, 60]
    );
}
