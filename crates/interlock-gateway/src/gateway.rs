//! `GatewayClass` and `Gateway` with its listeners (Gateway API v1).

use interlock_core::kinds::age::CREATED;
use interlock_core::kinds::fact;
use interlock_core::kinds::owned_child::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Sections, Side, When,
};
use serde_json::Value;

use crate::names::GATEWAY_CLASS as CLASS;

pub(crate) static GATEWAY_CLASS: DeclaredKind = DeclaredKind {
    name: crate::names::GATEWAY_CLASS,
    about: "who serves the Gateways of this class",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[GATEWAYS, MAKER]),
        update: EventScope::When(&[When { differs: &[SPEC], concerns: &[GATEWAYS] }, TO_MAKER]),
        delete: EventTriggers::Roots(&[GATEWAYS, MAKER]),
    },
};

pub(crate) static GATEWAY: DeclaredKind = DeclaredKind {
    name: crate::names::GATEWAY,
    about: "an entry of traffic; whatever hangs below it is its configuration",
    facts: &[CREATED, PROGRAMMED],
    links: &[
        Link {
            name: "class",
            family: Family::Carries,
            other: Side::Parent,
            kind: Some(CLASS),
            follows: false,
            read: class,
        },
        MADE_BY,
    ],
    sections: Some(Sections { noun: "listener", family: Family::Carries, read: listeners, links: &[] }),
    events: EventRow {
        create: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
        update: EventScope::When(&[
            When { differs: &[SPEC, TERMINATING], concerns: &[LinkPath::Itself] },
            TO_MAKER,
        ]),
        delete: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
    },
};

const GATEWAYS: LinkPath = LinkPath::Down(Family::Carries, crate::names::GATEWAY);
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

const PROGRAMMED: Fact = Fact { name: fact::PROGRAMMED, read: ReadDepth::Mark(programmed) };

/// The condition `Programmed`, as the field [`fact::PROGRAMMED`].
fn programmed(object: &Value) -> u64 {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == "Programmed");
    match found.and_then(|condition| condition["status"].as_str()) {
        Some("True") => 1,
        Some("False") => 2,
        _ => 0,
    }
}

fn class(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["gatewayClassName"].as_str();
    name.map(|name| Ref::to("", name)).into_iter().collect()
}

/// Names of listeners are unique (a map-list in the schema).
fn listeners(object: &Value) -> Vec<(String, &Value)> {
    let all = object["spec"]["listeners"].as_array().into_iter().flatten();
    all.filter_map(|listener| Some((listener["name"].as_str()?.to_owned(), listener))).collect()
}
