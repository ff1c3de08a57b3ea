//! `Service`: the backend of traffic.

use interlock_core::kinds::owned_child::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, LinkPath, ReadDepth, When,
};

use crate::names::GATEWAY;
use crate::names::INGRESS;

pub(crate) static SERVICE: DeclaredKind = DeclaredKind {
    name: crate::names::SERVICE,
    about: "where routes lead to",
    facts: &[HEALTHY],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[MAKER, GATEWAYS, INGRESSES]),
        update: EventScope::When(&[TO_MAKER, When { differs: &[SPEC], concerns: &[GATEWAYS, INGRESSES] }]),
        delete: EventTriggers::Roots(&[MAKER, GATEWAYS, INGRESSES]),
    },
};

const GATEWAYS: LinkPath = LinkPath::Up(Family::Carries, GATEWAY);
const INGRESSES: LinkPath = LinkPath::Up(Family::Carries, INGRESS);
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };
