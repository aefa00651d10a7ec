//! What is measured: the command of each figure, where its output has it, and what it must reach (design and issues).

use Limit::{Below, Least, Most, None};

/// One command and what is told of its output.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) name: &'static str,
    /// As `cargo xtask` takes them; the last line that is printed is one JSON object.
    pub(super) args: &'static [&'static str],
    pub(super) about: &'static str,
    pub(super) figures: &'static [Figure],
}

/// A row of the page.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) what: &'static str,
    /// JSON pointer; of a list the length counts.
    pub(super) pointer: &'static str,
    pub(super) unit: &'static str,
    pub(super) limit: Limit,
}

/// What a figure must reach.
#[derive(Debug)]
pub(super) enum Limit {
    /// At most what the output says here.
    Below(&'static str),
    /// At most this.
    Most(u64),
    /// At least this.
    Least(u64),
    /// It is told, and nothing is asked of it.
    None,
}

const fn figure(
    what: &'static str,
    pointer: &'static str,
    unit: &'static str,
    limit: Limit,
) -> Figure {
    Figure {
        what,
        pointer,
        unit,
        limit,
    }
}

/// In the order of the page.
pub(super) const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "scheduling",
        args: &["bench", "scheduling", "--repeat", "5", "--json"],
        about: "5,000 pods of upstream's own mix on its 400 made-up types, on one core",
        figures: &[
            figure("planning 5,000 pods, 400 types", "/seconds", " s", None),
            figure(
                "the same: pods a second (upstream: 653 to 816)",
                "/podsPerSecond",
                "",
                Least(100_000),
            ),
            figure(
                "the same: peak of memory (upstream: 168)",
                "/peakRssMiB",
                " MiB",
                None,
            ),
        ],
    },
    Measurement {
        name: "scheduling-distinct",
        args: &[
            "bench",
            "scheduling",
            "--distinct",
            "--repeat",
            "5",
            "--json",
        ],
        about: "the same where no two pods are alike",
        figures: &[figure(
            "pods a second where no two are alike",
            "/podsPerSecond",
            "",
            Least(20_000),
        )],
    },
    Measurement {
        name: "consolidation",
        args: &[
            "bench",
            "consolidation",
            "--nodes",
            "2000",
            "--to-fixed-point",
            "--json",
        ],
        about: "2,000 nodes with 40,000 pods, drawn, until nothing more is decided",
        figures: &[
            figure(
                "consolidation of 2,000 nodes: the longest pass",
                "/longestPassSeconds",
                " s",
                Most(5),
            ),
            figure("the same: to the fixed point", "/seconds", " s", Most(30)),
            figure("the same: peak of memory", "/peakRssMiB", " MiB", Most(300)),
        ],
    },
    Measurement {
        name: "policy",
        args: &["bench", "policy", "--json"],
        about: "a call of a policy in each language, and what policies add to planning",
        figures: &[
            figure(
                "policy in Rust, 300 candidates, p99",
                "/results/2/p99Millis",
                " ms",
                None,
            ),
            figure(
                "policy in JavaScript, 300 candidates, p99",
                "/results/6/p99Millis",
                " ms",
                Most(20),
            ),
            figure(
                "two Rust policies in a plan of 5,000 pods: added",
                "/planning/addedMillis",
                " ms",
                Below("/planning/addedMillisMax"),
            ),
        ],
    },
    Measurement {
        name: "policy-swap",
        args: &["bench", "policy-swap", "--json"],
        about: "from the edit of a ConfigMap to the new version serving",
        figures: &[
            figure(
                "a new Rust policy serves after, p95",
                "/results/0/p95Seconds",
                " s",
                Below("/results/0/p95SecondsMax"),
            ),
            figure(
                "a new JavaScript policy serves after, p95",
                "/results/1/p95Seconds",
                " s",
                Below("/results/1/p95SecondsMax"),
            ),
            figure(
                "a new Go policy serves after, p95",
                "/results/2/p95Seconds",
                " s",
                Below("/results/2/p95SecondsMax"),
            ),
        ],
    },
    Measurement {
        name: "burst",
        args: &["bench", "burst", "--json"],
        about: "4,000 pods at once on nothing; the floor is what kube-scheduler takes for them onto nodes that are there",
        figures: &[
            figure(
                "4,000 pods at once: last launch after the last pod",
                "/lastPodToLastLaunchSeconds",
                " s",
                Below("/lastPodToLastLaunchMax"),
            ),
            figure(
                "the same: all bound",
                "/lastPodToAllBoundSeconds",
                " s",
                Below("/lastPodToAllBoundMax"),
            ),
            figure(
                "the same: processor time",
                "/cpuSeconds",
                " s",
                Below("/cpuMax"),
            ),
            figure(
                "the same: peak of memory",
                "/peakRssMib",
                " MiB",
                Below("/peakRssMax"),
            ),
        ],
    },
    Measurement {
        name: "scale-in",
        args: &["bench", "scale-in", "--json"],
        about: "4,000 pods scaled in to 1,223 on upstream's types",
        figures: &[
            figure(
                "scale-in: settled after",
                "/settledSeconds",
                " s",
                Below("/settledSecondsMax"),
            ),
            figure(
                "the same: longest round",
                "/longestRoundSeconds",
                " s",
                Below("/longestRoundSecondsMax"),
            ),
            figure(
                "the same: price per hour before",
                "/placedHourly",
                "",
                Below("/placedHourlyMax"),
            ),
            figure(
                "the same: price per hour after",
                "/hourly",
                "",
                Below("/hourlyMax"),
            ),
            figure(
                "the same: pods that wait, at most",
                "/podsPendingMost",
                "",
                Below("/podsPendingMostMax"),
            ),
            figure(
                "the same: peak of memory",
                "/peakRssMib",
                " MiB",
                Below("/peakRssMibMax"),
            ),
        ],
    },
    Measurement {
        name: "roll",
        args: &["bench", "roll", "--json"],
        about: "every node of a pool of 50 drifts at once",
        figures: &[
            figure("a pool of 50 nodes rolls in", "/seconds", " s", None),
            figure(
                "the same: looks at which the budget was broken",
                "/budgetBreaches",
                "",
                Most(0),
            ),
            figure("the same: pods lost", "/podsLost", "", Most(0)),
        ],
    },
    Measurement {
        name: "scale",
        args: &["bench", "scale", "--json"],
        about: "2,000 nodes and 20,000 pods on a real API server with three policies, with pods that come and go",
        figures: &[
            figure(
                "2,000 nodes, 20,000 pods, three policies: memory",
                "/rssMib",
                " MiB",
                Below("/rssMax"),
            ),
            figure(
                "the same: from a closed batch to its NodeClaims, p99",
                "/loopP99Seconds",
                " s",
                Below("/loopP99Max"),
            ),
            figure(
                "the same: 1,000 more pods bound",
                "/moreBoundSeconds",
                " s",
                Below("/moreBoundMax"),
            ),
            figure(
                "the same: writes to the API server for each pod",
                "/apiWritesPerPod",
                "",
                None,
            ),
        ],
    },
    Measurement {
        name: "scale-simulated",
        args: &["bench", "scale", "--simulated", "--json"],
        about: "15,000 nodes and 400,000 pods in the index, without an API server",
        figures: &[
            figure(
                "15,000 nodes, 400,000 pods, simulated: peak of memory",
                "/peakRssMib",
                " MiB",
                Below("/rssMax"),
            ),
            figure(
                "the same: from a closed batch of 1,000 pods to its NodeClaims, p99",
                "/loopP99Seconds",
                " s",
                Below("/loopMax"),
            ),
            figure(
                "the same: an event, p99",
                "/churnEventP99Micros",
                " µs",
                None,
            ),
        ],
    },
    Measurement {
        name: "impossible",
        args: &["bench", "impossible", "--json"],
        about: "100 pods beside 10,000 that no node can take",
        figures: &[
            figure(
                "100 pods beside 10,000 impossible ones: last launch",
                "/lastPodToLastLaunchSeconds",
                " s",
                Below("/lastPodToLastLaunchMax"),
            ),
            figure(
                "the same: launches for the impossible ones",
                "/launchesBefore",
                "",
                Most(0),
            ),
        ],
    },
    Measurement {
        name: "idle",
        args: &["bench", "idle", "--json"],
        about: "a controller in which nothing happens, beside the 100 nodes that it made",
        figures: &[
            figure(
                "idle beside 100 nodes: memory",
                "/rssMib",
                " MiB",
                Below("/rssMax"),
            ),
            figure(
                "the same: part of a core",
                "/corePercent",
                " %",
                Below("/corePercentMax"),
            ),
        ],
    },
    Measurement {
        name: "at-rest",
        args: &["bench", "at-rest", "--json"],
        about: "calls to the cloud beside 1,000 instances",
        figures: &[
            figure(
                "1,000 instances at rest: DescribeInstances a minute",
                "/describeInstancesPerMinute",
                "",
                Below("/callsMax"),
            ),
            figure(
                "the same: other calls a minute",
                "/othersPerMinute",
                "",
                Below("/callsMax"),
            ),
        ],
    },
    Measurement {
        name: "launch-faults",
        args: &["bench", "launch-faults", "--seeds", "1-20", "--json"],
        about: "half of all calls throttled, a tenth cut after the side effect, stock-outs at random, 300 one-node pods, 20 seeds",
        figures: &[
            figure(
                "launches under faults, 20 seeds: double",
                "/double",
                "",
                Most(0),
            ),
            figure("the same: leaked", "/leaked", "", Most(0)),
        ],
    },
    Measurement {
        name: "failover",
        args: &["failover", "--json"],
        about: "SIGTERM, kill -9 and a frozen leader, with pods waiting",
        figures: &[
            figure(
                "SIGTERM: the other replica acts after, at most",
                "/toldActSeconds",
                " s",
                Below("/toldMax"),
            ),
            figure(
                "kill -9: the other replica acts after, at most",
                "/killedActSeconds",
                " s",
                Below("/killedMax"),
            ),
            figure(
                "launches by an old leader after its lease",
                "/launchesAfterTheLease",
                "",
                Most(0),
            ),
        ],
    },
    Measurement {
        name: "oracle",
        args: &["oracle", "--cases", "500", "--json"],
        about: "what is planned against what the real kube-scheduler does, 500 random cases",
        figures: &[figure(
            "pods planned that kube-scheduler does not place, 500 cases",
            "/mismatches",
            "",
            Most(0),
        )],
    },
    Measurement {
        name: "wire",
        args: &["wire", "--json"],
        about: "recordings of the cloud and the official SDKs against client and simulator",
        figures: &[figure(
            "differences on the wire",
            "/differences",
            "",
            Most(0),
        )],
    },
    Measurement {
        name: "chaos",
        args: &["chaos", "--seeds", "1-10", "--minutes", "4", "--json"],
        about: "everything goes wrong at random, and an onlooker looks for what must not be",
        figures: &[figure(
            "chaos, ten seeds of four minutes: breaches",
            "/breaches",
            "",
            Most(0),
        )],
    },
    Measurement {
        name: "chaos-sabotage",
        args: &[
            "chaos",
            "--seeds",
            "1-10",
            "--minutes",
            "4",
            "--sabotage",
            "all",
            "--json",
        ],
        about: "the same with a guard taken out, six times: the onlooker must notice",
        figures: &[figure(
            "guards taken out that nobody noticed, of six",
            "/sabotagesMissed",
            "",
            Most(0),
        )],
    },
    Measurement {
        name: "fuzz",
        args: &["fuzz", "--seconds", "180", "--json"],
        about: "readers of foreign bytes, three minutes each, and a planted bug in each",
        figures: &[
            figure(
                "readers of foreign bytes that were fuzzed",
                "/results",
                "",
                None,
            ),
            figure("the same: findings", "/findings", "", Most(0)),
            figure(
                "the same: planted bugs that were not found",
                "/plantedMissed",
                "",
                Most(0),
            ),
        ],
    },
    Measurement {
        name: "replay",
        args: &["replay-trace", "--days", "14", "--copies", "40", "--json"],
        about: "14 days of a production trace, 1,663 pods at once",
        figures: &[
            figure(
                "14 days of a trace: price by that of upstream's search",
                "/ratio",
                "",
                Below("/ratioMax"),
            ),
            figure(
                "the same: broken budgets",
                "/ours/budgetBreaches",
                "",
                Most(0),
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_and_every_command_prints_json() {
        let names: std::collections::BTreeSet<&str> =
            MEASUREMENTS.iter().map(|it| it.name).collect();

        assert_eq!(names.len(), MEASUREMENTS.len());
        assert!(MEASUREMENTS.iter().all(|it| it.args.contains(&"--json")));
    }
}
