//! Fields of log lines: bounded, as their values may come from a caller.
//!
//! Bounds only log lines: answers to users are bounded where they are made.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Bytes of a value: the longest name that Kubernetes gives an object.
const VALUE_BYTES: usize = 253;
/// Bytes of a line's message, of an error with its sources, and of a reason (`why`): these come from us or
/// the API server, and end with the remedy.
const SENTENCE_BYTES: usize = 1024;
/// Marks a cut value.
const CUT: &str = "…";

fn most_bytes(field: &str) -> usize {
    if matches!(field, "message" | "error" | "why") { SENTENCE_BYTES } else { VALUE_BYTES }
}

/// A value, cut if it is too long.
pub(super) fn bounded<'v>(field: &Field, value: &'v str) -> Cow<'v, str> {
    let most = most_bytes(field.name());
    if value.len() <= most {
        return Cow::Borrowed(value);
    }
    let end = value.floor_char_boundary(most);
    Cow::Owned(format!("{}{CUT}", &value[..end]))
}

/// A formatted value; formatting stops at the limit.
pub(super) fn printed(field: &Field, value: &dyn fmt::Debug) -> String {
    let mut text = Bounded { text: String::new(), room: most_bytes(field.name()) };
    if write!(text, "{value:?}").is_err() {
        text.text.push_str(CUT);
    }
    text.text
}

struct Bounded {
    text: String,
    room: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.floor_char_boundary(self.room);
        self.text.push_str(&text[..end]);
        self.room -= end;
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Fields of a line for people: the message, then `name=value`. Control characters are escaped: no value
/// can start a line of its own or control a terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut text = Text { writer, begun: false, result: Ok(()) };
        fields.record(&mut text);
        text.result
    }
}

struct Text<'w> {
    writer: Writer<'w>,
    begun: bool,
    result: fmt::Result,
}

impl Text<'_> {
    fn write(&mut self, field: &Field, value: &str) -> fmt::Result {
        let name = field.name();
        if name.starts_with("log.") {
            return Ok(());
        }
        if std::mem::replace(&mut self.begun, true) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            let name = name.strip_prefix("r#").unwrap_or(name);
            if self.writer.has_ansi_escapes() {
                write!(self.writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?;
            } else {
                write!(self.writer, "{name}=")?;
            }
        }
        for char in value.chars() {
            if char.is_control() {
                write!(self.writer, "{}", char.escape_default())?;
            } else {
                self.writer.write_char(char)?;
            }
        }
        Ok(())
    }
}

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.result.is_ok() {
            self.result = self.write(field, &printed(field, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::registry;

    use super::super::json_lines::JsonLines;
    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn text(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = fmt::layer().with_writer(move || writer.clone()).with_ansi(false).fmt_fields(TextFields);
        tracing::subscriber::with_default(registry().with(layer), log);
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    fn json(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(JsonLines)
            .event_format(JsonLines);
        tracing::subscriber::with_default(registry().with(layer), log);
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    /// A review of 7 MB by a caller that is not the API server.
    #[test]
    fn a_line_is_short_however_long_its_values_are() {
        let long = "ä".repeat(3_500_000);
        let log = || {
            let span = tracing::info_span!("wait", operator_version = %long);
            let _inside = span.enter();
            tracing::info!(uid = long, user = %long, rules = ?[&long], error = %long, "decided {long}");
        };
        for line in [text(log), json(log)] {
            assert_eq!(line.lines().count(), 1);
            assert!(line.len() < 4 * 300 + 2 * 1_100 + 500, "{} bytes", line.len());
            assert!(line.contains(&"ä".repeat(126)) && line.contains(CUT));
        }
    }

    #[test]
    fn a_value_begins_no_line_of_its_own() {
        let line = text(|| {
            let name = "a\n2026-01-01T00:00:00Z INFO interlock: all is well\x1b[2J";
            tracing::info!(%name, r#type = 1, ok = true, text = "quoted", "first {}", 1);
        });
        assert_eq!(line.lines().count(), 1);
        let end = "first 1 name=a\\n2026-01-01T00:00:00Z INFO interlock: all is well\\u{1b}[2J type=1 ok=true text=\"quoted\"\n";
        assert!(line.ends_with(end), "{line:?}");
    }
}
