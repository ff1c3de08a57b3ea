//! `GatewayClass` and `Gateway` with its listeners (Gateway API v1).

use serde_json::Value;

use super::GATEWAY_CLASS as CLASS;
use super::made::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use crate::topology::declare::{
    Concerns, Events, Fact, Family, Holder, Kind, Link, Reach, Read, Ref, Sections, Side, Update, When,
};
use crate::topology::mark;

pub(super) static GATEWAY_CLASS: Kind = Kind {
    name: super::GATEWAY_CLASS,
    about: "who serves the Gateways of this class",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        create: Concerns::Roots(&[GATEWAYS, MAKER]),
        update: Update::When(&[When { differs: &[SPEC], concerns: &[GATEWAYS] }, TO_MAKER]),
        delete: Concerns::Roots(&[GATEWAYS, MAKER]),
    },
};

pub(super) static GATEWAY: Kind = Kind {
    name: super::GATEWAY,
    about: "an entry of traffic; whatever hangs below it is its configuration",
    facts: &[],
    links: &[
        Link { name: "class", family: Family::Carries, other: Side::Parent, kind: Some(CLASS), read: class },
        MADE_BY,
    ],
    sections: Some(Sections { noun: "listener", family: Family::Carries, read: listeners, links: &[] }),
    events: Events {
        create: Concerns::Roots(&[Reach::Itself, MAKER]),
        update: Update::When(&[When { differs: &[SPEC, TERMINATING], concerns: &[Reach::Itself] }, TO_MAKER]),
        delete: Concerns::Roots(&[Reach::Itself, MAKER]),
    },
};

const GATEWAYS: Reach = Reach::Down(Family::Carries, super::GATEWAY);
const SPEC: Fact = Fact { name: "spec", read: Read::Mark(mark::spec) };

fn class(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["gatewayClassName"].as_str();
    name.map(|name| Ref::to("", name)).into_iter().collect()
}

/// Names of listeners differ (a map-list in the schema).
fn listeners(object: &Value) -> Vec<(String, &Value)> {
    let all = object["spec"]["listeners"].as_array().into_iter().flatten();
    all.filter_map(|listener| Some((listener["name"].as_str()?.to_owned(), listener))).collect()
}
