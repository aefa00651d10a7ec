//! The comparison workload: ReplicaSets from a table, and the instance types that upstream's kwok provider sells.
//!
//! The table is a CSV file with the columns of [`Row`]; the caller names it, nothing here knows where it lies.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

const HEADER: &str = "name,cpu_milli,memory_mib,app_label,zone_spread,replicas,replicas_after";
const GIB_PER_CPU: [(&str, u64); 3] = [("c", 2), ("s", 4), ("m", 8)];
/// Upstream's price is per 10^9 bytes.
const GB_PER_GIB: f64 = 1.073_741_824;
const CPUS: [u64; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];

/// Equal pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cpu_milli: u64,
    pub(crate) memory_mib: u64,
    pub(crate) app_label: String,
    /// The pods must be spread evenly over the zones.
    pub(crate) zone_spread: bool,
    pub(crate) replicas: usize,
    /// After the scale-in.
    pub(crate) replicas_after: usize,
}

/// A type as upstream's kwok provider has it; the price is per hour, on demand, in no currency.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UpstreamType {
    pub(crate) name: String,
    pub(crate) vcpu: u64,
    pub(crate) memory_gib: u64,
    pub(crate) pods: u64,
    pub(crate) price: f64,
}

/// What spot costs there of the on-demand price.
pub(crate) const UPSTREAM_SPOT_PART: f64 = 0.7;
/// Its zones.
pub(crate) const UPSTREAM_ZONES: [&str; 4] =
    ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];

/// Reads the table.
pub(crate) fn read(file: &Path) -> Result<Vec<Row>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&text).with_context(|| format!("cannot read {}", file.display()))
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        bail!("line 1: want the columns {HEADER}");
    }
    lines
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(idx, line)| row(line).with_context(|| format!("line {}: {line}", idx + 2)))
        .collect()
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [
        name,
        cpu_milli,
        memory_mib,
        app_label,
        zone_spread,
        replicas,
        replicas_after,
    ] = cells[..]
    else {
        bail!("want seven cells, found {}", cells.len());
    };
    Ok(Row {
        name: name.to_owned(),
        cpu_milli: cpu_milli.parse().context("cpu_milli")?,
        memory_mib: memory_mib.parse().context("memory_mib")?,
        app_label: app_label.to_owned(),
        zone_spread: zone_spread == "1",
        replicas: replicas.parse().context("replicas")?,
        replicas_after: replicas_after.parse().context("replicas_after")?,
    })
}

/// How many pods that is.
pub(crate) fn pods(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.replicas).sum()
}

impl Row {
    /// The ReplicaSet, in the namespace `default`.
    pub(crate) fn manifest(&self) -> Value {
        let labels = json!({"workload": self.name, "app": self.app_label});
        let spread = json!({
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"workload": self.name}},
        });
        let spreads: Vec<Value> = self.zone_spread.then_some(spread).into_iter().collect();
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": {"workload": self.name}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "topologySpreadConstraints": spreads,
                        "containers": [{
                            "name": "main", "image": "registry.invalid/pause",
                            "resources": {"requests": {
                                "cpu": format!("{}m", self.cpu_milli), "memory": format!("{}Mi", self.memory_mib),
                            }},
                        }],
                    },
                },
            },
        })
    }
}

/// 36 types: 12 sizes with 2, 4 or 8 GiB per vCPU.
pub(crate) fn upstream_types() -> Vec<UpstreamType> {
    let all = GIB_PER_CPU
        .iter()
        .flat_map(|family| CPUS.iter().map(move |vcpu| (family, *vcpu)));
    all.map(|((family, ratio), vcpu)| {
        let memory_gib = vcpu * ratio;
        let amount = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        UpstreamType {
            name: format!("{family}-{vcpu}x-amd64-linux"),
            vcpu,
            memory_gib,
            pods: (16 * vcpu).min(1024),
            price: 0.025 * amount(vcpu) + 0.001 * amount(memory_gib) * GB_PER_GIB,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_a_replicaset_with_its_spread() {
        let rows = parse(&format!("{HEADER}\nw1,100,256,a0,1,4,1\n")).unwrap();
        let manifest = rows[0].manifest();

        assert_eq!(pods(&rows), 4);
        assert_eq!(rows[0].replicas_after, 1);
        assert_eq!(manifest["spec"]["replicas"], 4);
        let spec = &manifest["spec"]["template"]["spec"];
        assert_eq!(
            spec["containers"][0]["resources"]["requests"]["memory"],
            "256Mi"
        );
        assert_eq!(spec["topologySpreadConstraints"][0]["maxSkew"], 1);
    }

    #[test]
    fn a_table_that_is_none_says_where() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());

        assert!(error("name\n").contains("line 1"));
        assert!(error(&format!("{HEADER}\nw1,x,256,a0,1,4,1\n")).contains("line 2"));
        assert!(error(&format!("{HEADER}\nw1,1\n")).contains("seven cells"));
    }

    #[test]
    fn upstream_sells_thirty_six_types() {
        let types = upstream_types();

        assert_eq!(types.len(), 36);
        assert_eq!(types[1].name, "c-2x-amd64-linux");
        assert_eq!((types[35].pods, types[35].memory_gib), (1024, 2048));
    }
}
