//! Level: the real control plane and a real Prometheus. What the chart's dashboard asks and what its alerts watch is there.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ecs_sim::{Effect, Fault};
use serde_json::Value;

use crate::metrics;
use crate::policies;
use crate::scenarios::{deployment, pool};
use crate::stage::{Stage, root};

const DASHBOARD: &str = include_str!("../../charts/kerf/files/dashboard.json");
const ALERTS: &str = include_str!("../../charts/kerf/files/alerts.yaml");
const METRICS: &str = include_str!("../../docs/metrics.md");

/// Panels that have data only after something went wrong which this run cannot bring about.
const NEEDS_AN_ERROR: &[&str] = &["Commands taken back"];

/// The only type of a NodePool of its own, and of no other node here.
const SCARCE_TYPE: &str = "ecs.g7.8xlarge";

/// A Prometheus of the Debian package, as a process of its own.
struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Scrapes `target` every three seconds, which a development build on busy cores may need for one, and knows these rules.
    fn start(stage: &Stage, target: &str, rules: &str, folder: &Path) -> Self {
        let config = format!(
            "global: {{scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s}}\nrule_files: [rules.yaml]\nscrape_configs: [{{job_name: kerf, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        std::fs::write(folder.join("prometheus.yaml"), config).unwrap();
        std::fs::write(folder.join("rules.yaml"), rules).unwrap();
        let log = folder.join("log");
        let process = Command::new("prometheus")
            .arg("--config.file=prometheus.yaml")
            .args([
                "--storage.tsdb.path=data",
                "--web.listen-address=127.0.0.1:0",
            ])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("run prometheus (apt-get install prometheus)");
        let id = process.id();
        let address = stage.until("Prometheus listening", || async { listens(id) });
        let it = Self { process, address };
        stage.until("Prometheus ready", || async {
            it.request("GET", "/-/ready", "").map(drop)
        });
        it
    }

    /// The body of a good answer.
    fn request(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let answer = self.request(method, path, body)?;
        let answer: Value = serde_json::from_str(&answer).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// Every number that the query gave in the last ten minutes, a second apart; `None` where it is refused.
    fn history(&self, query: &str) -> Option<Vec<f64>> {
        let now = jiff::Timestamp::now().as_second();
        let query: String = query.bytes().map(|it| format!("%{it:02X}")).collect();
        let body = format!("query={query}&start={}&end={now}&step=1", now - 600);
        let data = self.json("POST", "/api/v1/query_range", &body)?;
        let series = data["result"].as_array()?.iter();
        let samples = series.flat_map(|it| it["values"].as_array().cloned().unwrap_or_default());
        let numbers = samples.filter_map(|it| it[1].as_str()?.parse::<f64>().ok());
        Some(numbers.filter(|it| it.is_finite()).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // A process that ended already is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The loopback address that the process listens on, by its sockets in /proc.
fn listens(process: u32) -> Option<SocketAddr> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let links = files.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    let sockets: BTreeSet<String> = links
        .filter_map(|it| {
            Some(
                it.to_str()?
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .to_owned(),
            )
        })
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_listening = fields.get(3) == Some(&"0A");
        let is_own = fields.get(9).is_some_and(|inode| sockets.contains(*inode));
        let port = fields.get(1)?.rsplit_once(':')?.1;
        let port = u16::from_str_radix(port, 16).ok()?;
        (is_listening && is_own).then(|| SocketAddr::from(([127, 0, 0, 1], port)))
    })
}

/// A panel of the dashboard and one of its queries, as Grafana sends it.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets
            .into_iter()
            .map(move |target| (title.clone(), target))
    });
    let filled = targets.map(|(title, target)| {
        let query = target["expr"].as_str().expect("a query").to_owned();
        let query = query
            .replace("$__rate_interval", "1m")
            .replace("$nodepool", ".*");
        (title, query)
    });
    filled.collect()
}

fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(ALERTS).expect("YAML");
    let groups = file["groups"].as_array().expect("groups");
    let rules = groups
        .iter()
        .flat_map(|it| it["rules"].as_array().cloned().unwrap_or_default());
    rules.collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The class of the policy tests, whose policy serves, with one more policy that is never found.
fn class_with_a_policy_that_is_missing() -> String {
    let class = policies::MANIFESTS.split("---").next().expect("the class");
    format!(
        "{class}    - name: missing\n      hook: InstanceSelection\n      source: {{configMap: {{name: nowhere, key: policy.wasm}}}}\n"
    )
}

fn fault(action: &str, code: &str, times: u32) -> Fault {
    Fault {
        action: action.to_owned(),
        when: Default::default(),
        skip: 0,
        times,
        after: false,
        effect: Effect::Error {
            status: 403,
            code: code.to_owned(),
        },
    }
}

/// A cluster that is scraped from its first second.
fn scraped_stage(folder: &Path, rules: &str) -> (Stage, Prometheus) {
    let mut stage = Stage::set();
    stage.apply(&class_with_a_policy_that_is_missing());
    policies::put_config_map(&stage, policies::PREFER_FAMILY);
    stage.apply(&pool("1s", "").replace("  disruption:", "  limits: {cpu: \"64\"}\n  disruption:"));
    // What is out of stock here has no other way out.
    let only = format!(
        "        - {{key: node.kubernetes.io/instance-type, operator: In, values: [{SCARCE_TYPE}]}}\n        - {{key: topology.kubernetes.io/zone, operator: In, values: [cn-hangzhou-h]}}"
    );
    stage.apply(&pool("1s", &only).replacen("name: default", "name: scarce", 1));
    stage.start_kerf(&["--pod-metrics"]);
    let target = stage.until("where metrics are served", || async {
        metrics::address(&stage)
    });
    let prometheus = Prometheus::start(&stage, &target, rules, folder);
    stage.until("a first scrape", || async {
        let samples = prometheus.history("karpenter_build_info")?;
        (!samples.is_empty()).then_some(())
    });
    policies::until_policy(&stage, "Ready", "");
    (stage, prometheus)
}

/// Everything that panels show: nodes come and go, a pod that fits nowhere, no stock, a cloud that refuses a deletion.
fn live(stage: &Stage) {
    // A pod of 1,000 cores fits on no type there is.
    stage.apply(&deployment("huge", 1, "1000", "1Gi", ""));
    let mut no_stock = fault("RunInstances", "OperationDenied.NoStock", 1);
    no_stock
        .when
        .insert("InstanceType".to_owned(), SCARCE_TYPE.to_owned());
    stage.sim.add_fault(no_stock);
    stage.apply(&deployment(
        "scarce",
        1,
        "500m",
        "512Mi",
        "      nodeSelector: {karpenter.sh/nodepool: scarce}",
    ));
    stage.apply(&deployment("web", 2, "500m", "512Mi", ""));
    stage.until("two pods bound", || async {
        (stage.bound_pods().await.len() == 2).then_some(())
    });
    stage.apply(&deployment("more", 2, "2", "2Gi", ""));
    stage.until("four pods bound", || async {
        (stage.bound_pods().await.len() == 4).then_some(())
    });
    // Both, because nodes that go together share a call.
    for action in ["DeleteInstance", "DeleteInstances"] {
        stage.sim.add_fault(fault(action, "Forbidden.RAM", 2));
    }
}

