//! `Service`: the end of the way of traffic.

use super::made::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use super::{GATEWAY, INGRESS};
use crate::topology::declare::{Concerns, Events, Fact, Family, Kind, Reach, Read, Update, When};
use crate::topology::mark;

pub(super) static SERVICE: Kind = Kind {
    name: super::SERVICE,
    about: "where routes lead to",
    facts: &[HEALTHY],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        create: Concerns::Roots(&[MAKER, GATEWAYS, INGRESSES]),
        update: Update::When(&[TO_MAKER, When { differs: &[SPEC], concerns: &[GATEWAYS, INGRESSES] }]),
        delete: Concerns::Roots(&[MAKER, GATEWAYS, INGRESSES]),
    },
};

const GATEWAYS: Reach = Reach::Up(Family::Carries, GATEWAY);
const INGRESSES: Reach = Reach::Up(Family::Carries, INGRESS);
const SPEC: Fact = Fact { name: "spec", read: Read::Mark(mark::spec) };
