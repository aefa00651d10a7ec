//! The charts: as packages, as OCI layouts (what `helm push` would put into a registry), and with the index that makes a helm
//! repository of the folder that they are in.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::sources;
use crate::archive;
use crate::oci::{Layout, MANIFEST, hex_digest};
use crate::{source, workspace};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CHARTS: [&str; 2] = ["kerf", "kerf-crd"];

pub(super) fn files(time: i64) -> Result<Vec<(String, Vec<u8>)>> {
    let created = source::timestamp(time)?;
    let mut files = Vec::new();
    let mut index = json!({"apiVersion": "v1", "generated": created, "entries": {}});
    for name in CHARTS {
        let meta = meta(name)?;
        let version = meta["version"]
            .as_str()
            .context("the chart has no version")?
            .to_owned();
        let archive = archive::tar(sources(name, format!("charts/{name}").as_ref())?, time)?;
        let package = archive::gzip(&archive)?;
        let file = format!("{name}-{version}.tgz");
        let mut entry = meta.clone();
        entry["created"] = json!(created);
        entry["digest"] = json!(hex_digest(&package));
        entry["urls"] = json!([file]);
        index["entries"][name] = json!([entry]);
        files.push((
            format!("{name}-chart-{version}.oci.tar"),
            layout(&meta, &package, &created).tar(time)?,
        ));
        files.push((file, package));
    }
    // JSON is YAML.
    files.push(("index.yaml".to_owned(), format!("{index:#}\n").into_bytes()));
    Ok(files)
}

/// Chart.yaml as data.
fn meta(name: &str) -> Result<Value> {
    let path = workspace::root()
        .join("charts")
        .join(name)
        .join("Chart.yaml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", path.display()))
}

fn layout(meta: &Value, package: &[u8], created: &str) -> Layout {
    let mut layout = Layout::default();
    let config = layout.blob(CONFIG, meta.to_string().into_bytes());
    let content = layout.blob(CONTENT, package.to_vec());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [content],
        "annotations": {
            "org.opencontainers.image.title": meta["name"],
            "org.opencontainers.image.description": meta["description"],
            "org.opencontainers.image.version": meta["version"],
            "org.opencontainers.image.created": created,
        },
    });
    let named = json!({"annotations": {"org.opencontainers.image.ref.name": meta["version"]}});
    layout.manifest(&manifest, named);
    layout
}
