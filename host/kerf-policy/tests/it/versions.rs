//! The contract grows: what was built against 0.1.0 goes on loading when a later version is there beside it.

use crate::guest::{ENGINE, Guest, question};
use kerf_policy::{CallLimits, Hook, LoadError, Policy};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A later minor version, which is another contract while the major one is 0.
const LATER: &str = r#"
package test:later;

world more {
    include kerf:policy/selection-plugin@0.1.0;
    export kerf:policy/instance-selection@0.2.0;
}

package kerf:policy@0.2.0 {
    interface instance-selection { rank: func() -> u32; }
}
"#;
const RANK: &str =
    r#"(func (export "kerf:policy/instance-selection@0.2.0#rank") (result i32) (i32.const 0))"#;

#[test]
fn a_component_that_serves_a_later_minor_too_is_asked_by_the_version_that_this_kerf_speaks() {
    let bytes = Guest {
        data: RANK,
        wit: Some(LATER),
        ..Guest::default()
    }
    .component();

    let policy = Policy::load(&ENGINE, &bytes, Hook::InstanceSelection, None).unwrap();

    let input = question(&[("ecs.g7.large", "amd64", 1)]);
    let answer = policy.select("{}", &CallLimits::default(), &input);
    assert_eq!(answer.result.unwrap().order(), [0]);
}

#[test]
fn a_component_of_a_later_minor_alone_is_refused_with_its_version() {
    let bytes = wat::parse_str(
        r#"(component
            (instance $i)
            (export "kerf:policy/lifecycle@0.2.0" (instance $i))
            (export "kerf:policy/instance-selection@0.2.0" (instance $i)))"#,
    );

    let error = Policy::load(&ENGINE, &bytes.unwrap(), Hook::InstanceSelection, None).unwrap_err();

    assert!(matches!(error, LoadError::UnknownVersion { .. }), "{error}");
}

/// A host of tomorrow, seen from below: it offers a later patch version and a later minor one, and finds the exports of 0.1.0
/// when it looks for those of the patch version.
#[test]
fn a_later_host_links_and_finds_what_was_built_against_0_1_0() {
    let engine = Engine::default();
    let component = Component::from_binary(&engine, &Guest::default().component()).unwrap();
    let mut linker: Linker<()> = Linker::new(&engine);
    for version in ["0.1.7", "0.2.0"] {
        linker
            .instance(&format!("kerf:policy/types@{version}"))
            .unwrap();
        let mut log = linker
            .instance(&format!("kerf:policy/log@{version}"))
            .unwrap();
        log.func_new("emit", |_, _, _, _| Ok(())).unwrap();
    }

    let instance = linker.instantiate(&mut Store::new(&engine, ()), &component);

    instance.unwrap();
    for interface in ["lifecycle", "instance-selection"] {
        let name = format!("kerf:policy/{interface}@0.1.7");
        assert!(component.get_export_index(None, &name).is_some(), "{name}");
    }
}
