//! Level: the real control plane. What `kerf simulate` plans for manifests is what the controller does with them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;
use serde_json::Value;

use crate::scenarios::ECSNODECLASS;
use crate::stage::{Stage, binary, root};

/// A node: instance type, zone, capacity type, and how many pods it was planned for.
type Node = [String; 4];
/// Nodes by NodePool, in order.
type Nodes = BTreeMap<String, Vec<Node>>;

/// What goes into the pools of a scenario and what waits for them.
struct Scenario {
    name: &'static str,
    pools: &'static [Pool],
    workloads: &'static [Workload],
}

/// Requirements and other fields of a pool, in YAML's short form.
struct Pool {
    requirements: &'static str,
    fields: &'static str,
}

/// A Deployment, unless it says another kind: replicas, requests, and more of its pod's spec.
struct Workload(&'static str, u32, &'static str, &'static str);

const ANY: &[Pool] = &[Pool {
    requirements: "",
    fields: "",
}];
const SPREAD: &str = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: NAME}}}]";
const SPREAD_SOFT: &str = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: NAME}}}]";
const APART: &str = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: NAME}}}]}}";
const TOGETHER: &str = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: NAME}}}]}}";
const RATHER_J: &str = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [cn-hangzhou-j]}]}}]}}";
const IN_K: &str = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [cn-hangzhou-k]}]}]}}}";
const G7_LARGE: &str =
    "{key: node.kubernetes.io/instance-type, operator: In, values: [ecs.g7.large]}";

const SCENARIOS: [Scenario; 20] = [
    Scenario {
        name: "one-pod",
        pools: ANY,
        workloads: &[Workload("a", 1, "{cpu: 500m, memory: 1Gi}", "")],
    },
    Scenario {
        name: "soft-spread",
        pools: ANY,
        workloads: &[Workload("a", 8, "{cpu: 1, memory: 1Gi}", SPREAD_SOFT)],
    },
    Scenario {
        name: "hard-spread",
        pools: ANY,
        workloads: &[Workload("a", 5, "{cpu: 1, memory: 2Gi}", SPREAD)],
    },
    Scenario {
        name: "apart",
        pools: ANY,
        workloads: &[Workload("a", 3, "{cpu: 300m, memory: 256Mi}", APART)],
    },
    Scenario {
        name: "together",
        pools: ANY,
        workloads: &[Workload("a", 3, "{cpu: 2, memory: 2Gi}", TOGETHER)],
    },
    Scenario {
        name: "mixed",
        pools: ANY,
        workloads: &[
            Workload("tiny", 8, "{cpu: 100m, memory: 128Mi}", ""),
            Workload("wide", 2, "{cpu: 2, memory: 1Gi}", ""),
            Workload("tall", 1, "{cpu: 1, memory: 12Gi}", ""),
        ],
    },
    Scenario {
        name: "memory",
        pools: ANY,
        workloads: &[Workload("a", 2, "{cpu: 100m, memory: 20Gi}", "")],
    },
    Scenario {
        name: "large",
        pools: ANY,
        workloads: &[Workload("a", 1, "{cpu: 20, memory: 8Gi}", "")],
    },
    Scenario {
        name: "one-zone",
        pools: ANY,
        workloads: &[Workload("a", 2, "{cpu: 1, memory: 1Gi}", IN_K)],
    },
    Scenario {
        name: "rather-j",
        pools: ANY,
        workloads: &[Workload("a", 2, "{cpu: 1, memory: 1Gi}", RATHER_J)],
    },
    Scenario {
        name: "one-type",
        pools: &[Pool {
            requirements: G7_LARGE,
            fields: "",
        }],
        workloads: &[Workload("a", 3, "{cpu: 1100m, memory: 1Gi}", "")],
    },
    Scenario {
        name: "no-family",
        pools: &[Pool {
            requirements: "{key: karpenter.alibabacloud.com/instance-family, operator: NotIn, values: [ecs.c6a, ecs.c6t]}",
            fields: "",
        }],
        workloads: &[Workload("a", 2, "{cpu: 1, memory: 1Gi}", "")],
    },
    Scenario {
        name: "big-machines",
        pools: &[Pool {
            requirements: "{key: karpenter.alibabacloud.com/instance-cpu, operator: Gt, values: [\"7\"]}",
            fields: "",
        }],
        workloads: &[Workload("a", 1, "{cpu: 1, memory: 1Gi}", "")],
    },
    Scenario {
        name: "small-machines",
        pools: &[Pool {
            requirements: "{key: karpenter.alibabacloud.com/instance-cpu, operator: Lt, values: [\"5\"]}",
            fields: "",
        }],
        workloads: &[Workload("a", 5, "{cpu: 1, memory: 1Gi}", "")],
    },
    Scenario {
        name: "two-pools",
        pools: &[
            Pool {
                requirements: "",
                fields: "",
            },
            Pool {
                requirements: G7_LARGE,
                fields: "weight: 10",
            },
        ],
        workloads: &[Workload("a", 1, "{cpu: 1, memory: 1Gi}", "")],
    },
    Scenario {
        name: "overflow",
        pools: &[
            Pool {
                requirements: G7_LARGE,
                fields: "weight: 10\n  limits: {cpu: 2}",
            },
            Pool {
                requirements: "",
                fields: "",
            },
        ],
        workloads: &[Workload("a", 2, "{cpu: 1100m, memory: 1Gi}", "")],
    },
    Scenario {
        name: "limit",
        pools: &[Pool {
            requirements: G7_LARGE,
            fields: "limits: {cpu: 4}",
        }],
        workloads: &[Workload("a", 3, "{cpu: 1100m, memory: 1Gi}", "")],
    },
    Scenario {
        name: "host-port",
        pools: ANY,
        workloads: &[Workload("port", 2, "{cpu: 200m, memory: 128Mi}", "")],
    },
    Scenario {
        name: "daemon",
        pools: ANY,
        workloads: &[
            Workload("a", 1, "{cpu: 1500m, memory: 1Gi}", ""),
            Workload("daemon", 1, "{cpu: 800m, memory: 256Mi}", ""),
        ],
    },
    Scenario {
        name: "job",
        pools: ANY,
        workloads: &[Workload("job", 2, "{cpu: 700m, memory: 512Mi}", "")],
    },
];

