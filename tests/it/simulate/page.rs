//! Level: the `kerf` binary and a real browser. The page of `-o html`, opened in headless Chromium.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::stage::{binary, root};

/// Presses keys as a person does and writes what came of it into the document, where `--dump-dom` shows it.
const KEYBOARD: &str = r#"<script>
{ const press = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const first = document.querySelector(".node[tabindex='0']");
  if (first) { first.focus(); press("ArrowRight");
  document.documentElement.dataset.afterArrow = document.activeElement.dataset.index;
  press("End"); document.documentElement.dataset.afterEnd = document.activeElement.dataset.index;
  document.documentElement.dataset.detail = document.getElementById("detail").firstChild.textContent; } }
</script></body>"#;

/// So tall that all of a small page is near it: in a small window nodes come into view frame by frame as those above them are
/// drawn, and a busy machine draws few frames.
const WINDOW: &str = "--window-size=1280,4000";
const QUICKSTART: &str = "examples/quickstart";

/// The page that manifests and arguments make, and the document that a browser makes of it.
fn open(manifests: &str, arguments: &[&str], folder: &Path) -> (Value, String) {
    let run = |form: &str| {
        let output = Command::new(binary("kerf"))
            .args(["simulate", "-f", manifests, "-o", form])
            .args(arguments)
            .current_dir(root())
            .output()
            .expect("run kerf");
        String::from_utf8(output.stdout).unwrap()
    };
    let page = folder.join("page.html");
    let html = run("html").replace("</body>", KEYBOARD);
    std::fs::write(&page, html).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            WINDOW,
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("browser").display()
        ))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("run chromium (apt-get install chromium)");
    let log = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(":CONSOLE"))
        .collect();
    assert!(said.is_empty(), "{said:?}");
    let json = serde_json::from_str(&run("json")).expect("JSON");
    (json, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The value of `data-NAME` of the document.
fn data(dom: &str, name: &str) -> String {
    let start = format!("data-{name}=\"");
    let rest = dom.split(&start).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("no {start} in {}", &dom[..dom.len().min(600)]));
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn the_page_shows_the_right_numbers_and_goes_by_keyboard() {
    let folder = tempfile::tempdir().unwrap();

    let (json, dom) = open(QUICKSTART, &["--scale", "deploy/web=30"], folder.path());

    let nodes = json["newNodes"].as_array().unwrap().len();
    assert!(nodes > 2, "{nodes}");
    assert_eq!(data(&dom, "nodes"), nodes.to_string());
    let price = json["summary"]["pricePerHour"].as_f64().unwrap();
    let headline =
        format!("30 pods, {nodes} new nodes, CNY {price:.2} per hour, 0 without a place");
    assert!(
        dom.contains(&format!("<h1 id=\"headline\">{headline}</h1>")),
        "{headline}"
    );
    assert_eq!(dom.matches("role=\"button\"").count(), nodes);
    assert_eq!(dom.matches("class=\"bar\"").count(), 2 * nodes);

    // Nodes stand by pool and zone, so the second on the page need not be the second of the plan.
    assert_ne!(data(&dom, "after-arrow"), "0");
    assert_ne!(data(&dom, "after-end"), data(&dom, "after-arrow"));
    assert!(
        data(&dom, "detail").starts_with("default: ecs."),
        "{}",
        data(&dom, "detail")
    );
}

#[test]
fn the_page_takes_ten_thousand_pods() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "nodepool.default.spec.limits.cpu=100000";

    let (json, dom) = open(
        QUICKSTART,
        &["--scale", "deploy/web=10000", "--set", limits],
        folder.path(),
    );

    let nodes = json["newNodes"].as_array().unwrap().len();
    assert_eq!(data(&dom, "nodes"), nodes.to_string());
    // Bars are drawn when their node comes near the window; the rest only has its words.
    assert!(
        dom.matches("class=\"bar\"").count() < nodes,
        "all bars are drawn at once"
    );
}

#[test]
fn the_page_shows_what_would_go_and_why_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = "tests/fixtures/simulate/spot.catalog.json";

    let (json, dom) = open(
        "tests/fixtures/simulate/disrupt",
        &["--catalog", catalog, "--disrupt"],
        folder.path(),
    );

    assert_eq!(json["disruption"]["savingPerHour"], 1.2);
    assert_eq!(data(&dom, "going"), "2");
    for part in [
        "2 of 4 nodes would go now, which saves CNY 1.200 per hour",
        "delete node-idle: empty; saves CNY 0.300 per hour",
        "delete node-big: underutilized; 1 pod moves; saves CNY 0.900 per hour",
        "shop/api (Pod shop/api) moves to node-small-2",
        "1 node stays: pod shop/web-2 forbids disruption",
    ] {
        assert!(dom.contains(part), "{part:?} is not in the page");
    }
    assert_eq!(dom.matches("class=\"command\"").count(), 2);
}
