//! Writes the bindings of plugins/sdk/c and plugins/sdk/go from wit/. `cargo xtask plugins bindings` runs it.
//!
//! They are committed, so that writing a policy needs a C or a Go compiler and nothing else.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};

const WORLDS: [&str; 3] = ["selection", "pricing", "bootstrap"];
/// The module of the Go SDK.
const GO_MODULE: &str = "kerf/policy";

fn main() -> Result<(), Box<dyn Error>> {
    let plugins = env::args().nth(1).map(PathBuf::from);
    let plugins = plugins.ok_or("usage: kerf-policy-bindings-generator FOLDER, which is plugins/")?;
    for world in WORLDS {
        let mut c = wit_bindgen_c::Opts::default();
        // The type of the world is put into the component by the build, so that no object file is needed.
        c.no_object_file = true;
        write(&plugins, world, c.build().as_mut(), &plugins.join("sdk/c/bindings"))?;
        let mut go = wit_bindgen_go::Opts::default();
        go.pkg_name = Some(format!("{GO_MODULE}/{world}"));
        write(&plugins, world, go.build().as_mut(), &plugins.join("sdk/go").join(world))?;
    }
    Ok(())
}

fn write(
    plugins: &Path,
    world: &str,
    generator: &mut dyn WorldGenerator,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(plugins.join("../wit"))?;
    let id = resolve.select_world(&[package], Some(&format!("{world}-plugin")))?;
    let mut files = Files::default();
    generator.generate(&mut resolve, id, &mut files)?;
    for (name, bytes) in files.iter() {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)?;
        fs::write(&path, bytes)?;
    }
    Ok(())
}
