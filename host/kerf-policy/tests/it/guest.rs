//! Hand-written guests: a core module in text, made a component of the world `selection-plugin`.

use kerf_policy::{
    Candidate, Context, Demand, Engine, Hook, Offering, Policy, Resources, SelectionInput,
    Vocabulary,
};
use std::sync::LazyLock;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// One engine for all tests, as in the product.
pub(crate) static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new().unwrap());

pub(crate) const PREFER_FAMILY: &[u8] = include_bytes!("../fixtures/prefer-family.wasm");
pub(crate) const FAMILY_DISCOUNT: &[u8] = include_bytes!("../fixtures/family-discount.wasm");
pub(crate) const NODE_TUNING: &[u8] = include_bytes!("../fixtures/node-tuning.wasm");
pub(crate) const CHEAPEST_ARM: &[u8] = include_bytes!("../fixtures/cheapest-arm.wasm");

/// Bodies of the three functions in WebAssembly text. By default the guest has no opinion.
pub(crate) struct Guest<'a> {
    pub describe: &'a str,
    pub validate: &'a str,
    pub select: &'a str,
    /// More data segments, from address 1024; the heap starts at 4096.
    pub data: &'a str,
    /// More imports, and the package with a world `more` that has them beside those of the contract.
    pub imports: &'a str,
    pub wit: Option<&'a str>,
}

impl Default for Guest<'_> {
    fn default() -> Self {
        Self {
            describe: "(i32.const 16)",
            validate: "(i32.const 160)",
            select: "(i32.const 128)",
            data: "",
            imports: "",
            wit: None,
        }
    }
}

impl Guest<'_> {
    pub(crate) fn component(&self) -> Vec<u8> {
        let Self {
            describe,
            validate,
            select,
            data,
            imports,
            wit,
        } = self;
        let holes = [
            ("{imports}", imports),
            ("{data}", data),
            ("{describe}", describe),
            ("{validate}", validate),
            ("{select}", select),
        ];
        // The comment at its head names the holes too.
        let (_, text) = include_str!("../guest.wat")
            .split_once("\n(module")
            .unwrap();
        let text = holes
            .iter()
            .fold(format!("(module{text}"), |text, (hole, body)| {
                text.replace(hole, body)
            });
        componentize(wat::parse_str(text).unwrap(), *wit)
    }

    pub(crate) fn load(&self) -> Policy {
        Policy::load(&ENGINE, &self.component(), Hook::InstanceSelection, None).unwrap()
    }
}

fn componentize(mut module: Vec<u8>, more: Option<&str>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit"))
        .unwrap();
    let (package, world) = match more {
        Some(wit) => (resolve.push_str("more.wit", wit).unwrap(), "more"),
        None => (package, "selection-plugin"),
    };
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .validate(true)
        .encode()
        .unwrap()
}

/// A question about instance types `(name, architecture, price)`, all of them in two zones and as both capacity types.
pub(crate) fn question(types: &[(&str, &str, u32)]) -> SelectionInput {
    let strings = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let mut families: Vec<String> = Vec::new();
    let mut candidates = Vec::new();
    for (name, architecture, price) in types {
        let family = name.rsplit_once('.').unwrap().0;
        if !families.iter().any(|it| it == family) {
            families.push(family.to_owned());
        }
        let family = families.iter().position(|it| it == family).unwrap();
        candidates.push(candidate(
            name,
            family,
            u16::from(*architecture == "arm64"),
            *price,
        ));
    }
    let resources = resources(1_000, 2_048);
    let context = Context {
        reason: "test".into(),
        node_pool: "default".into(),
        node_class: "default".into(),
        region: "cn-hangzhou".into(),
        as_of_unix_s: 0,
        vocabulary: Vocabulary {
            zones: strings(&["cn-hangzhou-h", "cn-hangzhou-i"]),
            families,
            architectures: strings(&["amd64", "arm64"]),
            capacity_types: strings(&["on-demand", "spot"]),
        },
        demand: Demand {
            pods: 1,
            total: resources,
            largest_pod: resources,
            daemon_overhead: resources,
        },
        requirements: vec![],
        fleet: vec![],
        labels: vec![],
    };
    SelectionInput {
        context,
        candidates,
    }
}

fn candidate(name: &str, family: usize, architecture: u16, price: u32) -> Candidate {
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
        instance_type: name.into(),
        family: u16::try_from(family).unwrap(),
        architecture,
        generation: 7,
        capacity: resources(4_000, 16_384),
        allocatable: resources(3_900, 15_000),
        network_mbps: 1_000,
        local_disk_gib: 0,
        bare_metal: false,
        burstable: false,
        gpu_model: None,
        extended: vec![],
        offerings: (0..4).map(offering).collect(),
    }
}

fn resources(cpu_milli: u32, memory_mib: u32) -> Resources {
    Resources {
        cpu_milli,
        memory_mib,
        ephemeral_mib: 0,
        pods: 64,
        gpus: 0,
    }
}
