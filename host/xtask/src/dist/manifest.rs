//! kerf.yaml: the chart's objects in one file, for those who install with `kubectl apply -f kerf.yaml`.
//!
//! What differs from cluster to cluster is not in it, so that a new version can be applied over the old one: the
//! controller reads the ConfigMap `kerf-settings` and the Secret `kerf-cloud` of its namespace, whose keys are the names of
//! its environment variables.

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::chart_e2e::helm;
use crate::workspace;

const NAMESPACE: &str = "kerf-system";
const SETTINGS: &str = "kerf-settings";
const SECRET: &str = "kerf-cloud";
const HEAD: &str = "# kerf in one file. First say which cluster it is for; the keys are the controller's environment variables:
#
#   kubectl create namespace kerf-system
#   kubectl --namespace kerf-system create configmap kerf-settings \\
#     --from-literal=CLUSTER_ID=c0123456789 --from-literal=ALIBABA_CLOUD_REGION=cn-hangzhou \\
#     --from-literal=ALIBABA_CLOUD_ROLE_ARN=acs:ram::<account>:role/kerf \\
#     --from-literal=ALIBABA_CLOUD_OIDC_PROVIDER_ARN=acs:ram::<account>:oidc-provider/ack-rrsa-<cluster>
#
# and then: kubectl apply -f kerf.yaml. Without RRSA leave the last two out, and put ALIBABA_CLOUD_ACCESS_KEY_ID and
# ALIBABA_CLOUD_ACCESS_KEY_SECRET into a Secret kerf-cloud beside it. Until the ConfigMap is there the pods wait, and say so.
# What the chart sets itself (docs/operations.md) is set here, too; for other values use the chart.
";

/// The file. Rendered by helm from the chart, so that there is one source.
pub(super) fn whole() -> Result<Vec<u8>> {
    let from = |key: &str, is_optional: bool| {
        let reference = json!({"name": SETTINGS, "key": key, "optional": is_optional});
        json!({"name": key, "valueFrom": {"configMapKeyRef": reference}})
    };
    let values = json!({"controller": {
        "env": [
            from("CLUSTER_ID", false), from("ALIBABA_CLOUD_REGION", false),
            from("ALIBABA_CLOUD_ROLE_ARN", true), from("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", true),
        ],
        "envFrom": [
            {"configMapRef": {"name": SETTINGS}},
            {"secretRef": {"name": SECRET, "optional": true}},
        ],
    }});
    let mut command = helm::command()?;
    command
        .args([
            "template",
            "kerf",
            &helm::path("kerf"),
            "--namespace",
            NAMESPACE,
        ])
        .args([
            "--include-crds",
            "--set-json",
            &format!("controller={}", values["controller"]),
        ]);
    let output = command.output().context("cannot start helm")?;
    if !output.status.success() {
        bail!(
            "helm template failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let objects = String::from_utf8(output.stdout).context("helm printed no UTF-8")?;
    // Nobody's release.
    let objects = objects.replace(
        "app.kubernetes.io/managed-by: Helm",
        "app.kubernetes.io/managed-by: kubectl",
    );
    let namespace =
        format!("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n");
    Ok(format!("{HEAD}{namespace}{objects}").into_bytes())
}

/// The definitions alone.
pub(super) fn definitions() -> Result<Vec<u8>> {
    let mut all = String::new();
    for path in workspace::files()?
        .iter()
        .filter(|it| it.starts_with("crds"))
    {
        let text =
            workspace::text(path)?.with_context(|| format!("{} is no text", path.display()))?;
        if !text.starts_with("---") {
            all += "---\n";
        }
        all += &text;
    }
    Ok(all.into_bytes())
}
