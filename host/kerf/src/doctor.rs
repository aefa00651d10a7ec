//! `kerf doctor`: what is wrong with a cluster, before a pod waits for a node at night. It changes nothing.
//!
//! Each part adds its findings to the [`Report`] and goes on: what cannot be looked at is a finding too.

mod cloud;
mod definitions;
mod objects;
mod report;
mod rights;

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;

use crate::api_server::{Rate, connect_as};
use crate::args::Doctor;
use crate::exit::Findings;
use crate::explain::args::Output;
use report::{Finding, Report};

/// Some fifty questions about rights.
const RATE: Rate = Rate {
    per_second: 100,
    burst: 200,
};
/// Of each part; who asks at night wants to know sooner that nobody answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks and prints.
///
/// # Errors
/// [`Findings`] when something is to be fixed; otherwise when there is no way to the API server.
pub(crate) fn run(args: &Doctor) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let report = runtime.block_on(examine(args))?;
    let text = match args.output {
        Output::Text => report.text(),
        Output::Json => report.json()?,
    };
    write!(std::io::stdout().lock(), "{text}").context("cannot write the answer")?;
    match report.problems() {
        0 => Ok(()),
        problems => Err(Findings(problems).into()),
    }
}

async fn examine(args: &Doctor) -> Result<Report> {
    // A second installer would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = &args.controller;
    let client = connect_as(settings.kubeconfig.as_deref(), RATE, args.user.as_deref()).await?;
    let mut report = Report::default();
    if !is_reachable(&client, &mut report).await {
        return Ok(report);
    }
    definitions::examine(&client, settings, &mut report).await;
    rights::examine(&client, settings, &mut report).await;
    let seen = objects::examine(&client, settings, &mut report).await;
    cloud::examine(settings, &seen, &mut report).await;
    Ok(report)
}

async fn is_reachable(client: &Client, report: &mut Report) -> bool {
    let asked = tokio::time::timeout(PATIENCE, client.apiserver_version()).await;
    let failure = match asked {
        Ok(Ok(version)) => {
            report.fine("api-server", format!("answers, {}", version.git_version));
            return true;
        }
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    report.add(Finding::problem(
        "api-server",
        "the API server",
        format!("cannot be asked: {failure}"),
        "check --kubeconfig (KUBECONFIG), or run it in a pod of the controller: kubectl exec deploy/kerf -- kerf doctor",
    ));
    false
}