impl Scenario {
    fn manifests(&self) -> String {
        let name = self.name;
        let mut text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
        for (index, pool) in self.pools.iter().enumerate() {
            let requirement = match pool.requirements {
                "" => String::new(),
                requirement => format!("        - {requirement}\n"),
            };
            let _ = write!(
                text,
                r#"---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}-{index}}}
spec:
  {fields}
  template:
    metadata: {{labels: {{scenario: {name}}}}}
    spec:
      taints: [{{key: scenario, value: {name}, effect: NoSchedule}}]
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}}
        - {{key: kubernetes.io/arch, operator: In, values: ["amd64"]}}
{requirement}      nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
  disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: 720h}}
"#,
                fields = pool.fields
            );
        }
        for workload in self.workloads {
            text += &self.workload(workload);
        }
        text
    }

    fn workload(&self, workload: &Workload) -> String {
        let scenario = self.name;
        let Workload(name, replicas, requests, extra) = workload;
        let extra = extra.replace("NAME", name);
        let (head, restart) = match *name {
            "job" => (
                format!(
                    "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: job, namespace: {scenario}}}\nspec:\n  parallelism: {replicas}\n  completions: {replicas}"
                ),
                "restartPolicy: Never",
            ),
            "daemon" => (
                format!(
                    "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: daemon, namespace: {scenario}}}\nspec:\n  selector: {{matchLabels: {{app: daemon}}}}"
                ),
                "",
            ),
            _ => (
                format!(
                    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {scenario}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}"
                ),
                "",
            ),
        };
        let ports = match *name {
            "port" => ", ports: [{containerPort: 80, hostPort: 8080}]",
            _ => "",
        };
        format!(
            r#"---
{head}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      {restart}
      nodeSelector: {{scenario: {scenario}}}
      tolerations: [{{key: scenario, operator: Exists}}]
      {extra}
      containers: [{{name: main, image: registry.invalid/pause, resources: {{requests: {requests}}}{ports}}}]
"#
        )
    }
}

