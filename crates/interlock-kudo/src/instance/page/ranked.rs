//! The order of the Instances.

use std::cmp::Reverse;

use interlock_core::kinds::fact;
use interlock_core::kinds::page::TroubleState;
use interlock_core::kinds::row::is;
use interlock_core::topology::{NodeId, ObjectRow};
use jiff::Timestamp;

use crate::instance::trouble;

/// An Instance, and its place in the order of the page.
pub(super) struct Ranked<'g> {
    pub(super) trouble: Option<(TroubleState, Reverse<u64>)>,
    pub(super) locked: bool,
    pub(super) at_rest: bool,
    pub(super) id: NodeId,
    pub(super) row: ObjectRow<'g>,
}

impl<'g> Ranked<'g> {
    pub(super) fn of(row: ObjectRow<'g>, now: Timestamp) -> Self {
        let since = row.number(fact::TROUBLED).unwrap_or_default();
        Self {
            trouble: trouble::at_a_glance(&row, now).map(|state| trouble::order(state, since)),
            locked: row.word(fact::LOCKED).is_some_and(|plan| !plan.is_empty()),
            at_rest: is(&row, fact::AT_REST),
            id: row.id(),
            row,
        }
    }

    /// Troubles first, then what runs, then what is not at rest.
    pub(super) fn order(&self) -> impl Ord + '_ {
        (self.trouble.is_none(), self.trouble, !self.locked, self.at_rest, &self.id)
    }
}
