//! A program that runs beside us: started so that it cannot outlive us, stopped gently and then for certain.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// ecs-sim takes its machines down first, which is a kill and an unmount each.
const STOP_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What fits on a screen below the reason.
const TAIL_LINES: usize = 30;

#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    log: PathBuf,
}

impl Child {
    /// Its errors, and unless `wants_output` its output, go to the log.
    pub(crate) fn start(
        program: &Path,
        log: &Path,
        wants_output: bool,
        set: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        // The kernel tells it to stop if we die without a chance to: setpriv (util-linux) arranges that.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program);
        set(&mut command);
        // A Ctrl-C at the terminal is for us; this one ends when we say so.
        command.process_group(0).stdin(Stdio::null());
        let output = file.try_clone().context("cannot share the log")?;
        command
            .stdout(if wants_output {
                Stdio::piped()
            } else {
                output.into()
            })
            .stderr(file);
        let process = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self {
            process,
            log: log.to_owned(),
        })
    }

    /// The first line that it prints, or an error when it ends without one.
    pub(crate) fn first_line(&mut self) -> Result<String> {
        let output = self
            .process
            .stdout
            .take()
            .context("its output goes to the log")?;
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .context("cannot read its first line")?;
        if line.is_empty() {
            anyhow::bail!("it ended at once; its log ends with:\n{}", self.log_tail());
        }
        Ok(line)
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// kill -9, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        // Both fail only when it has ended already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id().to_string();
        crate::process::run(Command::new("kill").args(["-s", name, &id]))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn stop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        // setpriv has become the program, so this is the program's own id.
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .stderr(Stdio::null())
            .status();
        let deadline = Instant::now() + STOP_MAX;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
        // It is gone by now, or it is stuck; either way nobody is left to tell about an error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
    }
}
