//! Level: the `kerf` binary and ecs-sim over HTTP. A catalog that was pulled from an account, and simulations with it.

use std::path::Path;
use std::process::{Command, Output};

use ecs_sim::{EcsSim, Options, StockRule, World};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::stage::{binary, root};

const QUICKSTART: &str = "examples/quickstart";

/// An account without the cheap types of the quick start's first choice.
fn account(runtime: &Runtime) -> EcsSim {
    let sold_out = |family: &str| StockRule {
        instance_type: Some(format!("{family}.*")),
        zone: None,
        capacity_type: None,
        count: 0,
        not_on_sale: false,
    };
    let options = Options {
        world: World {
            stock: vec![sold_out("ecs.c6a"), sold_out("ecs.c6t")],
            ..World::default()
        },
        ..Options::default()
    };
    runtime.block_on(EcsSim::start(options)).expect("ecs-sim")
}

pub(crate) fn pull(url: &str, file: &Path, secret: &str) -> Output {
    pull_with(url, file, secret, &[])
}

fn pull_with(url: &str, file: &Path, secret: &str, arguments: &[&str]) -> Output {
    Command::new(binary("kerf"))
        .args(["catalog", "pull", "--region", "cn-hangzhou", "-o"])
        .arg(file)
        .args(arguments)
        .current_dir(root())
        .env("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAIsim")
        .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret)
        .env("ECS_ENDPOINT", url)
        .output()
        .expect("run kerf")
}

fn simulate(arguments: &[&str]) -> Value {
    let output = Command::new(binary("kerf"))
        .args(["simulate", "-o", "json", "-f", QUICKSTART])
        .args(arguments)
        .current_dir(root())
        .env_remove("ALIBABA_CLOUD_REGION")
        .output()
        .expect("run kerf");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_pulled_catalog_plans_with_the_stock_of_the_account() {
    let runtime = Runtime::new().unwrap();
    let account = account(&runtime);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json.zst");

    let pulled = pull(account.url(), &file, "simulated");
    assert!(pulled.status.success(), "{pulled:?}");
    let said = String::from_utf8(pulled.stderr).unwrap();
    assert!(
        said.contains(" in 4 zones of cn-hangzhou: an account at "),
        "{said}"
    );

    let embedded = simulate(&[]);
    let own = simulate(&["--catalog", file.to_str().unwrap()]);
    let types = |report: &Value| -> Vec<String> {
        let nodes = report["newNodes"].as_array().unwrap().iter();
        nodes
            .map(|it| it["instanceType"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        types(&embedded).iter().all(|it| it.starts_with("ecs.c6a.")),
        "{embedded}"
    );
    assert!(!types(&own).is_empty());
    let is_sold_out = |it: &String| it.starts_with("ecs.c6a.") || it.starts_with("ecs.c6t.");
    assert!(!types(&own).iter().any(is_sold_out), "{own}");
    assert!(
        own["catalog"]
            .as_str()
            .unwrap()
            .starts_with("an account at "),
        "{own}"
    );

    // Nothing was changed by reading.
    let calls = account.calls();
    let writes: Vec<&String> = calls
        .keys()
        .filter(|it| !it.starts_with("Describe"))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn an_account_that_refuses_leaves_no_file() {
    let runtime = Runtime::new().unwrap();
    let account = account(&runtime);
    let folder = tempfile::tempdir().unwrap();

    let refused = pull(account.url(), &folder.path().join("catalog.json"), "wrong");

    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    let wanted = "cannot read what region cn-hangzhou sells: ";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("SignatureDoesNotMatch"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_catalog_pulled_with_live_prices_has_what_the_account_is_told() {
    let runtime = Runtime::new().unwrap();
    let world = serde_json::json!({
        "instanceTypes": [
            {"id": "ecs.g7.large", "cpu": 2, "memoryGib": 8, "pricePerHour": 0.5, "spotPercent": 30},
            {"id": "ecs.g7.xlarge", "cpu": 4, "memoryGib": 16, "pricePerHour": 1, "spotPercent": 30},
        ],
        "accountPrices": {"ecs.g7.large": 0.4, "ecs.g7.xlarge": 0},
    });
    let options = Options {
        world: serde_json::from_value(world).unwrap(),
        ..Options::default()
    };
    let account = runtime.block_on(EcsSim::start(options)).expect("ecs-sim");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json");

    let pulled = pull_with(account.url(), &file, "simulated", &["--live-prices"]);

    assert!(pulled.status.success(), "{pulled:?}");
    // Two types as spot and one on demand, in four zones: zero is no price.
    let said = String::from_utf8(pulled.stderr).unwrap();
    assert!(
        said.contains("; 12 prices as the account is told"),
        "{said}"
    );
    let catalog: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let prices = |index: usize| -> Vec<f64> {
        let sold = catalog["types"][index]["offerings"].as_array().unwrap();
        let prices = sold[..2].iter().map(|it| it["pricePerHour"].as_f64());
        prices.map(Option::unwrap).collect()
    };
    assert_eq!(prices(0), [0.4, 0.15]);
    let spot = prices(1)[1];
    assert!((spot - 0.3).abs() < 1e-9, "{spot}");
}
