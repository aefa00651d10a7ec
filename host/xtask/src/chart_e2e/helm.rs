//! The real helm, with a home of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::objects::NAMESPACE;
use crate::rig::Rig;
use crate::{process, workspace};

#[derive(Debug)]
pub(super) struct Helm {
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Helm {
    pub(super) fn new(rig: &Rig) -> Result<Self> {
        let folder = rig.folder().join("helm");
        std::fs::create_dir_all(&folder).context("cannot make a home for helm")?;
        Ok(Self {
            folder,
            kubeconfig: rig.control_plane.kubeconfig_path().to_owned(),
        })
    }

    pub(super) fn install(&self, chart: &str, values: &Value) -> Result<()> {
        self.install_from(chart, &path(chart), values)
    }

    /// From a folder or a package.
    pub(super) fn install_from(&self, release: &str, chart: &str, values: &Value) -> Result<()> {
        let values = self.values(values)?;
        self.run(&["install", release, chart, "--values", &values])
    }

    pub(super) fn upgrade(&self, chart: &str, values: &Value) -> Result<()> {
        let values = self.values(values)?;
        self.run(&["upgrade", chart, &path(chart), "--values", &values])
    }

    /// What `crds/` of the chart put there becomes a release that can be upgraded.
    pub(super) fn install_definitions(&self) -> Result<()> {
        let chart = path("kerf-crd");
        let keep = ["--set", "keep=false", "--take-ownership"];
        self.run(&[&["upgrade", "--install", "kerf-crd", &chart][..], &keep[..]].concat())
    }

    pub(super) fn uninstall(&self, release: &str) -> Result<()> {
        self.run(&["uninstall", release])
    }

    /// JSON is YAML.
    fn values(&self, values: &Value) -> Result<String> {
        let file = self.folder.join("values.yaml");
        std::fs::write(&file, values.to_string()).context("cannot write the values")?;
        Ok(file.display().to_string())
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let mut command = command()?;
        command.args(args).args(["--namespace", NAMESPACE]);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.folder);
        process::output(&mut command).map(drop)
    }
}

/// helm, which touches no cluster unless it is told to.
pub(crate) fn command() -> Result<Command> {
    let built = std::env::var_os("KERF_CONTROL_PLANE_DIR").map_or_else(
        || workspace::root().join(".control-plane/bin"),
        PathBuf::from,
    );
    let program = built.join("helm");
    if !program.is_file() {
        bail!("no {}; hint: tests/tools/build.sh helm", program.display());
    }
    Ok(Command::new(program))
}

pub(crate) fn path(chart: &str) -> String {
    workspace::root()
        .join("charts")
        .join(chart)
        .display()
        .to_string()
}
