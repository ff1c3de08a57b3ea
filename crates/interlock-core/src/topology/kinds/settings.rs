//! `Interlock`: the settings.

use super::made::{MADE_BY, MAKER, TO_MAKER};
use crate::topology::declare::{Concerns, DeclaredKind, EventRow, EventScope};

pub(super) static INTERLOCK: DeclaredKind = DeclaredKind {
    name: super::INTERLOCK,
    about: "the settings; their controller reads them whole, and asks itself whom they are about",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: Concerns::Roots(&[MAKER]),
        update: EventScope::When(&[TO_MAKER]),
        delete: Concerns::Roots(&[MAKER]),
    },
};
