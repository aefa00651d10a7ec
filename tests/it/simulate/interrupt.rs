//! Level: the `kerf` binary on a terminal of its own (`script` of bsdutils). What is shown of long work, and Ctrl-C.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use crate::stage::{binary, root};

const CTRL_C: &[u8] = b"\x03";
const INTERRUPTED: i32 = 130;

/// A command on a terminal, and what it has shown so far.
struct OnTerminal {
    script: Child,
    shown: String,
}

impl OnTerminal {
    fn start(arguments: &str) -> Self {
        let command = format!("{} {arguments}", binary("kerf").display());
        let script = Command::new("script")
            .args([
                "--quiet",
                "--return",
                "--flush",
                "--command",
                &command,
                "/dev/null",
            ])
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("run script (apt-get install bsdutils)");
        Self {
            script,
            shown: String::new(),
        }
    }

    /// Reads until the text is there; a process that ends without it fails the test.
    fn until(&mut self, text: &str) {
        let stdout = self.script.stdout.as_mut().unwrap();
        let mut bytes = [0; 4096];
        while !self.shown.contains(text) {
            let count = stdout.read(&mut bytes).unwrap();
            assert!(count > 0, "ended without {text:?}: {}", self.shown);
            self.shown += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.script.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// What was shown in all, and how it ended.
    fn end(mut self) -> (String, Option<i32>) {
        let mut rest = Vec::new();
        self.script
            .stdout
            .as_mut()
            .unwrap()
            .read_to_end(&mut rest)
            .unwrap();
        self.shown += &String::from_utf8_lossy(&rest);
        let status = self.script.wait().unwrap();
        (self.shown, status.code())
    }
}

#[test]
fn work_that_waits_is_shown_and_ctrl_c_says_that_nothing_is_known() {
    let mut kerf = OnTerminal::start("simulate -f -");

    kerf.until(" reading");
    kerf.press(CTRL_C);

    let (shown, code) = kerf.end();
    assert_eq!(code, Some(INTERRUPTED), "{shown}");
    assert!(
        shown.contains("interrupted while reading: nothing is known yet"),
        "{shown}"
    );
}

#[test]
fn ctrl_c_in_a_replay_prints_the_part_that_was_played() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("long.csv");
    // Each pod is alone, so that each step launches a node and removes one: far more than a test waits for.
    let mut rows = String::from("name,cpu_milli,memory_mib,creation_time,deletion_time\n");
    for nth in 0..50_000 {
        let from = nth * 60;
        let _ = writeln!(rows, "p{nth},1000,1024,{from},{}", from + 50);
    }
    std::fs::write(&trace, rows).unwrap();
    let fixtures = "tests/fixtures/simulate";
    let mut kerf = OnTerminal::start(&format!(
        "simulate -f {fixtures}/trace/pool.yaml --catalog {fixtures}/spot.catalog.json --replay --step 1m --trace {}",
        trace.display()
    ));

    kerf.until(" of 50000");
    kerf.press(CTRL_C);

    let (shown, code) = kerf.end();
    assert_eq!(code, Some(INTERRUPTED), "{shown}");
    let partial = shown.split("PARTIAL: interrupted after ").nth(1);
    let partial = partial.unwrap_or_else(|| panic!("not marked as partial: {shown}"));
    let steps: usize = partial.split(' ').next().unwrap().parse().unwrap();
    assert!(steps < 50_000, "{steps}");
    assert!(partial.contains(" per hour on the average"), "{partial}");
}
