//! Limits of the cost of one rendering, so that no template can take the process down.
//!
//! There are two kinds. A *budget* counts costs of the template and its values alone: it is exceeded at the
//! same position on every machine, and the rendering fails permanently. An [`Interrupt`] comes from outside
//! (a deadline, the end of the process) and is independent of the template: the same rendering may succeed
//! later.

use std::cell::Cell;
use std::fmt;

use super::generator::{Generator, Stream};
use super::key_store::Keys;
pub use super::key_store::{MAX_KEYS, MAX_KEYS_KEPT};
use super::patterns::Patterns;

/// Nesting of actions and parentheses in a template's text. Parser and executor recurse once per level; Go's
/// own limit is 10000 for parentheses and none for actions.
pub const MAX_NESTING: usize = 100;

/// Nodes, commands and operands of a template's text, each of which takes a hundred bytes or two.
pub const MAX_NODES: usize = 100_000;

/// Actions, parentheses and templates that call each other, while rendering (Go: 100000 templates).
pub const MAX_DEPTH: usize = 200;

/// Nesting of lists and maps that are printed or compared.
pub const MAX_VALUE_DEPTH: usize = 100;

/// Bytes of rendered text.
pub const MAX_OUTPUT: usize = 8 << 20;

/// Bytes of the values that one rendering creates, including dropped ones. An element of a list counts as
/// [`ITEM_COST`] bytes.
pub const MAX_MADE: usize = 32 << 20;

/// Work of one rendering, in bytes created or read; a step counts as [`STEP_COST`] bytes.
pub const MAX_WORK: usize = 64 << 20;

/// Bytes of a compiled regular expression.
pub const MAX_COMPILED: usize = 1 << 20;

/// Bytes of a regular expression's text: a class of two characters compiles to kilobytes.
pub const MAX_PATTERN: usize = 2 << 10;

/// Cost of visiting a node or calling a function.
pub(super) const STEP_COST: usize = 64;

/// Cost of an element of a list.
pub(super) const ITEM_COST: usize = 32;

/// Cost of an entry of a map.
pub(super) const ENTRY_COST: usize = 96;

/// Work between two calls of the [`Interrupt`]: well under a millisecond.
const INTERRUPT_EVERY: usize = 64 << 10;

/// Why the work was interrupted: the text after "rendering" in an error, such as "took longer than a
/// second".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(pub &'static str);

/// Ends a rendering, or the decoding of what it rendered, from outside.
///
/// This module has no clock. The caller passes a handle that reads one, or that another thread sets. A
/// rendering calls it at the start and after every 64 KiB of work (which takes less than a millisecond), on
/// its own thread, so the result may depend on the processor time of the current thread. It must be cheap: a
/// few hundred nanoseconds are.
///
/// One handle can serve many renderings one after another: [`Interrupt::begin`] marks the start of each.
pub trait Interrupt: fmt::Debug + Send + Sync {
    /// A rendering starts now on this thread; its time counts from here.
    fn begin(&self) {}

    /// Why the work has to end, if so.
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

/// A limit was reached.
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
    /// [`MAX_MADE`].
    #[error(
        "rendering makes more than the budget of {MAX_MADE} bytes of values: look for a loop over too many elements \
         or a text that grows in a loop"
    )]
    Made,
    /// [`MAX_WORK`].
    #[error(
        "rendering takes more work than the budget of {MAX_WORK} bytes made or read: look for a loop over too many \
         elements or long texts"
    )]
    Work,
    /// [`MAX_COMPILED`] or [`MAX_PATTERN`].
    #[error(
        "a regular expression takes more than the budget of {MAX_COMPILED} bytes when it is compiled, or {MAX_PATTERN} \
         bytes as text: repeat large classes less often"
    )]
    Pattern,
    /// Not a limit of the template.
    #[error("rendering {0}")]
    Interrupted(#[from] Interrupted),
}

/// Counts the values that one rendering creates, and its work.
#[derive(Debug)]
pub(super) struct Meter<'i> {
    made: Cell<usize>,
    work: Cell<usize>,
    /// Work since the last call of the interrupt.
    unasked: Cell<usize>,
    interrupt: &'i dyn Interrupt,
    /// What the program gives for `now` and for what is random.
    generator: Option<&'i Generator>,
    /// Keys of a rendering without a generator.
    own: Keys,
    /// Streams that were taken from it.
    streams: Cell<u64>,
    /// Regular expressions that this rendering has compiled.
    pub(super) patterns: Patterns,
}

impl<'i> Meter<'i> {
    pub(super) fn new(interrupt: &'i dyn Interrupt, generator: Option<&'i Generator>) -> Self {
        Self {
            made: Cell::new(0),
            work: Cell::new(0),
            // The first step calls it.
            unasked: Cell::new(INTERRUPT_EVERY),
            interrupt,
            generator,
            own: Keys::default(),
            streams: Cell::new(0),
            patterns: Patterns::default(),
        }
    }

    /// The time that `now` is, if the program gives one.
    pub(super) fn now(&self) -> Option<jiff::Timestamp> {
        Some(self.generator?.now())
    }

    /// Random bytes for one call, if the program gives any.
    pub(super) fn stream(&self) -> Option<Stream> {
        let generator = self.generator?;
        let call = self.streams.get();
        self.streams.set(call.wrapping_add(1));
        Some(generator.stream(call))
    }

    /// The keys that are made or known, and their budget.
    pub(super) fn keys(&self) -> &Keys {
        self.generator.map_or(&self.own, Generator::keys)
    }

    /// Calls the interrupt now, between pieces of work that take milliseconds.
    pub(super) fn ask(&self) -> Result<(), LimitReached> {
        self.unasked.set(0);
        self.interrupt.interrupted().map_or(Ok(()), |why| Err(why.into()))
    }

    /// Charges for a text of `bytes` bytes, before it is created.
    pub(super) fn bytes(&self, bytes: usize) -> Result<(), LimitReached> {
        let made = self.made.get().saturating_add(bytes);
        self.made.set(made);
        if made > MAX_MADE { Err(LimitReached::Made) } else { self.read(bytes) }
    }

    /// Charges for a list of `count` elements, before it is created.
    pub(super) fn items(&self, count: usize) -> Result<(), LimitReached> {
        self.bytes(count.saturating_mul(ITEM_COST))
    }

    /// Charges for a map of `count` entries, before it is created.
    pub(super) fn entries(&self, count: usize) -> Result<(), LimitReached> {
        self.bytes(count.saturating_mul(ENTRY_COST))
    }

    /// Charges for reading `bytes` bytes of a text, in advance.
    pub(super) fn read(&self, bytes: usize) -> Result<(), LimitReached> {
        let work = self.work.get().saturating_add(bytes);
        self.work.set(work);
        if work > MAX_WORK {
            return Err(LimitReached::Work);
        }
        self.pass(bytes)
    }

    /// Charges for visiting `count` elements of a list or map, in advance.
    pub(super) fn visit(&self, count: usize) -> Result<(), LimitReached> {
        self.read(count.saturating_mul(ITEM_COST))
    }

    /// Charges for visiting a node or calling a function, in advance.
    pub(super) fn step(&self) -> Result<(), LimitReached> {
        self.read(STEP_COST)
    }

    /// Counts, for the interrupt only, work that takes the time of `bytes` bytes at most, and probably much
    /// less.
    pub(super) fn pass(&self, bytes: usize) -> Result<(), LimitReached> {
        let unasked = self.unasked.get().saturating_add(bytes);
        if unasked < INTERRUPT_EVERY {
            self.unasked.set(unasked);
            return Ok(());
        }
        self.ask()
    }
}
