//! The order of the Instances.

use std::cmp::Reverse;

use interlock_core::kinds::fact;
use interlock_core::topology::{NodeId, ObjectRow};
use interlock_kudo::instance::trouble as troubles;
use interlock_kudo::instance::trouble::TroubleState;
use jiff::Timestamp;

use crate::runtime::index::row::is;

/// An Instance, and its place in the order of the page.
pub(super) struct Ranked {
    pub(super) trouble: Option<(TroubleState, Reverse<u64>)>,
    pub(super) locked: bool,
    pub(super) at_rest: bool,
    pub(super) id: NodeId,
}

impl Ranked {
    pub(super) fn of(row: &ObjectRow<'_>, now: Timestamp) -> Self {
        let since = row.number(fact::TROUBLED).unwrap_or_default();
        Self {
            trouble: troubles::at_a_glance(row, now).map(|state| troubles::order(state, since)),
            locked: row.word(fact::LOCKED).is_some_and(|plan| !plan.is_empty()),
            at_rest: is(row, fact::AT_REST),
            id: row.id(),
        }
    }

    /// Troubles first, then what runs, then what is not at rest.
    pub(super) fn order(&self) -> impl Ord + '_ {
        (self.trouble.is_none(), self.trouble, !self.locked, self.at_rest, &self.id)
    }
}
