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
}

impl Default for Guest<'_> {
    fn default() -> Self {
        // Addresses below 1024 belong to the prelude: 16 is the metadata, 128 an empty selection, 160 an accepted config.
        Self {
            describe: "(i32.const 16)",
            validate: "(i32.const 160)",
            select: "(i32.const 128)",
            data: "",
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
        } = self;
        let text = format!(
            r#"(module
                (import "kerf:policy/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
                (memory (export "memory") 1)
                (global $heap (mut i32) (i32.const 4096))
                (data (i32.const 512) "hand-written")
                (data (i32.const 16) "\00\02\00\00\0c\00\00\00" "\00\02\00\00\04\00\00\00")
                {data}
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                    (global.set $heap (i32.add (local.get $at) (local.get 3)))
                    (block $fits
                        (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
                        (br_if $fits (i32.ne (i32.const -1)
                            (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get 3) (i32.const 16))))))
                        unreachable)
                    (local.get $at))
                (func $describe (export "kerf:policy/lifecycle@0.1.0#describe") (result i32) {describe})
                (func (export "kerf:policy/lifecycle@0.1.0#validate-config") (param i32 i32) (result i32) {validate})
                (func $select (export "kerf:policy/instance-selection@0.1.0#select") (param i32) (result i32) {select})
            )"#
        );
        componentize(wat::parse_str(text).unwrap())
    }

    pub(crate) fn load(&self) -> Policy {
        Policy::load(&ENGINE, &self.component(), Hook::InstanceSelection, None).unwrap()
    }
}

fn componentize(mut module: Vec<u8>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit"))
        .unwrap();
    let world = resolve
        .select_world(&[package], Some("selection-plugin"))
        .unwrap();
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
