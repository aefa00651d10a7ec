//! A production trace as pending pods: one row a pod, GPUs whole.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use kerf_core::pod::{Pod, PodSpec};

use super::catalog::{GPU, Row};

const MEBIBYTE: i64 = 1 << 20;

/// The pods of a trace. The number of the row is the uid, so equal pods keep their order.
pub(super) fn read(path: &Path) -> Result<Vec<Arc<Pod>>> {
    let rows = Row::read_all(path)?;
    rows.iter()
        .enumerate()
        .map(|(idx, row)| pod(idx, row).with_context(|| format!("pod {idx} of {}", path.display())))
        .collect()
}

fn pod(idx: usize, row: &Row) -> Result<Arc<Pod>> {
    let memory = row.whole("memory_mib")? * MEBIBYTE;
    let mut spec = PodSpec::requesting(row.whole("cpu_milli")?, memory);
    spec.requests.set(GPU, row.whole("num_gpu")?);
    let pod = Pod::new(row.text("name")?, spec);
    Ok(Arc::new(Pod {
        uid: format!("{idx:08}").into(),
        ..pod
    }))
}
