//! `Namespace`: where it terminates, plans end; its labels select the rules.

use serde_json::Value;

use super::made::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use crate::topology::declare::{Concerns, Events, Fact, Family, Kind, Reach, Read, Update, When};
use crate::topology::mark;

pub(super) static NAMESPACE: Kind = Kind {
    name: super::NAMESPACE,
    about: "its labels say which rules hold in it; where it terminates, runs end",
    facts: &[TERMINATING],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        // One that is seen late may be terminating already.
        create: Concerns::Roots(&[INSTANCES, MAKER]),
        update: Update::When(&[When { differs: &[TERMINATING, LABELS], concerns: &[INSTANCES] }, TO_MAKER]),
        // What was in it went before it.
        delete: Concerns::Roots(&[INSTANCES, MAKER]),
    },
};

const LABELS: Fact = Fact { name: "labels", read: Read::Mark(labels) };
const INSTANCES: Reach = Reach::Down(Family::Needs, super::INSTANCE);

fn labels(object: &Value) -> u64 {
    mark::of(object.pointer("/metadata/labels"))
}
