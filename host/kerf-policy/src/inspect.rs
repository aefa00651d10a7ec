//! Looks at the bytes before anything is compiled: is it a component, what does it want, what does it offer.

use crate::error::LoadError;
use crate::hook::Hook;
use crate::limits::COMPONENT_BYTES_MAX;
use crate::wasi::{self, Wasi};
use wasmparser::{Parser, Payload};

const MAGIC: &[u8] = b"\0asm";
const CORE_LAYER: &[u8] = &[1, 0, 0, 0];
const LIFECYCLE: &str = "kerf:policy/lifecycle";
/// `types` has no functions, but components import it as an empty instance.
const GRANTED: [&str; 2] = ["kerf:policy/log", "kerf:policy/types"];

/// What a component imports and exports, by full name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Interfaces {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

/// Reads the interfaces of a component without compiling it. Fails on everything that is not a well-formed component.
pub fn interfaces(bytes: &[u8]) -> Result<Interfaces, LoadError> {
    check_header(bytes)?;
    let malformed = |error: wasmparser::BinaryReaderError| LoadError::Malformed {
        offset: error.offset(),
        detail: error.message().to_owned(),
    };
    let mut found = Interfaces::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    found
                        .imports
                        .push(import.map_err(malformed)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    found
                        .exports
                        .push(export.map_err(malformed)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Refuses a component that wants more than the log and what `wasi` grants, or does not offer what `hook` calls. Returns
/// what it imports.
pub fn check(bytes: &[u8], hook: Hook, wasi: Wasi) -> Result<Vec<String>, LoadError> {
    let Interfaces { imports, exports } = interfaces(bytes)?;
    check_imports(&imports, wasi)?;
    check_export(LIFECYCLE, hook, &exports)?;
    check_export(hook.interface(), hook, &exports)?;
    Ok(imports)
}

fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge {
            bytes: bytes.len(),
            max: COMPONENT_BYTES_MAX,
        });
    }
    if !bytes.starts_with(MAGIC) {
        return Err(not_wasm(bytes));
    }
    if bytes.get(4..8) == Some(CORE_LAYER) {
        return Err(LoadError::CoreModule);
    }
    Ok(())
}

fn not_wasm(bytes: &[u8]) -> LoadError {
    let (looks_like, next_step) = match bytes {
        [0x1f, 0x8b, ..] => (
            "gzip",
            "a component may be packed with zstd only: run `gunzip`, then `kerf plugin publish`",
        ),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd in zstd", "pack it once"),
        [b'A', b'G', b'F', b'z', ..] => ("base64 text", "put it under binaryData, not under data"),
        [b'(', ..] => (
            "WebAssembly text",
            "run `wasm-tools parse` on it and upload the result",
        ),
        [b'P', b'K', ..] => ("a zip archive", "upload the .wasm file that is inside"),
        [0x7f, b'E', b'L', b'F', ..] => ("a Linux program", "build it for wasm32-unknown-unknown"),
        _ => (
            "something else",
            "upload the .wasm file that the build printed",
        ),
    };
    LoadError::NotWasm {
        looks_like,
        next_step,
    }
}

fn check_imports(imports: &[String], wasi: Wasi) -> Result<(), LoadError> {
    if let Some(found) = imports
        .iter()
        .find(|name| is_ours(name) && !speaks_our_version(name))
    {
        return Err(LoadError::UnknownVersion {
            found: found.clone(),
        });
    }
    let forbidden: Vec<_> = imports
        .iter()
        .filter(|name| !GRANTED.contains(&unversioned(name)) && !wasi::grants(wasi, name))
        .cloned()
        .collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    let is_wasi = forbidden.iter().all(|name| name.starts_with("wasi:"));
    let could_be_inert = forbidden.iter().all(|name| wasi::grants(Wasi::Inert, name));
    let next_step = if could_be_inert {
        "set spec.policies[].wasi to Inert (a clock that stands, no files, no network), or build Rust for \
         wasm32-unknown-unknown instead of wasm32-wasip2, Python with --stub-wasi, JavaScript with \
         --backend-qjs-stub-wasi"
    } else if is_wasi {
        "build Rust for wasm32-unknown-unknown instead of wasm32-wasip2, Python with --stub-wasi, \
         JavaScript with --backend-qjs-stub-wasi"
    } else {
        "a policy has no files, network, clock or other services; take what it needs from its input or its config"
    };
    Err(LoadError::ForbiddenImports {
        imports: forbidden,
        next_step,
    })
}

fn check_export(missing: &'static str, hook: Hook, exports: &[String]) -> Result<(), LoadError> {
    let same_interface = |name: &&String| unversioned(name) == missing;
    let mut offered = exports.iter().filter(same_interface);
    // A component may serve a later version beside ours.
    if offered.clone().any(|name| speaks_our_version(name)) {
        return Ok(());
    }
    match offered.next() {
        Some(name) => Err(LoadError::UnknownVersion {
            found: name.clone(),
        }),
        None => Err(LoadError::MissingExport {
            hook,
            missing,
            exports: exports.to_vec(),
        }),
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with("kerf:policy/")
}

fn unversioned(name: &str) -> &str {
    name.split_once('@')
        .map_or(name, |(interface, _)| interface)
}

/// Under 0.x the minor number is the breaking one, so every 0.1.z is the same contract.
fn speaks_our_version(name: &str) -> bool {
    name.split_once('@')
        .is_some_and(|(_, version)| version.starts_with("0.1."))
}
