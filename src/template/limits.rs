//! Bounds on what one rendering may cost, so that a package cannot take the process down.
//!
//! Two kinds. A *budget* is counted from the template and its values alone: it runs out at the same
//! place on every machine, and the rendering fails for good. An [`Interrupt`] comes from outside (a
//! deadline, the end of the process): it says nothing about the package, and the rendering is tried
//! again later.

use std::cell::Cell;
use std::fmt;

/// Nesting of actions and parentheses in a template's text. The parser and the executor recurse
/// once a level; Go's own bound is 10000 for parentheses and none for actions.
pub const MAX_NESTING: usize = 100;

/// Actions, parentheses and templates that call each other, while rendering (Go: 100000 templates).
pub const MAX_DEPTH: usize = 200;

/// Lists and maps within each other, where a value is printed or compared.
pub const MAX_VALUE_DEPTH: usize = 100;

/// Bytes of rendered text: several times what an API server takes as one object.
pub const MAX_OUTPUT: usize = 8 << 20;

/// Work of one rendering, in bytes produced or read; a step counts as [`STEP_COST`] bytes.
pub const MAX_WORK: usize = 64 << 20;

/// What visiting a node or calling a function costs.
pub(super) const STEP_COST: usize = 64;

/// What an element of a list or map costs.
pub(super) const ITEM_COST: usize = 32;

/// Work between two questions to the [`Interrupt`]: well under a millisecond.
const INTERRUPT_EVERY: usize = 64 << 10;

/// Why work has to end that no budget of its own ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// It took more processor time than it may.
    #[error("took more processor time than --render-limit allows; it is tried again")]
    TimeLimit,
    /// The process ends.
    #[error("interrupted as the process ends; it is tried again")]
    Shutdown,
}

/// Ends a rendering, or the decoding of what it rendered, from outside.
///
/// This module has no clock. The caller gives a handle that knows one, or that another thread
/// sets. It is asked before a rendering and after every 64 KiB of work (which takes less than a
/// millisecond), on the thread that renders, so an answer may depend on the processor time of the
/// current thread. It must be cheap: a few hundred nanoseconds are.
///
/// One handle can serve many renderings one after another: [`Interrupt::begin`] marks where each
/// starts.
pub trait Interrupt: fmt::Debug + Send + Sync {
    /// A rendering (all templates of one task) starts now on this thread; what it may take is
    /// counted from here.
    fn begin(&self) {}

    /// Why the work has to end, if it has to.
    fn interrupted(&self) -> Option<Interrupted>;
}

/// Never interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Never;

impl Interrupt for Never {
    fn interrupted(&self) -> Option<Interrupted> {
        None
    }
}

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
        "rendering takes more work than the budget of {MAX_WORK} bytes: look for a loop over too many elements, \
         a text that grows in a loop, or a large regular expression"
    )]
    Work,
    /// Not a bound of the package.
    #[error("rendering {0}")]
    Interrupted(#[from] Interrupted),
}

/// Counts the work of one rendering.
#[derive(Debug)]
pub(super) struct Meter<'i> {
    spent: Cell<usize>,
    /// The interrupt is asked when this much is spent.
    ask_at: Cell<usize>,
    interrupt: &'i dyn Interrupt,
}

impl<'i> Meter<'i> {
    pub(super) fn new(interrupt: &'i dyn Interrupt) -> Self {
        Self { spent: Cell::new(0), ask_at: Cell::new(0), interrupt }
    }

    /// Before `bytes` bytes are produced or read.
    pub(super) fn bytes(&self, bytes: usize) -> Result<(), LimitReached> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MAX_WORK {
            return Err(LimitReached::Work);
        }
        if spent >= self.ask_at.get() {
            self.ask_at.set(spent + INTERRUPT_EVERY);
            self.interrupt.interrupted().map_or(Ok(()), |why| Err(why.into()))
        } else {
            Ok(())
        }
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
