//! Everything that can go wrong, with enough of the log to know why.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::Component;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no {program} in {}\nhint: run `make control-plane` once, or set KUBEBUILDER_ASSETS", list(.searched))]
    FindProgram {
        program: &'static str,
        searched: Vec<PathBuf>,
    },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot make the certificates")]
    Certify(#[from] rcgen::Error),
    #[error("cannot read the certificate that was just made")]
    TrustCertificate(#[source] Box<ureq::Error>),
    #[error("no free port on the loopback interface")]
    FindPort,
    #[error("cannot start the thread that starts the servers")]
    StartThread(#[source] io::Error),
    #[error("cannot start {component}")]
    Start {
        component: Component,
        source: io::Error,
    },
    #[error(
        "{component} ended while it was starting, with {status}; the end of its log:\n{log_tail}"
    )]
    Ended {
        component: Component,
        status: ExitStatus,
        log_tail: String,
    },
    #[error(
        "{component} is not ready after {waited_secs} s: {last_answer}; the end of its log:\n{log_tail}"
    )]
    AwaitReady {
        component: Component,
        waited_secs: u64,
        last_answer: String,
        log_tail: String,
    },
    #[error("cannot kill {component}")]
    Kill {
        component: Component,
        source: io::Error,
    },
    #[error("cannot delete the leases that the last kwok held")]
    ReleaseNodes(#[source] Box<ureq::Error>),
    #[error("{0} is not part of this control plane")]
    NotPartOfIt(Component),
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(" or ")
}
