//! Starts a local control plane, prints where it is as one line of JSON, and stops it at the end of its input or on
//! SIGINT or SIGTERM. `kubectl --kubeconfig` with the printed path works at once.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use control_plane::{ControlPlane, Options};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            // Nobody is left to tell if even this fails.
            let _ = writeln!(io::stderr(), "control-plane: {}", chain(&*err));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let (end, ended) = mpsc::channel();
    let end_on_signal = end.clone();
    // Set up first: a signal during the start must not skip the clean-up.
    // A second signal finds nobody who listens, which is fine.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            end_on_signal.send(()).unwrap_or_default();
        }
    });
    let control_plane = ControlPlane::start(Options::default())?;
    let place = json!({
        "kubeconfig": control_plane.kubeconfig_path(),
        "server": control_plane.server_url(),
        "logs": control_plane.logs_dir(),
    });
    writeln!(io::stdout(), "{place}")?;
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        end.send(())
    });
    ended.recv()?;
    control_plane.stop()?;
    Ok(())
}

fn chain(err: &dyn Error) -> String {
    let mut text = err.to_string();
    let mut source = err.source();
    while let Some(err) = source {
        text.push_str(": ");
        text.push_str(&err.to_string());
        source = err.source();
    }
    text
}
