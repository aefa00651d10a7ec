//! Questions to policies: whole ones from files, and small ones made of a few instance types.

use anyhow::{Context as _, Result, bail};
use kerf_policy::{
    BootstrapInput, CallLimits, CallReport, Candidate, Context, Demand, Hook, Node, Offering, Part,
    Policy, PricingContext, PricingInput, Resources, SelectionInput, Vocabulary,
};
use serde_json::{Value, json};

/// A question to a policy of any hook.
pub(crate) enum Question {
    Selection(SelectionInput),
    Pricing(PricingInput),
    Bootstrap(BootstrapInput),
}

/// A type, its architecture, and its price in millionths per hour.
pub(crate) type Type = (String, String, u32);

impl Question {
    /// A small question of the hook, about these types.
    pub(crate) fn small(hook: Hook, types: &[Type]) -> Self {
        let input = selection(types);
        match hook {
            Hook::InstanceSelection => Self::Selection(input),
            Hook::PricingPreference => Self::Pricing(pricing(input)),
            Hook::BootstrapUserData => Self::Bootstrap(bootstrap()),
        }
    }

    /// A whole question.
    pub(crate) fn parse(hook: Hook, value: Value) -> Result<Self> {
        Ok(match hook {
            Hook::InstanceSelection => Self::Selection(serde_json::from_value(value)?),
            Hook::PricingPreference => Self::Pricing(serde_json::from_value(value)?),
            Hook::BootstrapUserData => Self::Bootstrap(serde_json::from_value(value)?),
        })
    }

    /// The lowest hourly price of an instance type that is asked about, in millionths; `None` where nobody knows it.
    pub(crate) fn price_of(&self, instance_type: &str) -> Option<u32> {
        let candidates = match self {
            Self::Selection(input) => &input.candidates,
            Self::Pricing(input) => &input.candidates,
            Self::Bootstrap(_) => return None,
        };
        let one = candidates
            .iter()
            .find(|it| it.instance_type == instance_type)?;
        let prices = one.offerings.iter().map(|it| it.price_micros);
        prices.filter(|price| *price != u32::MAX).min()
    }

    /// Asks it; the answer is in the words of a case.
    pub(crate) fn ask(
        &self,
        policy: &Policy,
        config: &str,
        limits: &CallLimits,
    ) -> CallReport<Value> {
        match self {
            Self::Selection(input) => {
                let name = |i: usize| input.candidates[i].instance_type.clone();
                with(policy.select(config, limits, input), |selection| {
                    let order: Vec<String> = selection.order().into_iter().map(name).collect();
                    let excluded = selection.exclusions.iter();
                    let excluded: Vec<String> = excluded
                        .map(|it| format!("{}: {}", name(it.candidate), it.reason))
                        .collect();
                    json!({"order": order, "excluded": excluded})
                })
            }
            Self::Pricing(input) => with(policy.adjust(config, limits, input), |adjustments| {
                let prices: serde_json::Map<String, Value> = adjustments
                    .iter()
                    .map(|it| {
                        let name = &input.candidates[it.candidate].instance_type;
                        (name.clone(), it.price_micros.into())
                    })
                    .collect();
                json!({ "prices": prices })
            }),
            Self::Bootstrap(input) => with(policy.render(config, limits, input), |parts| {
                let bodies: Vec<String> = parts.into_iter().map(|part| part.body).collect();
                json!({ "scripts": bodies })
            }),
        }
    }

    /// What comes of no policy, in the same words.
    pub(crate) fn before(&self) -> Value {
        match self {
            Self::Selection(input) => json!({"order": names(&input.candidates), "excluded": []}),
            Self::Pricing(_) => json!({"prices": {}}),
            Self::Bootstrap(input) => {
                let bodies: Vec<&str> = input.parts.iter().map(|part| &*part.body).collect();
                json!({ "scripts": bodies })
            }
        }
    }

    /// The same without candidates, and with names as long as they get: what policies forget.
    pub(crate) fn hostile(hook: Hook) -> Vec<(&'static str, Self)> {
        if hook == Hook::BootstrapUserData {
            return Vec::new();
        }
        let long = format!("ecs.{}.large", "x".repeat(200));
        let many: Vec<Type> = (0..1_000)
            .map(|i| (format!("ecs.f{i}.large"), "amd64".to_owned(), 1_000 + i))
            .collect();
        let unknown = [("ecs.g7.large".to_owned(), "arm64".to_owned(), u32::MAX)];
        vec![
            ("no candidates", Self::small(hook, &[])),
            ("1,000 candidates", Self::small(hook, &many)),
            (
                "a long name",
                Self::small(hook, &[(long, "riscv64".to_owned(), 0)]),
            ),
            ("a price that nobody knows", Self::small(hook, &unknown)),
        ]
    }
}

/// The types of a case.
pub(crate) fn types(value: &Value) -> Result<Vec<Type>> {
    let parse = |row: &Value| -> Option<Type> {
        let price = row.get(2)?.as_u64().and_then(|it| u32::try_from(it).ok())?;
        let text = |i: usize| row.get(i).and_then(Value::as_str).map(str::to_owned);
        Some((text(0)?, text(1)?, price))
    };
    let Some(rows) = value.as_array() else {
        bail!("types is no list: write [[\"ecs.g7.large\", \"amd64\", 400000]]");
    };
    rows.iter()
        .map(|row| {
            parse(row).with_context(|| {
                format!("types: {row} is not [name, architecture, price in millionths]")
            })
        })
        .collect()
}

