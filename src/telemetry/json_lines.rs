//! One JSON object for each line, written straight into one buffer.
//!
//! The lines are those of `tracing_subscriber`'s own JSON format with its fields flattened and the
//! innermost span beside them, except that values are bounded: that format writes the fields of an event
//! whole, and a caller chooses some of them. It also takes 2.0 us for the line of a decision, and this one
//! 0.7; no row of `benches` shows that, as callers of the HTTPS row are unknown and most lines left out.

use std::fmt::{self, Write as _};

use interlock_core::api::json::json_string;
use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{bounded, printed};

/// Formats lines, and the fields of spans as members: each with a comma before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonLines;

/// Length of most lines.
const USUAL: usize = 512;

impl<'w> FormatFields<'w> for JsonLines {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut members = Members::default();
        fields.record(&mut members);
        writer.write_str(&members.text)
    }
}

impl<S> FormatEvent<S, JsonLines> for JsonLines
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonLines>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Members { text: String::with_capacity(USUAL), logged_by: None };
        write!(line.text, "{{\"timestamp\":\"{:.6}\",\"level\":\"{}\"", Timestamp::now(), metadata.level())?;
        event.record(&mut line);
        let Members { text: mut line, logged_by } = line;
        line.push_str(",\"target\":");
        json_string(&mut line, logged_by.as_deref().unwrap_or_else(|| metadata.target()));
        if let Some(span) = context.parent_span() {
            line.push_str(",\"span\":{\"name\":");
            json_string(&mut line, span.name());
            if let Some(fields) = span.extensions().get::<FormattedFields<JsonLines>>() {
                line.push_str(fields);
            }
            line.push('}');
        }
        line.push_str("}\n");
        writer.write_str(&line)
    }
}

/// Fields as members of an object, each with a comma before it.
#[derive(Default)]
struct Members {
    text: String,
    /// The target of a line of the `log` crate, which arrives as a field.
    logged_by: Option<String>,
}

impl Members {
    fn name(&mut self, field: &Field) -> bool {
        let name = field.name();
        if name.starts_with("log.") {
            return false;
        }
        // Field names are Rust identifiers: they need no escaping.
        self.text.push_str(",\"");
        self.text.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.text.push_str("\":");
        true
    }

    fn string(&mut self, field: &Field, value: &str) {
        if self.name(field) {
            json_string(&mut self.text, &bounded(field, value));
        }
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        if self.name(field) {
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{value}");
        }
    }
}

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.logged_by = Some(value.to_owned());
        }
        self.string(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.name(field) {
            json_string(&mut self.text, &printed(field, value));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON cannot express non-finite numbers.
        if value.is_finite() {
            self.plain(field, value);
        } else {
            self.string(field, &value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::registry;

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

    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(JsonLines)
            .event_format(JsonLines);
        tracing::subscriber::with_default(registry().with(layer), log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_is_one_object_with_its_fields_and_its_span() {
        let found = lines(|| {
            let span = tracing::info_span!("review", door = "mutate", uid = tracing::field::Empty);
            let _inside = span.enter();
            tracing::warn!(n = -1, of = 2_u64, ratio = 0.5, ok = true, rules = ?["a\"b"], "first {}", 1);
            span.record("uid", "u\n1");
            tracing::info!(nothing = f64::NAN, r#type = "x", "second");
        });
        let mut first = json!({
            "level": "WARN", "message": "first 1", "n": -1, "of": 2, "ratio": 0.5, "ok": true, "rules": "[\"a\\\"b\"]",
            "target": module_path!(), "span": {"name": "review", "door": "mutate"},
        });
        let mut second = json!({
            "level": "INFO", "message": "second", "nothing": "NaN", "type": "x",
            "target": module_path!(), "span": {"name": "review", "door": "mutate", "uid": "u\n1"},
        });
        first["timestamp"] = found[0]["timestamp"].clone();
        second["timestamp"] = found[1]["timestamp"].clone();
        assert_eq!(found, [first, second]);
        let at = found[0]["timestamp"].as_str().unwrap();
        assert!(at.len() == "2026-01-02T03:04:05.678901Z".len() && at.parse::<Timestamp>().is_ok(), "{at}");
    }
}
