//! Patterns of a schema, in Go's syntax.

use go_template::go::pattern::{translate, wide_folds};
use regex::{Regex, RegexBuilder};

use crate::limits::{MAX_PATTERN_BYTES, MAX_WIDE_FOLDS};

/// A pattern, or why it cannot be asked.
#[derive(Debug)]
pub(crate) struct CompiledPattern(pub(crate) Result<Regex, String>);

impl CompiledPattern {
    pub(crate) fn of(pattern: &str) -> Self {
        if wide_folds(pattern) > MAX_WIDE_FOLDS {
            return Self(Err(format!(
                "the pattern ignores the case of more than {MAX_WIDE_FOLDS} wide ranges"
            )));
        }
        let text = match translate(pattern) {
            Ok(text) => text,
            Err(reason) => return Self(Err(format!("the pattern is invalid: {reason}"))),
        };
        let compiled = RegexBuilder::new(&text).size_limit(MAX_PATTERN_BYTES).build();
        Self(compiled.map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => {
                format!("compiled, the pattern takes more than {limit} bytes")
            }
            _ => "the pattern has syntax of Go that is not supported offline".to_owned(),
        }))
    }
}