/// What a question is about when nothing is said.
pub(crate) fn usual_types() -> Vec<Type> {
    [
        ("ecs.t6-c1m2.large", "amd64", 170_000),
        ("ecs.c8y.large", "arm64", 300_000),
        ("ecs.c7.large", "amd64", 390_000),
        ("ecs.g7.large", "amd64", 500_000),
        ("ecs.g8i.large", "amd64", 520_000),
        ("ecs.g7.xlarge", "amd64", 1_000_000),
    ]
    .map(|(name, architecture, price)| (name.to_owned(), architecture.to_owned(), price))
    .into()
}

fn names(candidates: &[Candidate]) -> Vec<&str> {
    candidates.iter().map(|it| &*it.instance_type).collect()
}

fn with<T>(report: CallReport<T>, f: impl FnOnce(T) -> Value) -> CallReport<Value> {
    let CallReport {
        result,
        fuel,
        elapsed,
        memory_bytes_max,
        log,
        log_lines_dropped,
    } = report;
    CallReport {
        result: result.map(f),
        fuel,
        elapsed,
        memory_bytes_max,
        log,
        log_lines_dropped,
    }
}

fn pricing(input: SelectionInput) -> PricingInput {
    let SelectionInput {
        context,
        candidates,
    } = input;
    PricingInput {
        context: PricingContext {
            node_class: context.node_class,
            region: context.region,
            as_of_unix_s: 0,
            vocabulary: context.vocabulary,
        },
        candidates,
    }
}

/// All of the types in two zones, on demand and as spot at the same price.
fn selection(types: &[Type]) -> SelectionInput {
    let strings = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let (mut families, mut architectures) = (Vec::new(), Vec::new());
    let index = |table: &mut Vec<String>, word: &str| {
        let found = table.iter().position(|it| it == word);
        let at = found.unwrap_or_else(|| {
            table.push(word.to_owned());
            table.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    };
    let candidates = types
        .iter()
        .map(|(name, architecture, price)| {
            let family = name.rsplit_once('.').map_or(&**name, |(family, _)| family);
            let family = index(&mut families, family);
            candidate(
                name,
                family,
                index(&mut architectures, architecture),
                *price,
            )
        })
        .collect();
    let demand = resources(1_000, 2_048);
    SelectionInput {
        context: Context {
            reason: "test".into(),
            node_pool: "default".into(),
            node_class: "default".into(),
            region: "cn-hangzhou".into(),
            as_of_unix_s: 0,
            vocabulary: Vocabulary {
                zones: strings(&["cn-hangzhou-h", "cn-hangzhou-i"]),
                families,
                architectures,
                capacity_types: strings(&["on-demand", "spot"]),
            },
            demand: Demand {
                pods: 1,
                total: demand,
                largest_pod: demand,
                daemon_overhead: resources(100, 200),
            },
            requirements: vec![],
            fleet: vec![],
            labels: vec![],
        },
        candidates,
    }
}

fn candidate(name: &str, family: u16, architecture: u16, price: u32) -> Candidate {
    let offering = |i: u16| Offering {
        zone: i / 2,
        capacity_type: i % 2,
        price_micros: price,
        list_price_micros: price,
        interruption_permille: None,
        recent_failures: 0,
        reservation: None,
    };
    Candidate {
        instance_type: name.to_owned(),
        family,
        architecture,
        generation: 7,
        capacity: resources(4_000, 16_384),
        allocatable: resources(3_900, 15_000),
        network_mbps: 1_000,
        local_disk_gib: 0,
        bare_metal: false,
        burstable: name.starts_with("ecs.t"),
        gpu_model: None,
        extended: vec![],
        offerings: (0..4).map(offering).collect(),
    }
}

fn resources(cpu_milli: u32, memory_mib: u32) -> Resources {
    Resources {
        cpu_milli,
        memory_mib,
        ephemeral_mib: 40_960,
        pods: 64,
        gpus: 0,
    }
}

fn bootstrap() -> BootstrapInput {
    let join = Part {
        content_type: "text/x-shellscript".into(),
        name: Some("join.sh".into()),
        body: "#!/bin/bash\n/bin/true --token __KERF_JOIN_TOKEN__\n".into(),
    };
    BootstrapInput {
        node: Node {
            node_pool: "default".into(),
            node_class: "default".into(),
            region: "cn-hangzhou".into(),
            instance_types: vec!["ecs.g7.large".into()],
            architecture: "amd64".into(),
            capacity_type: "on-demand".into(),
            image_id: "m-1".into(),
            image_family: "acs:alibaba_cloud_linux_3_2104_lts_x64".into(),
            kubernetes_version: "1.36".into(),
            max_pods: 64,
            kubelet_json: "{}".into(),
            labels: vec![],
            taints: vec![],
            max_bytes: 16 << 10,
        },
        parts: vec![join.clone()],
        host_owned: vec![join],
    }
}
