//! Logs: events with fields, as text for people or JSON for machines, on standard error.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

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

/// Starts logging. A filter that does not parse falls back to `info`, and says so.
pub(crate) fn start(log: &Log) {
    let (filter, problem) = match EnvFilter::try_new(&log.level) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match log.format {
        Format::Text => subscriber.with_target(false).init(),
        Format::Json => subscriber.json().init(),
    }
    if let Some(error) = problem {
        tracing::warn!(log_level = %log.level, %error, "log level not understood; using info");
    }
}
