//! A pod trace as CSV: pods with the times at which they come and go, or sets of equal pods before and after a scale-in.
//!
//! Which of the two it is, its columns tell ([`POD_COLUMNS`], [`SET_COLUMNS`]); others are left alone. Rows are read one by
//! one, and what cannot be used is told with file, line and column.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::input;
use crate::simulate::complaint::Complaint;

/// Columns of a trace with one row per pod. Besides, where they are there: num_gpu and gpu_milli (GPUs, and the part of one
/// that is used), creation_time and deletion_time (whole seconds; no deletion_time: it stays).
const POD_COLUMNS: [&str; 3] = ["name", "cpu_milli", "memory_mib"];
/// Columns of a trace with one row per ReplicaSet. Besides: app_label, zone_spread (1: spread over the zones),
/// replicas_after.
const SET_COLUMNS: [&str; 4] = ["name", "cpu_milli", "memory_mib", "replicas"];
/// When a trace of sets is scaled in: long enough after the start that nothing waits for `consolidateAfter` any more.
const SCALE_IN_SECS: i64 = 3600;
/// What a GPU is called on a node.
const GPU: &str = "nvidia.com/gpu";
/// Not one of the manifests', so that no name is there twice.
const NAMESPACE: &str = "trace";
/// Thousandths of a GPU.
const WHOLE_GPU: u32 = 1000;

/// When a pod is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Seconds after the trace's zero.
    pub(crate) from_secs: i64,
    /// It stays when there is none.
    pub(crate) until_secs: Option<i64>,
}

/// A pod of a trace.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) pod: Pod,
    /// What the answer names it by.
    pub(crate) workload: String,
    pub(crate) visit: Visit,
}

/// All pods of a trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) visitors: Vec<Visitor>,
    /// Whether the trace tells times at all.
    pub(crate) has_times: bool,
    pub(crate) notes: Vec<Complaint>,
}

/// Reads a trace.
///
/// # Errors
/// The first thing that cannot be used, by line and column.
pub(crate) fn read(path: &Path) -> Result<Trace, Complaint> {
    let file = path.display().to_string();
    let text = input::open(path)
        .map_err(|error| Complaint::of(&file, &format!("cannot be read: {error}")))?;
    parse(&file, text)
}

fn parse(file: &str, text: impl Read) -> Result<Trace, Complaint> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text);
    let columns = reader.headers().map_err(|error| malformed(file, &error))?;
    let columns: BTreeMap<String, usize> = columns
        .iter()
        .enumerate()
        .map(|(index, name)| (name.to_owned(), index))
        .collect();
    let has = |wanted: &[&str]| wanted.iter().all(|name| columns.contains_key(*name));
    let is_of_sets = has(&SET_COLUMNS);
    if !is_of_sets && !has(&POD_COLUMNS) {
        let message = "these are the columns of no trace that kerf knows";
        let hint = format!(
            "it needs {} for pods, or {} for sets of pods",
            POD_COLUMNS.join(", "),
            SET_COLUMNS.join(", ")
        );
        return Err(at(file, 1, "", message).hint(&hint));
    }
    let mut trace = Trace {
        has_times: is_of_sets || columns.contains_key("creation_time"),
        ..Trace::default()
    };
    let mut names = BTreeSet::new();
    let mut shared_gpus = 0;
    for record in reader.records() {
        let record = record.map_err(|error| malformed(file, &error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let row = Row {
            file,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            columns: &columns,
            record: &record,
        };
        let name = row.text("name");
        if name.is_empty() || !names.insert(name.to_owned()) {
            let message = match name {
                "" => "is empty".to_owned(),
                name => format!("{name:?} is there twice"),
            };
            return Err(row.wrong("name", &message));
        }
        if is_of_sets {
            row.set(&mut trace.visitors)?;
        } else {
            shared_gpus += usize::from(row.has_shared_gpu()?);
            trace.visitors.push(row.pod(names.len())?);
        }
    }
    if trace.visitors.is_empty() {
        return Err(at(file, 1, "", "there is no pod in the trace"));
    }
    if shared_gpus > 0 {
        trace.notes.push(Complaint::of(
            file,
            &format!("{shared_gpus} pods use a part of a GPU; each is planned with a whole one"),
        ));
    }
    Ok(trace)
}

fn malformed(file: &str, error: &csv::Error) -> Complaint {
    let line = error.position().map_or(1, csv::Position::line);
    let line = u32::try_from(line).unwrap_or(u32::MAX);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("the line has {len} cells and the header {expected_len}"),
        csv::ErrorKind::Io(error) => format!("cannot be read: {error}"),
        _ => "is no CSV in UTF-8".to_owned(),
    };
    at(file, line, "", &message)
}

