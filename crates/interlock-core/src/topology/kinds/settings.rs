//! `Interlock`: the settings.

use super::made::{MADE_BY, MAKER, TO_MAKER};
use crate::topology::declare::{Concerns, Events, Kind, Update};

pub(super) static INTERLOCK: Kind = Kind {
    name: super::INTERLOCK,
    about: "the settings; their controller reads them whole, and asks itself whom they are about",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        create: Concerns::Roots(&[MAKER]),
        update: Update::When(&[TO_MAKER]),
        delete: Concerns::Roots(&[MAKER]),
    },
};
