//! Runs other programs and turns a bad end into an error that names the command.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs to the end with the terminal's own output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs to the end and returns what it printed; its errors go to the terminal.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
}

/// `cargo` in the workspace, by rustup and so of rust-toolchain.toml.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(crate::workspace::root());
    command
}

/// Builds everything that runs and everything that tests, and returns cargo's messages. One command for `make run` and
/// `make test`: with other targets the dependencies would get other features, and wasmtime would be built twice.
pub(crate) fn build_all() -> Result<String> {
    let mut build = cargo();
    build.args([
        "build",
        "--workspace",
        "--all-targets",
        "--locked",
        "--message-format=json-render-diagnostics",
    ]);
    output(&mut build)
}

/// Builds what is measured as users run it. The whole workspace is named so that dependencies keep their features.
pub(crate) fn build_release() -> Result<()> {
    let mut build = cargo();
    let programs = ["--bin", "kerf", "--bin", "ecs-sim"];
    build
        .args(["build", "--workspace", "--release", "--locked"])
        .args(programs);
    run(&mut build)
}

fn show(command: &Command) -> String {
    let mut shown = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        shown.push(' ');
        shown.push_str(&arg.to_string_lossy());
    }
    shown
}
