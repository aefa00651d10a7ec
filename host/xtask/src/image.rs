//! `cargo xtask image`: a static kerf for x86-64, and the OCI layout of an image with it.
//!
//! No container runtime is needed: layers are written here, and `--check` runs the program from the unpacked root file
//! system. What is in the image is in [`layers`]; the Dockerfile at the root says the same and is held against it.

mod build;
mod check;
#[cfg(test)]
mod dockerfile;
mod tls;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::archive::{self, Entry};
use crate::oci::{Layout, hex_digest};
use crate::{source, workspace};

pub(crate) use build::{TARGET, program};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Compressed, all together: a node pulls it in about a second.
const LAYERS_MAX: usize = 40_000_000;
/// Nobody's, and the one that the chart's security context names too.
const USER: &str = "65532:65532";
const PROGRAM: &str = "/usr/bin/kerf";
const PATH: &str = "/usr/bin:/bin";
/// Where rustls looks on every Linux.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run it from its unpacked root against ecs-sim over TLS, on a local control plane.
    #[arg(long)]
    check: bool,
    /// Take this static program instead of building one.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where the layout goes.
    #[arg(long, default_value = "target/image")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => build::program()?,
    };
    let image = Image::make(&program, source::time()?)?;
    let folder = workspace::root().join(&args.output);
    image.layout.write(&folder)?;
    for (what, size) in &image.layers {
        println!("layer {what}: {size} bytes compressed");
    }
    println!("written to {}", folder.display());
    let total = image.size();
    if !args.check {
        println!("image: layers={total}");
    } else {
        let outcome = check::run(&folder);
        let shown = if outcome.is_ok() { "ok" } else { "failed" };
        println!("image: layers={total} run={shown}");
        outcome?;
    }
    if total > LAYERS_MAX {
        bail!("the layers have {total} bytes, the limit is {LAYERS_MAX}");
    }
    Ok(())
}

/// An image, and the compressed sizes of its layers.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) layout: Layout,
    layers: Vec<(&'static str, usize)>,
}

impl Image {
    pub(crate) fn make(program: &Path, time: i64) -> Result<Self> {
        build::require_static(program)?;
        let mut layout = Layout::default();
        let mut descriptors = Vec::new();
        let mut uncompressed = Vec::new();
        let mut sizes = Vec::new();
        for (what, entries) in layers(program)? {
            let archive = archive::tar(entries, time)?;
            uncompressed.push(format!("sha256:{}", hex_digest(&archive)));
            let packed = archive::gzip(&archive)?;
            sizes.push((what, packed.len()));
            descriptors.push(layout.blob(LAYER, packed));
        }
        let created = source::timestamp(time)?;
        let config = layout.blob(
            CONFIG,
            config(&uncompressed, &created).to_string().into_bytes(),
        );
        let manifest = json!({
            "schemaVersion": 2, "mediaType": crate::oci::MANIFEST,
            "config": config, "layers": descriptors, "annotations": labels(&created),
        });
        let named = json!({
            "platform": {"architecture": "amd64", "os": "linux"},
            "annotations": {"org.opencontainers.image.ref.name": source::VERSION},
        });
        layout.manifest(&manifest, named);
        Ok(Self {
            layout,
            layers: sizes,
        })
    }

    fn size(&self) -> usize {
        self.layers.iter().map(|(_, size)| size).sum()
    }
}

/// What changes seldom comes first, so that a new version is one layer to pull.
fn layers(program: &Path) -> Result<Vec<(&'static str, Vec<Entry>)>> {
    let certificates = std::fs::read(CERTIFICATES).with_context(|| {
        format!("cannot read {CERTIFICATES}; hint: apt-get install ca-certificates")
    })?;
    let below = |path: &str| path.trim_start_matches('/').to_owned();
    let base = vec![
        Entry::folder("etc", 0o755),
        Entry::folder("etc/ssl", 0o755),
        Entry::folder("etc/ssl/certs", 0o755),
        Entry::file(&below(CERTIFICATES), certificates),
        Entry::file("etc/group", "root:x:0:\nkerf:x:65532:\n"),
        Entry::file("etc/nsswitch.conf", "hosts: files dns\n"),
        Entry::file(
            "etc/passwd",
            "root:x:0:0::/:/none\nkerf:x:65532:65532::/:/none\n",
        ),
        Entry::folder("tmp", 0o1777),
    ];
    let binary =
        std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let licence = workspace::root().join("LICENSE");
    let own = vec![
        Entry::folder("usr", 0o755),
        Entry::folder("usr/bin", 0o755),
        Entry::program(&below(PROGRAM), binary),
        Entry::folder("usr/share", 0o755),
        Entry::folder("usr/share/doc", 0o755),
        Entry::folder("usr/share/doc/kerf", 0o755),
        Entry::read(&licence, "usr/share/doc/kerf/LICENSE")?,
        Entry::file(
            "usr/share/doc/kerf/THIRD-PARTY-LICENSES.txt",
            crate::dist::licences()?,
        ),
    ];
    Ok(vec![("certificates", base), ("kerf", own)])
}

fn labels(created: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "kerf",
        "org.opencontainers.image.description": "A Karpenter-compatible node autoscaler for Alibaba Cloud.",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": source::VERSION,
        "org.opencontainers.image.created": created,
    })
}

fn config(uncompressed: &[String], created: &str) -> Value {
    let history: Vec<Value> = ["certificates and users", "kerf"]
        .map(|what| json!({"created": created, "created_by": format!("cargo xtask image: {what}")}))
        .into();
    json!({
        "created": created, "architecture": "amd64", "os": "linux",
        "config": {
            "User": USER, "Entrypoint": [PROGRAM], "Cmd": ["--help"], "WorkingDir": "/",
            "Env": [format!("PATH={PATH}")], "Labels": labels(created),
        },
        "rootfs": {"type": "layers", "diff_ids": uncompressed},
        "history": history,
    })
}
