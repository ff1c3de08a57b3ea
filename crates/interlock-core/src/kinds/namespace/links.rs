//! `Namespace`: its termination ends plans; its labels select the rules.

use serde_json::Value;

use crate::kinds::owned_child::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use crate::topology::fingerprint;
use crate::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, LinkPath, ReadDepth, When,
};

pub(super) static NAMESPACE_SCHEMA: DeclaredKind = DeclaredKind {
    name: crate::kinds::NAMESPACE,
    about: "its labels say which rules hold in it; where it terminates, runs end",
    facts: &[TERMINATING],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        // A Namespace that is listed late may be terminating already.
        create: EventTriggers::Roots(&[INSTANCES, MAKER]),
        update: EventScope::When(&[
            When { differs: &[TERMINATING, LABELS], concerns: &[INSTANCES] },
            TO_MAKER,
        ]),
        // Its contents were deleted before it.
        delete: EventTriggers::Roots(&[INSTANCES, MAKER]),
    },
};

const LABELS: Fact = Fact { name: "labels", read: ReadDepth::Mark(labels) };
const INSTANCES: LinkPath = LinkPath::Down(Family::Needs, crate::kinds::INSTANCE);

fn labels(object: &Value) -> u64 {
    fingerprint::of(object.pointer("/metadata/labels"))
}