#[test]
fn the_plan_for_twenty_scenarios_is_what_the_controller_does_with_them() {
    let manifests: Vec<String> = SCENARIOS.iter().map(Scenario::manifests).collect();
    let manifests = format!("{ECSNODECLASS}\n---\n{}", manifests.join("---\n"));
    let report = simulate(&manifests, &[]);
    let (planned, summary) = (nodes_of(&report), &report["summary"]);
    let count = |field: &str| usize::try_from(summary[field].as_u64().unwrap()).unwrap();

    let mut stage = Stage::set();
    // With what the controller's own account sells the plan is the same: the account's on-demand prices are those of the
    // list.
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("catalog.json");
    let pulled = super::catalog::pull(stage.sim.url(), &catalog, "simulated");
    assert!(pulled.status.success(), "{pulled:?}");
    let with_catalog = simulate(&manifests, &["--catalog", catalog.to_str().unwrap()]);
    assert_eq!(nodes_of(&with_catalog), planned);
    stage.apply(&manifests);
    // All pods are there before the controller is, so that one plan sees them all, as the simulation does.
    stage.until("all pods, refused by kube-scheduler", || async {
        let pods: Vec<Pod> = stage.list_async().await;
        (pods.iter().filter(|pod| is_refused(pod)).count() == count("pods")).then_some(())
    });
    stage.start_kerf(&[]);
    let made = stage.until("a launched NodeClaim for each planned node", || async {
        let made = made(&stage.list_async().await)?;
        let nodes = made.values().map(Vec::len).sum::<usize>();
        (nodes >= count("newNodes")).then_some(made)
    });

    assert_eq!(made, planned);
    // And kube-scheduler agrees: every planned pod is bound, and no further node was needed for that.
    stage.until("every planned pod bound", || async {
        let pods: Vec<Pod> = stage.list_async().await;
        let bound = pods.iter().filter(|pod| {
            let is_daemon = pod.name_any().starts_with("daemon-");
            !is_daemon
                && pod
                    .spec
                    .as_ref()
                    .is_some_and(|spec| spec.node_name.is_some())
        });
        (bound.count() == count("onNewNodes")).then_some(())
    });
    assert_eq!(stage.list::<NodeClaim>().len(), count("newNodes"));
}

fn is_refused(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it.type_ == "PodScheduled" && it.reason.as_deref() == Some("Unschedulable"))
}

fn simulate(manifests: &str, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("all.yaml"), manifests).unwrap();
    let output = Command::new(binary("kerf"))
        .args(["simulate", "-o", "json", "--region", "cn-hangzhou", "-f"])
        .arg(folder.path())
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("run kerf");
    // The scenario `limit` leaves a pod without a place.
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn nodes_of(report: &Value) -> Nodes {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes = report["newNodes"].as_array().unwrap().iter();
    by_pool(nodes.map(|node| {
        let form = [
            text(&node["instanceType"]),
            text(&node["zone"]),
            text(&node["capacityType"]),
            text(&node["requested"]["pods"]),
        ];
        (text(&node["pool"]), form)
    }))
}

/// The same of NodeClaims; none as long as one of them is not launched.
fn made(claims: &[NodeClaim]) -> Option<Nodes> {
    let alive = |it: &&NodeClaim| it.metadata.deletion_timestamp.is_none();
    let nodes: Option<Vec<(String, Node)>> = claims.iter().filter(alive).map(form).collect();
    nodes.map(by_pool)
}

/// The pool of a claim that is launched, and what it became.
fn form(claim: &NodeClaim) -> Option<(String, Node)> {
    let label = |key: &str| claim.labels().get(key).cloned();
    let requests = &claim.spec.resources.as_ref()?.requests;
    let form = [
        label("node.kubernetes.io/instance-type")?,
        label("topology.kubernetes.io/zone")?,
        label("karpenter.sh/capacity-type")?,
        requests.get("pods")?.0.clone(),
    ];
    let pool = label("karpenter.sh/nodepool")?;
    claim.is_true("Launched").then_some((pool, form))
}

fn by_pool(nodes: impl IntoIterator<Item = (String, Node)>) -> Nodes {
    let mut by_pool = Nodes::new();
    for (pool, node) in nodes {
        by_pool.entry(pool).or_default().push(node);
    }
    by_pool.values_mut().for_each(|nodes| nodes.sort());
    by_pool
}
