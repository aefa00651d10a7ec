//! The example binary, killed in the way that no destructor survives.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail it")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes whose command line holds `text`.
fn processes_with(text: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok())
        .filter(|command_line| command_line.contains(text))
        .count()
}

#[test]
fn kill_9_takes_the_servers_along() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_control-plane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let place: serde_json::Value = serde_json::from_str(&line).unwrap();
    let folder = Path::new(place["kubeconfig"].as_str().unwrap())
        .parent()
        .unwrap();
    // etcd, kube-apiserver, kube-scheduler, kube-controller-manager, kwok
    assert_eq!(processes_with(folder.to_str().unwrap()), 5);

    program.kill().unwrap();
    program.wait().unwrap();

    let deadline = Instant::now() + Duration::from_secs(10);
    while processes_with(folder.to_str().unwrap()) > 0 {
        assert!(
            Instant::now() < deadline,
            "servers outlived the process that started them"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
