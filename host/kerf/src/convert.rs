//! `kerf convert`: the manifests of other autoscalers as NodePools and ECSNodeClasses.
//!
//! Every field is either converted or named in a warning: what no converter took is found by [`source::Source`], so that
//! nothing is lost silently. Warnings go to stderr and, as comments, above the object that they are about.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::Convert;

mod ack;
mod class;
mod group;
mod other_alibaba;
mod pool;
mod requirement;
mod source;
mod tke;

/// One object that was made.
#[derive(Debug)]
struct Output {
    /// Choices to make and fields without an equal.
    comments: Vec<String>,
    object: Value,
}

/// What one document becomes.
#[derive(Debug, Default)]
struct Conversion {
    outputs: Vec<Output>,
    /// Kubelet settings that were part of a pool, by the name of the class that they belong to here.
    kubelets: BTreeMap<String, Value>,
}

/// Reads the files and prints what they become.
pub(crate) fn run(args: &Convert) -> Result<()> {
    let mut documents: Vec<Value> = Vec::new();
    for file in &args.files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let more: Vec<Value> = serde_saphyr::from_multiple(&text)
            .with_context(|| format!("read {} as YAML", file.display()))?;
        documents.extend(more);
    }
    let outputs = convert_all(documents);
    print(
        &outputs,
        &mut std::io::stdout().lock(),
        &mut std::io::stderr().lock(),
    )
}

/// What `kerf convert` prints for one file with this text.
///
/// # Errors
/// When the text is no YAML.
pub fn converted(text: &str) -> Result<String> {
    let outputs = convert_all(serde_saphyr::from_multiple(text)?);
    let mut printed = Vec::new();
    print(&outputs, &mut printed, &mut std::io::sink())?;
    Ok(String::from_utf8(printed)?)
}

fn convert_all(documents: Vec<Value>) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut kubelets = BTreeMap::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let conversion = convert(document);
        outputs.extend(conversion.outputs);
        kubelets.extend(conversion.kubelets);
    }
    give_kubelets(&mut outputs, kubelets);
    outputs
}

fn convert(document: Value) -> Conversion {
    let api_version = document["apiVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let group = api_version.split('/').next().unwrap_or_default().to_owned();
    let kind = document["kind"].as_str().unwrap_or_default().to_owned();
    match (group.as_str(), kind.as_str()) {
        ("karpenter.sh", "Provisioner") => pool::provisioner(document),
        ("karpenter.sh", "NodePool") => pool::node_pool(document),
        ("karpenter.k8s.aws", "AWSNodeTemplate" | "EC2NodeClass") => class::aws(document),
        ("karpenter.k8s.tke", "TKEMachineNodeClass") => tke::class(document),
        ("karpenter.k8s.alibabacloud", "ECSNodeClass") => other_alibaba::class(document),
        ("cluster.x-k8s.io", _) => group::machine_group(document),
        ("", "")
            if document.get("nodepools").is_some() || document.get("nodepool_info").is_some() =>
        {
            ack::node_pools(document)
        }
        ("", "") if class::is_helm_values(&document) => class::helm_values(document),
        _ => group::workload(document),
    }
}

/// Settings of the kubelet move from the pool to its class.
fn give_kubelets(outputs: &mut [Output], kubelets: BTreeMap<String, Value>) {
    for (name, kubelet) in kubelets {
        let mut is_given = false;
        for output in outputs.iter_mut() {
            if output.object["kind"] == "ECSNodeClass"
                && output.object["metadata"]["name"] == name.as_str()
            {
                output.object["spec"]["kubelet"] = kubelet.clone();
                is_given = true;
            }
        }
        if !is_given && let Some(output) = outputs.last_mut() {
            output.comments.push(format!(
                "kubelet: belongs to ECSNodeClass {name}, which is not among these files: add spec.kubelet: {kubelet}"
            ));
        }
    }
}

fn print(outputs: &[Output], out: &mut impl Write, warnings: &mut impl Write) -> Result<()> {
    for output in outputs {
        writeln!(out, "---")?;
        let name = output.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let kind = output.object["kind"].as_str().unwrap_or_default();
        for comment in &output.comments {
            let comment = comment.replace('\n', " ");
            writeln!(out, "# {comment}")?;
            writeln!(warnings, "{kind} {name}: {comment}")?;
        }
        writeln!(
            out,
            "{}",
            serde_saphyr::to_string(&output.object)?.trim_end()
        )?;
    }
    Ok(())
}
