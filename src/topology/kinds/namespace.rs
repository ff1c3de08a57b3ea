//! `Namespace`: where it terminates, plans end.

use super::made::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use crate::topology::declare::{Concerns, Events, Family, Kind, Reach, Update, When};

pub(super) static NAMESPACE: Kind = Kind {
    name: super::NAMESPACE,
    about: "where it terminates, cleanup is not run and a missing right ends a run",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        // One that is seen late may be terminating already.
        create: Concerns::Roots(&[INSTANCES, MAKER]),
        update: Update::When(&[When { differs: &[TERMINATING], concerns: &[INSTANCES] }, TO_MAKER]),
        // What was in it went before it.
        delete: Concerns::Roots(&[INSTANCES, MAKER]),
    },
};

const INSTANCES: Reach = Reach::Down(Family::Needs, super::INSTANCE);
