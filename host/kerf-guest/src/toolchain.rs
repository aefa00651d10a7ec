//! Runs the toolchain of a policy's language.

use std::path::{Path, PathBuf};

use crate::component::componentize;
use crate::contract;
use crate::error::BuildError;
use crate::manifest::{Language, Manifest};
use crate::tools::{Tools, requirements};

const RUST_TARGET: &str = "wasm32-unknown-unknown";

/// Builds the policy in `folder` and returns its component. `scratch` is a folder for what comes up meanwhile; it is made
/// if it is not there, and kept.
///
/// # Errors
/// When the manifest, a tool or the source is not as it should be; the message of the tool is in the error.
pub fn build(folder: &Path, scratch: &Path, tools: &Tools) -> Result<Vec<u8>, BuildError> {
    let folder = &absolute(folder)?;
    std::fs::create_dir_all(scratch).map_err(|source| file("make", scratch, source))?;
    let work = Work {
        manifest: Manifest::read(folder)?,
        folder,
        scratch: &absolute(scratch)?,
        tools,
    };
    match work.manifest.language {
        Language::Rust => work.rust(),
        Language::JavaScript => work.javascript(),
        Language::Python => work.python(),
        Language::Go => work.go(),
        Language::C => work.c(),
    }
}

struct Work<'a> {
    manifest: Manifest,
    folder: &'a Path,
    scratch: &'a Path,
    tools: &'a Tools,
}

impl Work<'_> {
    fn rust(&self) -> Result<Vec<u8>, BuildError> {
        let target = self.scratch.join("cargo");
        let target = target.to_string_lossy();
        let args = [
            "rustc",
            "--release",
            "--target",
            RUST_TARGET,
            "--target-dir",
            &target,
            "--message-format=json-render-diagnostics",
            "--crate-type=cdylib",
        ];
        // The host's flags are not the guest's.
        let environment = [("CARGO_ENCODED_RUSTFLAGS", ""), ("RUSTFLAGS", "")];
        let messages = self.run(&args, &environment)?;
        let module = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["reason"] == "compiler-artifact")
            .flat_map(|message| {
                let files = message["filenames"].as_array().cloned();
                files.unwrap_or_default()
            })
            .filter_map(|file| file.as_str().map(PathBuf::from))
            .rfind(|file| file.extension().is_some_and(|it| it == "wasm"));
        let module =
            module.ok_or_else(|| BuildError::Encode("cargo built no .wasm file".to_owned()))?;
        componentize(&read(&module)?, None)
    }

    fn javascript(&self) -> Result<Vec<u8>, BuildError> {
        let source = self.folder.join("policy.js");
        let sdk = self.sdk()?;
        let (wit, out) = (self.contract()?, self.out());
        // Modules are found below this folder only: the nearest that has both the policy and the SDK.
        let root = self
            .folder
            .ancestors()
            .find(|above| sdk.starts_with(above))
            .unwrap_or(self.folder);
        let args = [
            Path::new("--sync"),
            Path::new("--stub-wasi"),
            Path::new("--wit"),
            &wit,
            Path::new("--world"),
            Path::new(self.manifest.hook.world()),
            Path::new("--module-root"),
            root,
            Path::new("--js"),
            &source,
            Path::new("--output"),
            &out,
        ];
        self.run(&args, &[])?;
        read(&out)
    }

    fn python(&self) -> Result<Vec<u8>, BuildError> {
        let (sdk, wit, out) = (self.sdk()?, self.contract()?, self.out());
        let args = [
            Path::new("--wit-path"),
            &wit,
            Path::new("--world"),
            Path::new(self.manifest.hook.world()),
            Path::new("componentize"),
            Path::new("--stub-wasi"),
            Path::new("--python-path"),
            self.folder,
            Path::new("--python-path"),
            &sdk,
            Path::new("policy"),
            Path::new("--output"),
            &out,
        ];
        // The interpreter runs inside and would leave its caches in the sources.
        self.run(&args, &[("PYTHONDONTWRITEBYTECODE", "1")])?;
        read(&out)
    }

    fn go(&self) -> Result<Vec<u8>, BuildError> {
        let out = self.scratch.join("module.wasm");
        let path = out.to_string_lossy();
        let args = [
            "build",
            "-buildmode=c-shared",
            "-trimpath",
            "-buildvcs=false",
            "-mod=readonly",
            // The runtime part of the bindings reaches into Go's own package runtime.
            "-ldflags=-s -w -checklinkname=0",
            "-o",
            &path,
            ".",
        ];
        let environment = [
            ("GOOS", "wasip1"),
            ("GOARCH", "wasm"),
            ("GOFLAGS", ""),
            ("GOWORK", "off"),
        ];
        self.run(&args, &environment)?;
        componentize(&read(&out)?, Some(self.manifest.hook))
    }

    fn c(&self) -> Result<Vec<u8>, BuildError> {
        let (sdk, out) = (self.sdk()?, self.scratch.join("module.wasm"));
        let bindings = format!("bindings/{}_plugin.c", self.manifest.hook.short());
        let bindings = sdk.join(bindings);
        let (include, out_text) = (format!("-I{}", sdk.display()), out.to_string_lossy());
        let bindings = bindings.to_string_lossy();
        let source = self.folder.join("policy.c");
        let args = [
            "cc",
            "-target",
            "wasm32-wasi",
            "-mexec-model=reactor",
            "-std=gnu23",
            "-Os",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            // Not the 16 MiB of the default, which each call would pay for.
            "-Wl,-z,stack-size=262144",
            &include,
            &source.to_string_lossy(),
            &bindings,
            "-o",
            &out_text,
        ];
        self.run(&args, &[])?;
        componentize(&read(&out)?, Some(self.manifest.hook))
    }

    fn run<A: AsRef<std::ffi::OsStr>>(
        &self,
        args: &[A],
        environment: &[(&str, &str)],
    ) -> Result<String, BuildError> {
        // Each language has one tool.
        let tool = &requirements(self.manifest.language)[0];
        let program = self.tools.find(tool, self.folder)?;
        self.tools.run(&program, self.folder, args, environment)
    }

    fn contract(&self) -> Result<PathBuf, BuildError> {
        let folder = self.scratch.join("wit");
        contract::write(&folder)?;
        Ok(folder)
    }

    fn sdk(&self) -> Result<PathBuf, BuildError> {
        absolute(&self.folder.join(&self.manifest.sdk))
    }

    fn out(&self) -> PathBuf {
        self.scratch.join("component.wasm")
    }
}

fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    path.canonicalize()
        .map_err(|source| file("find", path, source))
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|source| file("read", path, source))
}

fn file(doing: &'static str, path: &Path, source: std::io::Error) -> BuildError {
    BuildError::File {
        doing,
        path: path.to_owned(),
        source,
    }
}
