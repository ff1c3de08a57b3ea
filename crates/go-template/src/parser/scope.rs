//! The variables in scope at one position of a template.

use std::collections::HashMap;

/// Names in the order of their declaration, and the number of declarations of each.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: Vec<String>,
    counts: HashMap<String, usize>,
}

impl Scope {
    pub(super) fn push(&mut self, name: String) {
        *self.counts.entry(name.clone()).or_insert(0) += 1;
        self.names.push(name);
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 0)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Removes all but the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        for name in self.names.drain(length.min(self.names.len())..) {
            if let Some(count) = self.counts.get_mut(&name) {
                *count -= 1;
            }
        }
    }
}
