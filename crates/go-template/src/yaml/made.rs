//! The budget of decoded values.
//!
//! The size of a text does not limit its values: an alias of five bytes copies the anchored value, and an
//! empty list of three bytes takes forty. So values are charged before they are created, in approximate
//! bytes of memory.

use std::cell::Cell;

use super::error::{MAX_MADE, YamlProblem};
use crate::limits::{Interrupt, Interrupted};

/// A value itself, with its part of the list that contains it.
pub(super) const VALUE: usize = 40;

/// A non-empty list.
pub(super) const LIST: usize = 96;

/// A non-empty map: its first node has capacity for eleven entries.
pub(super) const MAP: usize = 320;

/// A key with its part of the map's nodes.
pub(super) const ENTRY: usize = 40;

/// Events between two calls of the interrupt.
const INTERRUPT_EVERY: u32 = 256;

/// Counts the created values.
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

    /// Bytes created so far.
    pub(super) fn spent(&self) -> usize {
        self.spent.get()
    }

    /// Charges for `bytes` bytes, before they are created.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), YamlProblem> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MAX_MADE { Err(YamlProblem::TooLarge) } else { Ok(()) }
    }

    /// Charges for an event, before it is read.
    pub(super) fn event(&self) -> Result<(), Interrupted> {
        let events = self.events.get();
        self.events.set(events.wrapping_add(1));
        let ask = events.is_multiple_of(INTERRUPT_EVERY);
        ask.then(|| self.interrupt.interrupted()).flatten().map_or(Ok(()), Err)
    }
}
