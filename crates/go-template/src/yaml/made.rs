//! The budget of what decoding makes.
//!
//! A text is no measure of the values that are read from it: an alias of five bytes copies what its
//! anchor names, and an empty list of three bytes takes forty. So what a value takes is charged
//! before it is made, in bytes near to what the process then holds.

use std::cell::Cell;

use super::error::{MAX_MADE, YamlProblem};
use crate::limits::{Interrupt, Interrupted};

/// A value itself, with its share of the list that holds it.
pub(super) const VALUE: usize = 40;

/// A list that holds something.
pub(super) const LIST: usize = 96;

/// A map that holds something: its first node has room for eleven entries.
pub(super) const MAP: usize = 320;

/// A key with its share of the map's nodes.
pub(super) const ENTRY: usize = 40;

/// Events between two questions to the interrupt.
const INTERRUPT_EVERY: u32 = 256;

/// Counts what was made.
#[derive(Debug)]
pub(super) struct Made<'i> {
    spent: Cell<usize>,
    events: Cell<u32>,
    interrupt: &'i dyn Interrupt,
}

impl<'i> Made<'i> {
    pub(super) fn new(interrupt: &'i dyn Interrupt) -> Self {
        Self { spent: Cell::new(0), events: Cell::new(0), interrupt }
    }

    /// Bytes made so far.
    pub(super) fn spent(&self) -> usize {
        self.spent.get()
    }

    /// Before `bytes` bytes are made.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), YamlProblem> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MAX_MADE { Err(YamlProblem::TooLarge) } else { Ok(()) }
    }

    /// Before an event is read.
    pub(super) fn event(&self) -> Result<(), Interrupted> {
        let events = self.events.get();
        self.events.set(events.wrapping_add(1));
        let ask = events.is_multiple_of(INTERRUPT_EVERY);
        ask.then(|| self.interrupt.interrupted()).flatten().map_or(Ok(()), Err)
    }
}
