//! Level: the real host and components that plugins/ builds now. One table of behaviours (plugins/behaviours.json) for
//! three hooks in five languages: 15 tests. A language whose SDK is gone fails three of them.
//!
//! `cargo xtask plugins build` builds the components; `make test` does it first.

use crate::guest::{ENGINE, question};
use kerf_policy::{
    BootstrapInput, CallError, CallLimits, CallReport, Hook, Metadata, Node, Part, Policy,
    PricingContext, PricingInput, SelectionInput,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const TABLE: &str = include_str!("../../../../plugins/behaviours.json");

/// One policy of one language, and its rows of the table.
struct Subject {
    policy: Policy,
    rows: Value,
}

/// A debug build on a busy machine takes its time; fuel and memory are the product's.
fn limits() -> CallLimits {
    CallLimits {
        timeout: Duration::from_secs(60),
        ..CallLimits::default()
    }
}

fn component(language: &str, name: &str) -> Vec<u8> {
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../../plugins/target/components",
        language,
        &format!("{name}.wasm"),
    ]
    .iter()
    .collect();
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run `cargo xtask plugins build`",
            path.display()
        )
    })
}

impl Subject {
    fn load(language: &str, hook: Hook) -> Self {
        let table: Value = serde_json::from_str(TABLE).unwrap();
        let rows = table[hook.as_str()].clone();
        let bytes = component(language, rows["policy"].as_str().unwrap());
        let policy = Policy::load(&ENGINE, &bytes, hook, None).unwrap();
        Self { policy, rows }
    }

    fn selection(&self) -> SelectionInput {
        let types = self.rows["types"].as_array().unwrap().iter();
        let types: Vec<(&str, &str, u32)> = types
            .map(|it| {
                let price = u32::try_from(it[2].as_u64().unwrap()).unwrap();
                (it[0].as_str().unwrap(), it[1].as_str().unwrap(), price)
            })
            .collect();
        question(&types)
    }

    /// What the policy answers, in the table's words.
    fn answer(&self, config: &str) -> CallReport<Value> {
        match self.policy.hook() {
            Hook::InstanceSelection => self.order(config),
            Hook::PricingPreference => self.prices(config),
            Hook::BootstrapUserData => self.scripts(config),
        }
    }

    fn order(&self, config: &str) -> CallReport<Value> {
        let input = self.selection();
        let name = |i: usize| input.candidates[i].instance_type.clone();
        let report = self.policy.select(config, &limits(), &input);
        with(report, |selection| {
            let order: Vec<String> = selection.order().into_iter().map(name).collect();
            let excluded = selection.exclusions.iter();
            let excluded: Vec<String> = excluded
                .map(|it| format!("{}: {}", name(it.candidate), it.reason))
                .collect();
            json!({"order": order, "excluded": excluded})
        })
    }

    fn prices(&self, config: &str) -> CallReport<Value> {
        let SelectionInput {
            context,
            candidates,
        } = self.selection();
        let input = PricingInput {
            context: PricingContext {
                node_class: context.node_class,
                region: context.region,
                as_of_unix_s: 0,
                vocabulary: context.vocabulary,
            },
            candidates,
        };
        let report = self.policy.adjust(config, &limits(), &input);
        with(report, |adjustments| {
            let (mut prices, mut reasons) = (serde_json::Map::new(), Vec::new());
            for it in adjustments {
                let name = &input.candidates[it.candidate].instance_type;
                // All four offerings of a type have one price, so that a type stands for them.
                let before = prices.insert(name.clone(), it.price_micros.into());
                assert!(before.is_none_or(|before| before == it.price_micros));
                reasons.extend(it.reason);
            }
            reasons.dedup();
            json!({"prices": prices, "reasons": reasons})
        })
    }

    fn scripts(&self, config: &str) -> CallReport<Value> {
        let report = self.policy.render(config, &limits(), &launch_group());
        with(report, |parts| {
            let is_script = |part: &Part| part.content_type == "text/x-shellscript";
            assert!(parts.iter().all(is_script));
            let bodies: Vec<String> = parts.into_iter().map(|part| part.body).collect();
            json!({ "scripts": bodies })
        })
    }

    fn check_metadata(&self) {
        let Metadata {
            name,
            version,
            summary,
            config_schema,
            default_config,
            time_step_secs,
        } = self.policy.metadata();
        assert_eq!(Value::from(name.as_str()), self.rows["policy"]);
        assert_eq!(Value::from(summary.as_str()), self.rows["summary"]);
        assert_eq!((version.as_str(), *time_step_secs), ("0.1.0", 0));
        assert!(default_config.is_object());
        // The texts for people may be wrapped differently, but they are there.
        let schema = config_schema.as_ref().unwrap();
        assert_eq!(schema["additionalProperties"], false);
        let properties = schema["properties"].as_object().unwrap();
        assert!(properties.values().all(|it| it["description"].is_string()));
    }

