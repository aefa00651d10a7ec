//! The official Python SDKs, unmodified, against a simulator (tests/sdk/drive.py).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ecs_sim::World;

use crate::client::{ID, SECRET, start};

#[tokio::test(flavor = "multi_thread")]
async fn the_official_python_sdk_is_served() {
    let sim = start(World::default()).await;
    let url = sim.url().to_owned();

    let drive = move || {
        let python = environment().join("bin/python");
        run(Command::new(python)
            .arg(folder().join("drive.py"))
            .args([&url, ID, SECRET]))
    };
    let output = tokio::task::spawn_blocking(drive).await.unwrap();

    assert!(output.contains("check_life_of_an_instance: ok"), "{output}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk")
}

/// A virtual environment with the pinned packages, made once and kept under target/.
fn environment() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-venv");
    let requirements = folder().join("requirements.txt");
    let wanted = fs::read_to_string(&requirements).unwrap();
    // Written last, so an installation that broke off is made anew.
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return environment;
    }
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&environment));
    let pip = environment.join("bin/pip");
    run(Command::new(pip)
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ])
        .arg(&requirements));
    fs::write(installed, wanted).unwrap();
    environment
}

/// What the command printed; its failure is the test's, with all that it said.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{out}\n{err}",
        output.status
    );
    out.into_owned()
}