fn at(file: &str, line: u32, column: &str, message: &str) -> Complaint {
    Complaint {
        line: Some(line),
        field: column.to_owned(),
        ..Complaint::of(file, message)
    }
}

/// One line by the names of its columns.
struct Row<'a> {
    file: &'a str,
    line: u32,
    columns: &'a BTreeMap<String, usize>,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    fn wrong(&self, column: &str, message: &str) -> Complaint {
        at(self.file, self.line, column, message)
    }

    /// The cell, empty where there is no such column.
    fn text(&self, column: &str) -> &str {
        let index = self.columns.get(column);
        index
            .and_then(|index| self.record.get(*index))
            .unwrap_or_default()
    }

    /// A whole number; none in an empty cell.
    fn number(&self, column: &str) -> Result<Option<u32>, Complaint> {
        match self.text(column) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let message = format!("{text:?} is no whole number from 0 to {}", u32::MAX);
                self.wrong(column, &message)
            }),
        }
    }

    fn needed(&self, column: &str) -> Result<u32, Complaint> {
        let number = self.number(column)?;
        number.ok_or_else(|| self.wrong(column, "is empty"))
    }

    fn has_shared_gpu(&self) -> Result<bool, Complaint> {
        let part = self.number("gpu_milli")?.unwrap_or(WHOLE_GPU);
        Ok(self.number("num_gpu")? == Some(1) && part < WHOLE_GPU)
    }

    /// The pod of a row; `nth` makes its uid, so that equal pods keep their order.
    fn pod(&self, nth: usize) -> Result<Visitor, Complaint> {
        let from_secs = i64::from(self.number("creation_time")?.unwrap_or_default());
        let until_secs = self.number("deletion_time")?.map(i64::from);
        if until_secs.is_some_and(|until| until < from_secs) {
            let message = format!("is before the creation_time, {from_secs}");
            return Err(self.wrong("deletion_time", &message));
        }
        let name = self.text("name");
        let spec = json!({"containers": [{"name": "main", "resources": self.resources()?}]});
        let pod = json!({
            "metadata": {"labels": {"app": name}, "ownerReferences": [owner("batch/v1", "Job", name)]},
            "spec": spec,
        });
        let visit = Visit {
            from_secs,
            until_secs,
        };
        self.visitor(&pod, name, nth, "the trace", visit)
    }

    fn set(&self, visitors: &mut Vec<Visitor>) -> Result<(), Complaint> {
        let replicas = self.needed("replicas")?;
        let after = self.number("replicas_after")?.unwrap_or(replicas);
        if after > replicas {
            let message = format!("{after} is more than replicas, {replicas}");
            return Err(self.wrong("replicas_after", &message));
        }
        let is_spread = match self.text("zone_spread") {
            "" | "0" => false,
            "1" => true,
            other => {
                return Err(self.wrong("zone_spread", &format!("{other:?} is neither 0 nor 1")));
            }
        };
        let name = self.text("name");
        let labels = json!({"workload": name, "app": self.text("app_label")});
        let spread = json!({
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"workload": name}},
        });
        let spreads: Vec<Value> = is_spread.then_some(spread).into_iter().collect();
        let pod = json!({
            "metadata": {"labels": labels, "ownerReferences": [owner("apps/v1", "ReplicaSet", name)]},
            "spec": {
                "topologySpreadConstraints": spreads,
                "containers": [{"name": "main", "resources": self.resources()?}],
            },
        });
        let workload = format!("ReplicaSet {NAMESPACE}/{name}");
        for index in 0..replicas {
            let visit = Visit {
                from_secs: 0,
                until_secs: (index >= after).then_some(SCALE_IN_SECS),
            };
            let pod_name = format!("{name}-{index:05}");
            visitors.push(self.visitor(&pod, &pod_name, visitors.len(), &workload, visit)?);
        }
        Ok(())
    }

    fn resources(&self) -> Result<Value, Complaint> {
        let mut requests = json!({
            "cpu": format!("{}m", self.needed("cpu_milli")?),
            "memory": format!("{}Mi", self.needed("memory_mib")?),
        });
        if let Some(gpus) = self.number("num_gpu")?.filter(|gpus| *gpus > 0) {
            requests[GPU] = gpus.to_string().into();
        }
        Ok(json!({"requests": requests}))
    }

    fn visitor(
        &self,
        pod: &Value,
        name: &str,
        nth: usize,
        workload: &str,
        visit: Visit,
    ) -> Result<Visitor, Complaint> {
        let mut pod: Pod = serde_json::from_value(pod.clone())
            .map_err(|error| self.wrong("name", &error.to_string()))?;
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some(NAMESPACE.to_owned());
        pod.metadata.uid = Some(format!("trace/{nth:09}"));
        Ok(Visitor {
            pod,
            workload: workload.to_owned(),
            visit,
        })
    }
}