    fn check_answers(&self) {
        for row in self.rows["cases"].as_array().unwrap() {
            let config = row["config"].to_string();
            let (one, two) = (self.answer(&config), self.answer(&config));

            assert_eq!(
                one.result.as_ref(),
                Ok(&row["answer"]),
                "{}; log: {:?}",
                row["name"],
                one.log
            );
            assert_eq!(one.result, two.result, "{}", row["name"]);
            assert_eq!(
                one.fuel, two.fuel,
                "{}: equal questions cost equally",
                row["name"]
            );
            let errors = self.errors(&config);
            assert_eq!(errors, [""; 0], "{} is a good configuration", row["name"]);
        }
    }

    fn check_refusals(&self) {
        for row in self.rows["refused"].as_array().unwrap() {
            let errors: Vec<Value> = self
                .errors(&row["config"].to_string())
                .into_iter()
                .map(Value::from)
                .collect();
            assert_eq!(Value::from(errors), row["errors"]);
        }
        // Past the schema, as nothing but a bug in the host would let it.
        let error = self.answer("this is not JSON").result.unwrap_err();
        assert_eq!(error.class(), "config", "{error}");
    }

    fn errors(&self, config: &str) -> Vec<String> {
        let errors = self.policy.validate_config(config, &limits()).unwrap();
        errors.iter().map(ToString::to_string).collect()
    }
}

fn with<T>(report: CallReport<T>, f: impl FnOnce(T) -> Value) -> CallReport<Value> {
    CallReport {
        result: report.result.map(f),
        fuel: report.fuel,
        elapsed: report.elapsed,
        memory_bytes_max: report.memory_bytes_max,
        log: report.log,
        log_lines_dropped: report.log_lines_dropped,
    }
}

fn launch_group() -> BootstrapInput {
    let join = Part {
        content_type: "text/x-shellscript".into(),
        name: Some("join.sh".into()),
        body: "#!/bin/bash\n/attach_node.sh --token __TOKEN__\n".into(),
    };
    BootstrapInput {
        node: Node {
            node_pool: "default".into(),
            node_class: "default".into(),
            region: "cn-hangzhou".into(),
            instance_types: vec!["ecs.g7.large".into()],
            architecture: "amd64".into(),
            capacity_type: "spot".into(),
            image_id: "m-1".into(),
            image_family: String::new(),
            kubernetes_version: "1.36".into(),
            max_pods: 64,
            kubelet_json: "{}".into(),
            labels: vec![("team".into(), "a".into())],
            taints: vec![],
            max_bytes: 16_384,
        },
        parts: vec![join.clone()],
        host_owned: vec![join],
    }
}

fn check(language: &str, hook: Hook) {
    let subject = Subject::load(language, hook);
    subject.check_metadata();
    subject.check_answers();
    subject.check_refusals();
}

/// What users see of a policy that throws, and of one that says what is wrong.
fn check_crash(language: &str) {
    let bytes = component(language, "crash");
    let policy = Policy::load(&ENGINE, &bytes, Hook::InstanceSelection, None).unwrap();
    let input = question(&[("ecs.g7.large", "amd64", 1)]);
    let fail = |how: &str| {
        let config = json!({ "how": how }).to_string();
        let report = policy.select(&config, &limits(), &input);
        assert_eq!(
            report.log[0].text,
            format!("about to fail how={how}"),
            "{how}"
        );
        report.result.unwrap_err()
    };
    assert_eq!(
        fail("config"),
        CallError::InvalidConfig("deliberate".into())
    );
    assert_eq!(
        fail("unsupported"),
        CallError::Unsupported("deliberate".into())
    );
    let crash = fail("panic");
    assert!(
        ["trap", "guest_error"].contains(&crash.class()),
        "{}",
        crash.class()
    );
    let message = crash.to_string();
    assert!(message.contains("deliberate"), "{message}");
    let place = match language {
        "rust" => "lib.rs:",
        "javascript" => "policy.js:",
        "c" => "policy.c:",
        _ => "(line ",
    };
    assert!(message.contains(place), "where it happened: {message}");
}

macro_rules! languages {
    ($($language:ident),*) => {$(
        mod $language {
            use super::{Hook, check, check_crash};

            const LANGUAGE: &str = stringify!($language);

            #[test]
            fn selects() {
                check(LANGUAGE, Hook::InstanceSelection);
            }

            #[test]
            fn prices() {
                check(LANGUAGE, Hook::PricingPreference);
            }

            #[test]
            fn bootstraps() {
                check(LANGUAGE, Hook::BootstrapUserData);
            }

            #[test]
            fn says_what_and_where_when_it_crashes() {
                check_crash(LANGUAGE);
            }
        }
    )*};
}

languages!(rust, javascript, python, go, c);
