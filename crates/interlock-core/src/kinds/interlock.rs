//! `Interlock`: the settings.

use super::owned_child::{MADE_BY, MAKER, TO_MAKER};
use crate::topology::schema::{DeclaredKind, EventRow, EventScope, EventTriggers};

pub(super) static INTERLOCK: DeclaredKind = DeclaredKind {
    name: super::INTERLOCK,
    about: "the settings; their controller reads them whole, and asks itself whom they are about",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[MAKER]),
        update: EventScope::When(&[TO_MAKER]),
        delete: EventTriggers::Roots(&[MAKER]),
    },
};