#[test]
fn every_panel_has_data_and_an_alert_fires_on_a_pod_that_fits_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    // As in the chart, but without the patience that keeps short waits from waking somebody.
    let impatient: Vec<&str> = ALERTS
        .lines()
        .filter(|it| !it.trim_start().starts_with("for:"))
        .collect();
    let (stage, prometheus) = scraped_stage(folder.path(), &impatient.join("\n"));

    live(&stage);

    stage.until("the alert on the pod that fits nowhere", || async {
        let fired = prometheus
            .history("ALERTS{alertname=\"KerfPodsWithoutPlace\",alertstate=\"firing\"}")?;
        (!fired.is_empty()).then_some(())
    });
    stage.apply(&deployment("web", 0, "500m", "512Mi", ""));
    stage.apply(&deployment("more", 0, "2", "2Gi", ""));
    stage.until_empty();
    let without_data = || {
        let mut queries = queries();
        queries.retain(|(title, query)| {
            !NEEDS_AN_ERROR.contains(&title.as_str())
                && prometheus.history(query).is_none_or(|it| it.is_empty())
        });
        queries
    };
    // What happened last is in the next scrapes.
    let complete = stage.until_or_none(|| async { without_data().is_empty().then_some(()) });
    let targets = prometheus
        .json("GET", "/api/v1/targets", "")
        .expect("the targets");
    let scraped = text(&targets, "/activeTargets/0/lastError");
    assert!(
        complete.is_some(),
        "no data of {:?}; {scraped}",
        without_data()
    );
    assert_eq!(scraped, "", "the last scrape failed");
    for (title, query) in queries() {
        assert!(
            prometheus.history(&query).is_some(),
            "{title}: Prometheus refuses {query}"
        );
    }
    let rules = prometheus
        .json("GET", "/api/v1/rules", "")
        .expect("the rules");
    let rules = rules["groups"][0]["rules"]
        .as_array()
        .expect("rules")
        .clone();
    assert_eq!(rules.len(), alerts().len());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

fn promtool(arguments: &[&str], folder: &Path) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("run promtool (apt-get install prometheus)");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn each_alert_fires_on_its_trouble_after_its_patience_and_not_before() {
    let fixture = "tests/fixtures/prometheus/alerts.yaml";

    promtool(
        &["check", "rules", "charts/kerf/files/alerts.yaml"],
        &root(),
    );
    promtool(&["test", "rules", fixture], &root());

    let tests = std::fs::read_to_string(root().join(fixture)).unwrap();
    for alert in alerts() {
        let name = text(&alert, "/alert");
        assert!(
            tests.contains(&format!("alertname: {name}\n")),
            "no test of {name}"
        );
    }
}

#[test]
fn whoever_is_woken_by_an_alert_finds_a_page_that_says_what_to_do() {
    let mut pages: BTreeSet<PathBuf> = std::fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.file_name().is_some_and(|name| name != "README.md"))
        .collect();
    for alert in alerts() {
        let name = text(&alert, "/alert");
        let page = root().join(text(&alert, "/annotations/runbook_url"));
        let words = std::fs::read_to_string(&page).unwrap_or_default();
        for part in [
            &format!("# {name}\n"),
            "## Meaning",
            "## First look",
            "## Fix",
        ] {
            assert!(
                words.contains(part),
                "{name}: {} has no {part:?}",
                page.display()
            );
        }
        for field in [
            "/labels/severity",
            "/annotations/summary",
            "/annotations/description",
        ] {
            assert!(!text(&alert, field).is_empty(), "{name} has no {field}");
        }
        assert!(
            pages.remove(&page),
            "{name}: {} is another alert's",
            page.display()
        );
    }
    assert!(pages.is_empty(), "pages of no alert: {pages:?}");
}

/// The names of metrics in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    query
        .split(move |it| !is_part(it))
        .filter(|it| it.starts_with("karpenter_") || it.starts_with("kerf_"))
}

#[test]
fn dashboard_and_alerts_ask_only_for_metrics_that_there_are() {
    let expressions = alerts().into_iter().map(|it| text(&it, "/expr").to_owned());
    let mut unknown = BTreeSet::new();
    for query in queries()
        .into_iter()
        .map(|(_, query)| query)
        .chain(expressions)
    {
        for name in names(&query) {
            let stem = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|it| name.strip_suffix(it));
            let is_known = |name: &str| METRICS.contains(&format!("`{name}`"));
            if !is_known(name) && !stem.is_some_and(is_known) {
                unknown.insert(name.to_owned());
            }
        }
    }
    assert!(unknown.is_empty(), "not in docs/metrics.md: {unknown:?}");
}
