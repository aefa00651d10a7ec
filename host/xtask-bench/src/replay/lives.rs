//! When pods come and go: the last days of a trace, many copies at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kerf_core::pod::{OwnerKind, Pod, PodSpec};

use crate::dice::Dice;
use crate::scheduling::catalog::{GPU, Row};

const MEBIBYTE: i64 = 1 << 20;

/// A pod and when it is there, in seconds from the start of the replay.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) pod: Arc<Pod>,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// What the trace says of one pod.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    cpu_milli: i64,
    memory_mib: i64,
    gpus: i64,
    from: i64,
    to: i64,
}

/// Reads the last `window` seconds and lays that many copies of them over each other, by coming. Each copy is turned
/// around the window by an offset of its own, so that their peaks do not fall together; a pod that is there across the
/// turn becomes two.
pub(super) fn read(path: &Path, window: i64, copies: u32, seed: u64) -> Result<Vec<Life>> {
    let recorded = recorded(path, window)?;
    Ok(lay(&recorded, window, copies, seed))
}

fn recorded(path: &Path, window: i64) -> Result<Vec<Recorded>> {
    let shown = path.display();
    let mut all = Vec::new();
    for (idx, row) in Row::read_all(path)?.iter().enumerate() {
        let one = || -> Result<Recorded> {
            Ok(Recorded {
                cpu_milli: row.whole("cpu_milli")?,
                memory_mib: row.whole("memory_mib")?,
                gpus: row.whole("num_gpu")?,
                from: row.whole("creation_time")?,
                to: row.whole("deletion_time")?,
            })
        };
        all.push(one().with_context(|| format!("pod {idx} of {shown}"))?);
    }
    let end = all.iter().map(|it| it.to).max().unwrap_or(0);
    let start = end - window;
    for it in &mut all {
        it.from = it.from.max(start) - start;
        it.to -= start;
    }
    all.retain(|it| it.from < it.to);
    ensure!(!all.is_empty(), "{shown} has no pod in its last {window} s");
    Ok(all)
}

fn lay(recorded: &[Recorded], window: i64, copies: u32, seed: u64) -> Vec<Life> {
    let mut dice = Dice::new(seed);
    let mut specs = BTreeMap::new();
    let mut lives: Vec<Life> = Vec::new();
    for copy in 0..copies {
        let offset = dice.between(0, window - 1);
        for (idx, it) in recorded.iter().enumerate() {
            let (from, to) = (it.from + offset, it.to + offset);
            let parts = match (from < window, to <= window) {
                (true, true) => vec![(from, to)],
                (true, false) => vec![(from, window), (0, to - window)],
                (false, _) => vec![(from - window, to - window)],
            };
            for (part, (from, to)) in parts.into_iter().enumerate() {
                let name = format!("{copy:03}-{idx:05}-{part}");
                let pod = pod(&name, it, &mut specs);
                lives.push(Life { pod, from, to });
            }
        }
    }
    lives.sort_by(|a, b| (a.from, &a.pod.uid).cmp(&(b.from, &b.pod.uid)));
    lives
}

fn pod(name: &str, it: &Recorded, specs: &mut BTreeMap<[i64; 3], Arc<PodSpec>>) -> Arc<Pod> {
    let size = [it.cpu_milli, it.memory_mib, it.gpus];
    let spec = specs.entry(size).or_insert_with(|| {
        let mut spec = PodSpec::requesting(it.cpu_milli, it.memory_mib * MEBIBYTE);
        spec.requests.set(GPU, it.gpus);
        spec.owner = OwnerKind::Other;
        Arc::new(spec)
    });
    Arc::new(Pod {
        spec: Arc::clone(spec),
        ..Pod::new(name, PodSpec::default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_turned_around_the_window_and_no_time_is_lost() {
        let one = Recorded {
            cpu_milli: 1000,
            memory_mib: 1,
            gpus: 0,
            from: 10,
            to: 60,
        };

        let lives = lay(&[one], 100, 40, 7);

        let total: i64 = lives.iter().map(|it| it.to - it.from).sum();
        assert_eq!(total, 40 * 50);
        assert!(
            lives
                .iter()
                .all(|it| 0 <= it.from && it.from < it.to && it.to <= 100)
        );
        assert!(lives.len() > 40, "some are there across the turn");
        assert!(lives.windows(2).all(|pair| pair[0].from <= pair[1].from));
    }
}
