//! The catalog of ECS types as instance types of one pool, with ACK's reserves and three zones, as upstream's measuring
//! program takes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::{PODS, Resources};

pub(crate) const GPU: &str = "nvidia.com/gpu";

/// From the folder of the workspace, where cargo runs us.
pub(crate) const DEFAULT_PATH: &str = "host/kerf-cloud/data/catalog.csv";

const PRICE_COLUMN: &str = "price_cn_hangzhou_cny_h_2025_09";
const REGION: &str = "cn-hangzhou";
const ZONES: [&str; 3] = ["cn-hangzhou-h", "cn-hangzhou-i", "cn-hangzhou-j"];
/// For types whose network limits nobody has published.
const DEFAULT_MAX_PODS: i64 = 110;
const EVICTION_MIB: i64 = 100;
const MEBIBYTE: i64 = 1 << 20;
/// These have a slice of a GPU, so they never offer a whole one.
const SLICED_FAMILIES: [&str; 2] = ["sgn", "vgn"];

/// Every type that has a price.
pub(crate) fn read(path: &Path) -> Result<Vec<Arc<InstanceType>>> {
    let rows = Row::read_all(path)?;
    let mut types = Vec::new();
    for row in &rows {
        let price = Price::from_per_hour(row.number(PRICE_COLUMN)?);
        if price.is_known() {
            let name = row.text("type")?;
            let it = instance_type(name, row, price).with_context(|| format!("type {name}"))?;
            types.push(Arc::new(it));
        }
    }
    ensure!(!types.is_empty(), "{} prices no type", path.display());
    Ok(types)
}

fn instance_type(name: &str, row: &Row, price: Price) -> Result<InstanceType> {
    let vcpu = row.whole("vcpu")?;
    let memory_mib = row.scaled("memory_gib", 1024.0)?;
    let max_pods = match row.whole("max_pods_shared_plus3_hostnet")? {
        0 => DEFAULT_MAX_PODS,
        known => known,
    };
    let family = row.text("family")?;
    let is_sliced = SLICED_FAMILIES.iter().any(|it| family.starts_with(it));
    let gpus = if is_sliced {
        0
    } else {
        row.whole("gpu_count")?
    };

    let capacity = Resources::of(vcpu * 1000, memory_mib * MEBIBYTE)
        .with(PODS, max_pods)
        .with(GPU, gpus);
    let reserved_mib = (11 * max_pods + 255).min(memory_mib / 4) + EVICTION_MIB;
    let overhead = Resources::of(reserved_cpu_milli(vcpu), reserved_mib * MEBIBYTE);
    let labels = [
        Requirement::in_values(labels::ARCH, [row.text("arch")?]),
        Requirement::in_values(labels::OS, ["linux"]),
        Requirement::in_values(labels::REGION, [REGION]),
    ];
    let offerings = ZONES.map(|zone| Offering::new(zone, CapacityType::OnDemand, price));
    Ok(InstanceType::new(
        name,
        labels,
        capacity,
        overhead,
        offerings.into(),
    ))
}

/// ACK's rule: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of each further one; rounded up.
fn reserved_cpu_milli(vcpu: i64) -> i64 {
    let tenths: i64 = (0..vcpu)
        .map(|core| match core {
            0 => 600,
            1 => 100,
            2 | 3 => 50,
            _ => 25,
        })
        .sum();
    (tenths + 9) / 10
}

/// One line of a CSV by the names of its columns.
#[derive(Debug)]
pub(crate) struct Row(BTreeMap<String, String>);

impl Row {
    pub(crate) fn read_all(path: &Path) -> Result<Vec<Self>> {
        let shown = path.display();
        let mut reader =
            csv::Reader::from_path(path).with_context(|| format!("cannot read {shown}"))?;
        let columns = reader.headers()?.clone();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.with_context(|| format!("cannot read {shown}"))?;
            let fields = columns.iter().zip(&record);
            rows.push(Self(
                fields
                    .map(|(column, text)| (column.to_owned(), text.to_owned()))
                    .collect(),
            ));
        }
        ensure!(!rows.is_empty(), "{shown} has no rows");
        Ok(rows)
    }

    pub(crate) fn text(&self, column: &str) -> Result<&str> {
        let text = self.0.get(column);
        text.map(String::as_str)
            .with_context(|| format!("there is no column {column}"))
    }

    /// A number; empty means 0.
    fn number(&self, column: &str) -> Result<f64> {
        match self.text(column)? {
            "" => Ok(0.0),
            text => text
                .parse()
                .with_context(|| format!("column {column} has {text:?}, which is no number")),
        }
    }

    /// A whole number; a fraction is cut off.
    pub(crate) fn whole(&self, column: &str) -> Result<i64> {
        self.scaled(column, 1.0)
    }

    fn scaled(&self, column: &str, factor: f64) -> Result<i64> {
        let number = self.number(column)? * factor;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "cores, GiB and pods are small, and a fraction is to be cut off"
        )]
        let whole = number as i64;
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_reserve_follows_the_rule_and_rounds_up() {
        assert_eq!(reserved_cpu_milli(1), 60);
        assert_eq!(reserved_cpu_milli(4), 80);
        assert_eq!(reserved_cpu_milli(5), 83);
        assert_eq!(reserved_cpu_milli(8), 90);
    }
}
