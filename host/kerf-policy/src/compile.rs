//! Compiling where it can do no harm: in a process of its own with limits, and once per component and machine.
//!
//! A component may make the compiler slow or large. Its process is killed when it is too much of either, and what it used
//! goes with it. The machine code lands in a file, which is mapped: pages that are not executed take no memory.

mod artifacts;
mod child;

pub use artifacts::{Artifacts, OpenArtifactsError};
pub use child::{CompileLimits, limit_this_process};

use crate::call::shorten;
use crate::digest::PolicyDigest;
use crate::engine::{Engine, config};
use crate::error::LoadError;
use artifacts::Key;
use std::path::PathBuf;
use wasmtime::component::Component;

/// How a process compiles the components of others.
#[derive(Debug)]
pub struct Compiler {
    /// Started with these arguments it reads a component from its input and writes machine code to its output, as
    /// [`compile`] makes it, or says on its error output why not.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// What the process may use; it sets those of memory and processor itself by [`limit_this_process`].
    pub limits: CompileLimits,
    /// Where the machine code is kept; without it, it goes through the memory of this process.
    pub artifacts: Option<Artifacts>,
}

/// A component as machine code.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    pub(crate) is_from_cache: bool,
}

/// Machine code for [`Compiler`], of a component whose imports nobody has looked at. The message is for users.
pub fn compile(component: &[u8]) -> Result<Vec<u8>, String> {
    let engine = wasmtime::Engine::new(&config()).map_err(|error| format!("{error:#}"))?;
    let compiled = engine.precompile_component(component);
    compiled.map_err(|error| format!("{error:#}"))
}

/// Compiles a component that passed [`crate::inspect::check`], or finds it compiled.
pub(crate) fn component(
    engine: &Engine,
    bytes: &[u8],
    digest: PolicyDigest,
) -> Result<Compiled, LoadError> {
    let Some(compiler) = engine.compiler() else {
        let compiled = Component::from_binary(engine.wasmtime(), bytes);
        return compiled
            .map(Compiled::new)
            .map_err(|error| LoadError::Compile(shorten(&format!("{error:#}"))));
    };
    let unloadable = |error: wasmtime::Error| LoadError::Compile(shorten(&format!("{error:#}")));
    let Some(artifacts) = &compiler.artifacts else {
        let code = child::into_memory(compiler, bytes)?;
        let component = artifacts::from_bytes(engine.wasmtime(), &code).map_err(unloadable)?;
        return Ok(Compiled::new(component));
    };
    let key = Key::new(engine.wasmtime(), digest);
    if let Some(component) = artifacts.load(engine.wasmtime(), &key) {
        return Ok(Compiled {
            component,
            is_from_cache: true,
        });
    }
    let draft = artifacts.draft(&key)?;
    child::into_file(compiler, bytes, draft.file()?)?;
    draft.keep()?;
    let component = artifacts.load(engine.wasmtime(), &key);
    component.map(Compiled::new).ok_or_else(|| {
        let kerf = "kerf cannot load what it compiled itself";
        LoadError::Compile(kerf.to_owned())
    })
}

impl Compiled {
    fn new(component: Component) -> Self {
        Self {
            component,
            is_from_cache: false,
        }
    }
}
