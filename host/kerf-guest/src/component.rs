//! From a core module to a component that imports `kerf:policy/log` and nothing else.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::contract;
use crate::error::BuildError;
use crate::manifest::Hook;

/// The module of WASI that core modules import.
const WASI: &str = "wasi_snapshot_preview1";
/// What answers it.
const STUB: &str = include_str!("wasi.wat");
const STUB_WORLD: &str = "package kerf:stub;\nworld stub { import kerf:policy/log@0.1.0; }\n";

/// Makes a component of a core module. `hook` is that of a module whose bindings do not say it themselves (C and Go do
/// not, Rust does). What the module wants of WASI is answered inside of the component, see `wasi.wat`.
///
/// # Errors
/// When the module is none, lacks functions of the contract, or wants files or the network.
pub fn componentize(module: &[u8], hook: Option<Hook>) -> Result<Vec<u8>, BuildError> {
    let mut module = module.to_vec();
    let mut resolve = Resolve::default();
    let encode = |error: String| BuildError::Encode(error);
    let package = resolve
        .push_str("kerf-policy.wit", &contract::text())
        .map_err(|error| encode(format!("{error:#}")))?;
    if let Some(hook) = hook {
        let world = resolve
            .select_world(&[package], Some(hook.world()))
            .map_err(|error| encode(format!("{error:#}")))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .map_err(|error| encode(format!("{error:#}")))?;
    }
    let stub = stub(&mut resolve).map_err(encode)?;
    let encoded = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.adapter(WASI, &stub))
        .and_then(|encoder| encoder.validate(true).encode());
    encoded.map_err(|error| refused(&format!("{error:#}")))
}

fn stub(resolve: &mut Resolve) -> Result<Vec<u8>, String> {
    let mut stub = wat::parse_str(STUB).map_err(|error| error.to_string())?;
    let package = resolve
        .push_str("stub.wit", STUB_WORLD)
        .map_err(|error| format!("{error:#}"))?;
    let world = resolve
        .select_world(&[package], Some("stub"))
        .map_err(|error| format!("{error:#}"))?;
    embed_component_metadata(&mut stub, resolve, world, StringEncoding::UTF8)
        .map_err(|error| format!("{error:#}"))?;
    Ok(stub)
}

/// The encoder says which function of WASI the stub lacks, in words only.
fn refused(error: &str) -> BuildError {
    let function = error
        .split_once("adapter module did not export `")
        .and_then(|(_, rest)| rest.split_once('`'))
        .map(|(function, _)| function.to_owned());
    match function {
        Some(function) => BuildError::Wasi { function },
        None => BuildError::Encode(error.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_opens_files_is_refused_by_name() {
        let module = wat::parse_str(
            r#"(module
                (import "wasi_snapshot_preview1" "path_open"
                    (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
                (memory (export "memory") 1))"#,
        );

        let error = componentize(&module.unwrap(), None).unwrap_err();

        let message = error.to_string();
        assert!(message.contains("uses path_open of WASI"), "{message}");
    }

    #[test]
    fn a_module_without_the_functions_of_its_hook_is_refused() {
        let module = wat::parse_str(r#"(module (memory (export "memory") 1))"#).unwrap();

        let error = componentize(&module, Some(Hook::InstanceSelection)).unwrap_err();

        let message = error.to_string();
        assert!(message.contains("kerf:policy/"), "{message}");
    }
}
