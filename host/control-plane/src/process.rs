//! Starts processes so that none outlives the control plane.
//!
//! Dropping a [`Process`] kills it. When this process dies without unwinding (kill -9, abort, `exit`), the kernel has to do it:
//! children are started through `setpriv --pdeathsig KILL` (util-linux), which sets the parent-death signal and becomes the
//! server. Where there is no `setpriv`, such a death leaves the servers running.
//!
//! That signal is sent when the *thread* that started the child ends, and callers start control planes on threads that
//! come and go, as those of tests and of `spawn_blocking`. Hence the [`Launcher`]: a thread which lives as long as the control plane.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::binary;

type Reply = io::Result<Child>;

/// How much a Go program may grow, in percent, before it collects garbage (100 by default): the servers have the memory,
/// and share two cores with what is measured.
const GARBAGE_PERCENT: &str = "300";

/// Owns the thread that starts processes. The thread ends when this is dropped, and takes what it started along.
#[derive(Debug)]
pub(crate) struct Launcher {
    requests: mpsc::Sender<(Command, mpsc::Sender<Reply>)>,
    setpriv: Option<PathBuf>,
}

impl Launcher {
    pub(crate) fn start() -> io::Result<Self> {
        let (requests, queue) = mpsc::channel::<(Command, mpsc::Sender<Reply>)>();
        thread::Builder::new()
            .name("control-plane-launcher".to_owned())
            .spawn(move || {
                for (mut command, reply) in queue {
                    // A reply that nobody waits for any more is dropped, and the process with it.
                    if let Err(mpsc::SendError(Ok(child))) = reply.send(command.spawn()) {
                        drop(Process { child });
                    }
                }
            })?;
        Ok(Self {
            requests,
            setpriv: binary::find_installed("setpriv"),
        })
    }

    pub(crate) fn launch(
        &self,
        program: &Path,
        args: &[String],
        log: std::fs::File,
    ) -> io::Result<Process> {
        let mut command = self.command(program, args);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let (reply, answer) = mpsc::channel();
        let gone = || io::Error::other("the launcher thread is gone");
        self.requests.send((command, reply)).map_err(|_| gone())?;
        let child = answer.recv().map_err(|_| gone())??;
        Ok(Process { child })
    }

    fn command(&self, program: &Path, args: &[String]) -> Command {
        let Some(setpriv) = &self.setpriv else {
            let mut command = Command::new(program);
            command.args(args).env("GOGC", GARBAGE_PERCENT);
            return command;
        };
        let mut command = Command::new(setpriv);
        command
            .env("GOGC", GARBAGE_PERCENT)
            .args(["--pdeathsig", "KILL", "--"].map(OsString::from))
            .arg(program)
            .args(args)
            // An interrupt from the terminal is for us; the servers end when we say so.
            .process_group(0);
        command
    }
}

/// A running server; killed and waited for when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills it with SIGKILL and waits until it is gone. Nothing that it holds is worth a graceful end.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It is gone, or it is not ours to kill: there is nobody to tell.
        let _ = self.kill();
    }
}
