//! Logs: events with fields, as text for people or JSON for machines. A subcommand logs to standard error, the
//! controller where it is told to.

mod sink;

use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use kerf_controllers::hot::SetLevel;
use tracing_subscriber::{EnvFilter, reload};

pub(crate) use sink::Sinks;

/// Levels that Karpenter's charts write, and ours.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What is logged and how.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct Log {
    /// Least severe level that is logged: error, warn, info, debug, trace, or a tracing filter such as `kerf_cloud=debug,info`.
    #[arg(
        long = "log-level",
        env = "LOG_LEVEL",
        default_value = "info",
        global = true
    )]
    level: String,
    /// Form of log lines.
    #[arg(long = "log-format", env = "LOG_FORMAT", value_enum, default_value_t = Format::Text, global = true)]
    format: Format,
}

/// Starts logging to these places; what is returned changes the level.
///
/// # Errors
/// When the level is no level and no filter, or a file cannot be written.
pub(crate) fn start(log: &Log, paths: &[String]) -> anyhow::Result<SetLevel> {
    let filter = filter(&log.level)?;
    let sinks = Sinks::open(paths)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(sinks.is_terminal())
        .with_writer(sinks);
    match log.format {
        Format::Text => {
            let subscriber = subscriber.with_target(false).with_filter_reloading();
            let handle = subscriber.reload_handle();
            subscriber.init();
            Ok(set_level(handle, log.level.clone()))
        }
        Format::Json => {
            let subscriber = subscriber.json().with_filter_reloading();
            let handle = subscriber.reload_handle();
            subscriber.init();
            Ok(set_level(handle, log.level.clone()))
        }
    }
}

/// The same level again is nothing to do: a new filter makes every place that logs ask again.
fn set_level<S: 'static>(handle: reload::Handle<EnvFilter, S>, started_with: String) -> SetLevel {
    let current = Mutex::new(started_with.clone());
    SetLevel::new(move |level| {
        let level = level.unwrap_or(&started_with);
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current == level {
            return Ok(());
        }
        let filter = filter(level).map_err(|error| format!("{error:#}"))?;
        handle.reload(filter).map_err(|error| error.to_string())?;
        level.clone_into(&mut current);
        Ok(())
    })
}

/// A bare word is a level: as a filter it would be the name of a module, and a typing error would silence everything.
fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    let level = level.trim();
    if level.is_empty() {
        return Ok(EnvFilter::new("info"));
    }
    let is_word = level.chars().all(|it| it.is_ascii_alphabetic());
    if is_word && !LEVELS.contains(&level.to_lowercase().as_str()) {
        bail!(
            "--log-level (LOG_LEVEL) {level:?} is not known: use one of {}",
            LEVELS.join(", ")
        );
    }
    EnvFilter::try_new(level).with_context(|| format!("--log-level (LOG_LEVEL) {level:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_in_the_level_is_refused() {
        for good in ["", "info", "DEBUG", "error", "kerf_cloud=debug,info"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["inof", "warning", "kerf=loud"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
