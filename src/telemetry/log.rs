//! Log lines on stderr: text for people, one JSON object for each line for machines.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, registry};

use super::fields::TextFields;
use super::json_lines::JsonLines;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The filter is invalid.
#[derive(Debug, thiserror::Error)]
#[error(
    "--log-level {level:?} is not a filter: {problem}; use error, warn, info, debug, trace or TARGET=LEVEL,..."
)]
pub struct BadFilter {
    level: String,
    problem: String,
}

/// Starts logging; a second call in one process changes nothing.
pub fn start(level: &str, format: Format) -> Result<(), BadFilter> {
    let bad = |problem: String| BadFilter { level: level.to_owned(), problem };
    let filter = EnvFilter::try_new(level).map_err(|error| bad(error.to_string()))?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let _already_started = match format {
        Format::Text => {
            let lines = lines.fmt_fields(TextFields).with_ansi(std::io::stderr().is_terminal());
            registry().with(filter).with(lines).try_init()
        }
        Format::Json => {
            let lines = lines.fmt_fields(JsonLines).event_format(JsonLines).with_ansi(false);
            registry().with(filter).with(lines).try_init()
        }
    };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let text = panic.payload_as_str().unwrap_or("(no text)");
        tracing::error!(place, text, "panic");
    }));
    Ok(())
}