fn owner(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": format!("trace/{kind}/{name}"),
        "controller": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";
    const SETS: &str = "name,cpu_milli,memory_mib,app_label,zone_spread,replicas,replicas_after\n";

    fn read(header: &str, rows: &str) -> Result<Trace, Complaint> {
        parse("t.csv", format!("{header}{rows}").as_bytes())
    }

    #[test]
    fn a_row_is_a_pod_that_comes_and_goes() {
        let rows = "p-0,12000,16384,1,460,,LS,Running,5,90,5\np-1,500,256,0,0,,BE,Pending,7,,\n";

        let trace = read(PODS, rows).unwrap();

        let visits: Vec<_> = trace
            .visitors
            .iter()
            .map(|it| (it.visit.from_secs, it.visit.until_secs))
            .collect();
        assert_eq!(visits, [(5, Some(90)), (7, None)]);
        let spec = trace.visitors[0].pod.spec.as_ref().unwrap();
        let resources = spec.containers[0].resources.as_ref().unwrap();
        let requests = serde_json::to_value(&resources.requests).unwrap();
        let wanted = json!({"cpu": "12000m", "memory": "16384Mi", "nvidia.com/gpu": "1"});
        assert_eq!(requests, wanted);
        assert!(trace.notes[0].message.starts_with("1 pods use a part"));
    }

    #[test]
    fn a_row_of_sets_is_as_many_pods_of_which_some_leave() {
        let trace = read(SETS, "w1,100,256,a0,1,3,1\n").unwrap();

        let leave = |it: &&Visitor| it.visit.until_secs == Some(SCALE_IN_SECS);
        assert_eq!(trace.visitors.len(), 3);
        assert_eq!(trace.visitors.iter().filter(leave).count(), 2);
        let spec = trace.visitors[0].pod.spec.as_ref().unwrap();
        let spreads = spec.topology_spread_constraints.as_ref().unwrap();
        assert_eq!(spreads[0].max_skew, 1);
        assert_eq!(trace.visitors[2].workload, "ReplicaSet trace/w1");
    }

    #[test]
    fn what_cannot_be_used_is_told_by_line_and_column() {
        let cases = [
            (
                read(PODS, "a,x,1,0,0,,,,0,1,\n"),
                2,
                "cpu_milli",
                "\"x\" is no whole number",
            ),
            (
                read(PODS, "a,1,,0,0,,,,0,1,\n"),
                2,
                "memory_mib",
                "is empty",
            ),
            (
                read(PODS, "a,1,1,0,0,,,,0,1,\na,1,1,0,0,,,,0,1,\n"),
                3,
                "name",
                "\"a\" is there twice",
            ),
            (
                read(PODS, "a,1,1,0,0,,,,9,1,\n"),
                2,
                "deletion_time",
                "is before the creation_time",
            ),
            (
                read(PODS, "a,1\n"),
                2,
                "",
                "the line has 2 cells and the header 11",
            ),
            (read(PODS, ""), 1, "", "there is no pod in the trace"),
            (
                read("pod,cpu\n", "a,1\n"),
                1,
                "",
                "these are the columns of no trace",
            ),
            (
                read(SETS, "a,1,1,a,2,1,1\n"),
                2,
                "zone_spread",
                "\"2\" is neither 0 nor 1",
            ),
            (
                read(SETS, "a,1,1,a,0,1,2\n"),
                2,
                "replicas_after",
                "2 is more than replicas, 1",
            ),
        ];
        for (result, line, column, message) in cases {
            let complaint = result.unwrap_err();

            assert_eq!(
                (complaint.line, complaint.field.as_str()),
                (Some(line), column)
            );
            assert!(complaint.message.starts_with(message), "{complaint}");
        }
    }
}
