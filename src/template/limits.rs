//! Bounds on what one rendering may cost, so that a package cannot take the process down.

use std::cell::Cell;

/// Nesting of actions and parentheses in a template's text. The parser and the executor recurse
/// once a level; Go's own bound is 10000 for parentheses and none for actions.
pub const MAX_NESTING: usize = 100;

/// Actions, parentheses and templates that call each other, while rendering (Go: 100000 templates).
pub const MAX_DEPTH: usize = 200;

/// Lists and maps within each other, where a value is printed or compared.
pub const MAX_VALUE_DEPTH: usize = 100;

/// Bytes of rendered text: several times what an API server takes as one object.
pub const MAX_OUTPUT: usize = 8 << 20;

/// Work of one rendering, in bytes produced; a step counts as [`STEP_COST`] bytes.
pub const MAX_WORK: usize = 64 << 20;

/// What visiting a node or calling a function costs.
pub(super) const STEP_COST: usize = 64;

/// What an element of a list or map costs.
pub(super) const ITEM_COST: usize = 32;

/// A bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// [`MAX_DEPTH`].
    #[error("templates and actions are nested deeper than {MAX_DEPTH} levels")]
    Depth,
    /// [`MAX_VALUE_DEPTH`].
    #[error("value is nested deeper than {MAX_VALUE_DEPTH} levels")]
    ValueDepth,
    /// [`MAX_OUTPUT`].
    #[error("rendered more than {MAX_OUTPUT} bytes")]
    Output,
    /// [`MAX_WORK`].
    #[error(
        "rendering takes too much work: look for a loop over too many elements or a text that grows in a loop"
    )]
    Work,
}

/// Counts the work of one rendering.
#[derive(Debug, Default)]
pub(super) struct Meter {
    spent: Cell<usize>,
}

impl Meter {
    /// Before `bytes` bytes are produced.
    pub(super) fn bytes(&self, bytes: usize) -> Result<(), LimitReached> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MAX_WORK { Err(LimitReached::Work) } else { Ok(()) }
    }

    /// Before `count` list elements are produced or visited.
    pub(super) fn items(&self, count: usize) -> Result<(), LimitReached> {
        self.bytes(count.saturating_mul(ITEM_COST))
    }

    /// Before a node is visited or a function is called.
    pub(super) fn step(&self) -> Result<(), LimitReached> {
        self.bytes(STEP_COST)
    }
}
