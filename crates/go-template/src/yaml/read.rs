//! YAML text to JSON values, like `sigs.k8s.io/yaml` and `gopkg.in/yaml.v2`.

use serde_json::Value;

use super::compose::Composer;
use super::error::{Aliases, YamlError};
use super::made::Made;
use crate::limits::{Interrupt, Never};

/// Decodes texts; the values of all of them share one budget of [`super::MAX_MADE`] bytes.
#[derive(Debug)]
pub struct Reader<'i> {
    made: Made<'i>,
    aliases: Aliases,
}

impl<'i> Reader<'i> {
    /// A reader with its whole budget.
    pub fn new(aliases: Aliases, interrupt: &'i dyn Interrupt) -> Self {
        Self { made: Made::new(interrupt), aliases }
    }

    /// Approximate bytes of the values created so far.
    pub fn made(&self) -> usize {
        self.made.spent()
    }

    /// The first document of a text; an empty one is `null`.
    pub fn read(&self, text: &str) -> Result<Value, YamlError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Composer::new(text, self.aliases, &self.made).document()
    }

    /// The documents of a text: splits it at every line that starts with `---`, even within a block of text,
    /// and skips empty chunks.
    pub fn documents(&self, text: &str) -> Result<Vec<Value>, YamlError> {
        let mut values = Vec::new();
        let mut lines_before = 0;
        for chunk in text.split("\n---") {
            if !chunk.trim().is_empty() {
                let value = self
                    .read(chunk)
                    .map_err(|error| YamlError { line: error.line + lines_before, ..error })?;
                if !value.is_null() {
                    values.push(value);
                }
            }
            // The line break before the mark.
            lines_before += chunk.matches('\n').count() + 1;
        }
        Ok(values)
    }
}

/// The first document of a text, with a budget of its own.
pub fn read(text: &str) -> Result<Value, YamlError> {
    Reader::new(Aliases::Counted, &Never).read(text)
}

/// The objects of a text ([`Reader::documents`]), with a budget of their own.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    Reader::new(Aliases::Counted, &Never).documents(text)
}
