//! `make run`: a real control plane, a simulated cloud, the quick start's objects and kerf, in one terminal.
//!
//! [`Stack`] starts everything and takes it down again, [`Look`] is what the cluster and the cloud show at one moment,
//! [`Screen`] draws it, and [`settle`] decides whether there is anything left to happen. Nothing in here helps kerf:
//! it reads the API server and ecs-sim as any other client would.

pub(crate) mod api_server;
mod changes;
pub(crate) mod child;
mod look;
pub(crate) mod manifests;
mod paint;
mod screen;
mod settle;
mod stack;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use look::Look;
use screen::Screen;
use stack::Stack;

/// Fast enough to see an instance boot, slow enough to read.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Looks in a row that must show nothing left to do: a claim that is about to be made shows within two seconds.
const SETTLED_LOOKS: usize = 5;
/// On two idle cores it takes half a minute; a machine that also compiles takes three times that.
const SETTLE_MAX: Duration = Duration::from_secs(300);
/// The API server may pause, and the demo goes on; after this many failed looks it will not come back.
const FAILED_LOOKS_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop once every pod runs and every instance is accounted for, or fail after five minutes.
    #[arg(long)]
    oneshot: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.no_build {
        stack::build()?;
    }
    // Only now: until here Ctrl-C ends cargo and go as it always does.
    let interrupted = interrupts()?;
    let started = Instant::now();
    let mut stack = Stack::start(|| interrupted.load(Ordering::Relaxed))?;
    let mut screen = Screen::open(&stack, started);
    let result = watch(args, &mut stack, &mut screen, &interrupted);
    let last = screen.close();
    let reason = match result {
        Ok(()) => None,
        Err(error) => Some(error.context(format!(
            "the last lines of kerf's log:\n{}",
            stack.kerf_log_tail()
        ))),
    };
    stack.stop();
    match reason {
        Some(error) => Err(error),
        None => {
            if args.oneshot && !interrupted.load(Ordering::Relaxed) {
                println!("{}", settle::closing_line(&last));
            }
            Ok(())
        }
    }
}

/// Ctrl-C, SIGTERM and SIGHUP set the flag; whoever waits looks at it.
fn interrupts() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(flag)
}

fn watch(
    args: &Args,
    stack: &mut Stack,
    screen: &mut Screen,
    interrupted: &AtomicBool,
) -> Result<()> {
    let started = Instant::now();
    let (mut settled, mut failed) = (0, 0);
    while !interrupted.load(Ordering::Relaxed) {
        stack.check_alive()?;
        match Look::take(stack) {
            Ok(look) => {
                failed = 0;
                let open = settle::open_ends(&look);
                settled = if open.is_empty() { settled + 1 } else { 0 };
                screen.show(look);
                if args.oneshot && settled >= SETTLED_LOOKS {
                    return Ok(());
                }
                if args.oneshot && started.elapsed() > SETTLE_MAX {
                    bail!(
                        "not settled after {} s:\n  {}",
                        SETTLE_MAX.as_secs(),
                        open.join("\n  ")
                    );
                }
            }
            Err(error) => {
                failed += 1;
                if failed > FAILED_LOOKS_MAX {
                    return Err(error.context("the local cluster does not answer"));
                }
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    if args.oneshot {
        bail!("interrupted before everything was settled")
    } else {
        Ok(())
    }
}
