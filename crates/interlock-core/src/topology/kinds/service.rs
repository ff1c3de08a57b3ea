//! `Service`: the backend of traffic.

use super::made::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use super::{GATEWAY, INGRESS};
use crate::topology::declare::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, LinkPath, ReadDepth, When,
};
use crate::topology::mark;

pub(super) static SERVICE: DeclaredKind = DeclaredKind {
    name: super::SERVICE,
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
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(mark::spec) };
