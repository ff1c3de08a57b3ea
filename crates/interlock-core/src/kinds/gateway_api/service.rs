//! `Service`: the backend of traffic.

use crate::kinds::gateway_api::names::GATEWAY;
use crate::kinds::gateway_api::names::INGRESS;
use crate::kinds::owned_child::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use crate::topology::fingerprint;
use crate::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, LinkPath, ReadDepth, When,
};

pub(crate) static SERVICE: DeclaredKind = DeclaredKind {
    name: crate::kinds::gateway_api::names::SERVICE,
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
