//! The component that a command is about: a file, or what the folder of a policy was built to.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kerf_policy::{Engine, Hook, Interfaces, Policy, PolicyDigest};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::plugin::args::{Configured, One};

/// What one ConfigMap or one shard holds at most. The API server's limit is 1 MiB for all of its data.
pub(crate) const CONFIG_MAP_BYTES_MAX: usize = 900 << 10;

/// A component that is well-formed.
pub(crate) struct Component {
    pub(crate) path: PathBuf,
    /// Not packed.
    pub(crate) bytes: Vec<u8>,
    pub(crate) interfaces: Interfaces,
}

/// How a component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Raw,
    Zst,
    Shards(usize),
}

impl Component {
    /// Reads and unpacks.
    pub(crate) fn read(one: &One) -> Result<Self> {
        let path = file(&one.component)?;
        let packed =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let about = || path.display().to_string();
        let bytes = kerf_policy::unpack(&packed)
            .with_context(about)?
            .into_owned();
        let interfaces = kerf_policy::interfaces(&bytes).with_context(about)?;
        Ok(Self {
            path,
            bytes,
            interfaces,
        })
    }

    /// What its exports serve.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        let serves = |hook: &Hook| {
            let name = match hook {
                Hook::InstanceSelection => "kerf:policy/instance-selection@",
                Hook::PricingPreference => "kerf:policy/pricing-preference@",
                Hook::BootstrapUserData => "kerf:policy/bootstrap-userdata@",
            };
            self.interfaces
                .exports
                .iter()
                .any(|it| it.starts_with(name))
        };
        let all = [
            Hook::InstanceSelection,
            Hook::PricingPreference,
            Hook::BootstrapUserData,
        ];
        all.into_iter().filter(serves).collect()
    }

    /// The hook that is meant.
    pub(crate) fn hook(&self, asked: Option<Hook>) -> Result<Hook> {
        if let Some(hook) = asked {
            return Ok(hook);
        }
        match self.hooks().as_slice() {
            [one] => Ok(*one),
            [] => bail!(
                "{} exports none of kerf:policy/instance-selection, pricing-preference and bootstrap-userdata; it \
                 exports {:?}: build it with an SDK, or for a world of wit/",
                self.path.display(),
                self.interfaces.exports
            ),
            several => bail!(
                "{} serves {} hooks: say which with --hook",
                self.path.display(),
                several.len()
            ),
        }
    }

    /// Compiles it.
    pub(crate) fn load(&self, engine: &Engine, hook: Hook) -> Result<Policy> {
        Policy::load(engine, &self.bytes, hook, None)
            .with_context(|| self.path.display().to_string())
    }

    pub(crate) fn digest(&self) -> PolicyDigest {
        PolicyDigest::of(&self.bytes)
    }

    /// Packed with zstd.
    pub(crate) fn packed(&self) -> Vec<u8> {
        compress_to_vec(&self.bytes[..], CompressionLevel::Fastest)
    }

    /// The first way that it fits.
    pub(crate) fn delivery(&self, packed: &[u8]) -> Delivery {
        if self.bytes.len() <= CONFIG_MAP_BYTES_MAX {
            Delivery::Raw
        } else if packed.len() <= CONFIG_MAP_BYTES_MAX {
            Delivery::Zst
        } else {
            Delivery::Shards(packed.len().div_ceil(CONFIG_MAP_BYTES_MAX))
        }
    }
}

impl Delivery {
    /// In words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Raw => "one ConfigMap, as it is".to_owned(),
            Self::Zst => "one ConfigMap, packed".to_owned(),
            Self::Shards(count) => format!("{count} ConfigMaps, packed"),
        }
    }
}

/// The component of a folder that was built, or the file itself.
fn file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let manifest = kerf_guest::Manifest::read(path)?;
    let built = path.join("build").join(format!("{}.wasm", manifest.name));
    if !built.is_file() {
        bail!(
            "{} is not there: run `kerf plugin build {}` first",
            built.display(),
            path.display()
        );
    }
    Ok(built)
}

/// The text of --config, which may name a file.
pub(crate) fn config(what: &Configured) -> Result<Option<serde_json::Value>> {
    what.config.as_deref().map(json_of).transpose()
}

/// JSON, or what a file with JSON holds.
pub(crate) fn json_of(text: &str) -> Result<serde_json::Value> {
    let is_json = text.trim_start().starts_with('{');
    let text = if is_json {
        text.to_owned()
    } else {
        std::fs::read_to_string(text)
            .with_context(|| format!("cannot read the configuration {text}"))?
    };
    serde_json::from_str(&text).context("the configuration is no JSON")
}
