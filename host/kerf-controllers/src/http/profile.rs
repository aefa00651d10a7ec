//! What a person looks at when the process is too busy or too large: its threads and its memory, as Linux counts them.
//!
//! It is no sampling profiler; `perf` on the node is. It tells which one to look at.

use std::fmt::Write as _;
use std::path::Path;

/// Linux counts CPU time for programs in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;
const TASKS: &str = "/proc/self/task";

/// One line per thread: CPU seconds since its start, state and name, the busiest first.
pub(super) fn threads() -> String {
    let entries = std::fs::read_dir(TASKS).into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| read(&entry.path().join("stat")));
    let mut threads: Vec<Thread> = stats.filter_map(|stat| Thread::parse(&stat)).collect();
    threads.sort_by(|a, b| (b.ticks, &a.name).cmp(&(a.ticks, &b.name)));
    let mut text = String::from("cpu_seconds state thread\n");
    for Thread { name, state, ticks } in threads {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{:.2} {state} {name}",
            f64::from(ticks) / TICKS_PER_SECOND
        );
    }
    text
}

/// The lines of `/proc/self/status` about memory and threads.
pub(super) fn memory() -> String {
    let status = read(Path::new("/proc/self/status")).unwrap_or_default();
    let wanted = |line: &&str| {
        line.starts_with("Vm") || line.starts_with("Rss") || line.starts_with("Threads")
    };
    let lines: Vec<&str> = status.lines().filter(wanted).collect();
    lines.join("\n") + "\n"
}

#[derive(Debug, PartialEq, Eq)]
struct Thread {
    name: String,
    state: String,
    ticks: u32,
}

impl Thread {
    /// Reads `/proc/<id>/stat`; the name may hold spaces and brackets.
    fn parse(stat: &str) -> Option<Self> {
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.to_owned();
        // The 14th and 15th of the whole line: user and system time.
        let mut ticks = fields.skip(10).map(str::parse::<u32>);
        let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
        Some(Self {
            name: name.to_owned(),
            state,
            ticks: user.saturating_add(system),
        })
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let stat = "7 (a (b) c) S 1 1 1 0 -1 4194304 5 0 0 0 120 30 0 0 20 0";

        let thread = Thread::parse(stat).unwrap();

        assert_eq!(
            (thread.name.as_str(), thread.state.as_str(), thread.ticks),
            ("a (b) c", "S", 150)
        );
    }

    #[test]
    fn this_process_shows() {
        assert!(threads().lines().count() > 1);
        assert!(memory().contains("VmRSS"), "{}", memory());
    }
}
