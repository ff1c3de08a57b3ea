//! `OperatorVersion`, an installed package, and `Operator`, its name.

use super::made::{MADE_BY, MAKER, TO_MAKER};
use crate::topology::declare::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use crate::topology::mark;

pub(super) static OPERATOR_VERSION: DeclaredKind = DeclaredKind {
    name: super::OPERATOR_VERSION,
    about: "a package; its Instances cannot run without it",
    facts: &[],
    links: &[
        Link {
            name: "operator",
            family: Family::Needs,
            other: Side::Parent,
            kind: Some(super::OPERATOR),
            read: operator,
        },
        MADE_BY,
    ],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[USERS, MAKER]),
        update: EventScope::When(&[When { differs: &[SPEC], concerns: &[USERS] }, TO_MAKER]),
        delete: EventTriggers::Roots(&[USERS, MAKER]),
    },
};

pub(super) static OPERATOR: DeclaredKind = DeclaredKind {
    name: super::OPERATOR,
    about: "the name of a family of packages",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: EventTriggers::Nobody("nothing of it is carried out: OperatorVersions name it for people"),
        update: EventScope::Nobody("as above"),
        delete: EventTriggers::Nobody("as above"),
    },
};

const USERS: LinkPath = LinkPath::Down(Family::Needs, super::INSTANCE);
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(mark::spec) };

fn operator(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["operator"]["name"].as_str().filter(|name| !name.is_empty());
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}
