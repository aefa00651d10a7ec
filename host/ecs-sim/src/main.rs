//! `ecs-sim`: the simulator as a process of its own.

mod args;

use anyhow::Context as _;
use clap::Parser as _;
use ecs_sim::{EcsSim, Options, World};

use crate::args::Args;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    if let Some(now) = args.now {
        ecs_sim::set_clock(now);
    }
    let sim = EcsSim::start(options(&args)?)
        .await
        .context("start the simulator")?;
    if args.print_ready {
        #[expect(
            clippy::print_stdout,
            reason = "the line is what --print-ready asks for"
        )]
        {
            println!("{}", serde_json::json!({"url": sim.url()}));
        }
    }
    tracing::info!(url = sim.url(), "ready");
    stop_signal().await.context("wait for a signal")?;
    sim.stop().await;
    Ok(())
}

fn options(args: &Args) -> anyhow::Result<Options> {
    let mut world = match &args.world {
        None => World::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("read {}", path.display()))?;
            World::parse(&text).with_context(|| format!("load {}", path.display()))?
        }
    };
    if let Some(region) = &args.region {
        world.region.clone_from(region);
    }
    Ok(Options {
        listen: args.listen,
        access_key_id: args.access_key_id.clone(),
        access_key_secret: args.access_key_secret.clone(),
        world,
        kubeconfig: args.kubeconfig.clone(),
        security_token: args.security_token.clone(),
    })
}

async fn stop_signal() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        outcome = tokio::signal::ctrl_c() => outcome,
        _ = terminate.recv() => Ok(()),
    }
}
