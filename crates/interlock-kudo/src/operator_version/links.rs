//! `OperatorVersion`, an installed package, and `Operator`, its name.

use interlock_core::kinds::age::CREATED;
use interlock_core::kinds::owned_child::{MADE_BY, MAKER, TO_MAKER};
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};

pub(crate) static OPERATOR_VERSION: DeclaredKind = DeclaredKind {
    name: crate::names::OPERATOR_VERSION,
    about: "a package; its Instances cannot run without it",
    facts: &[CREATED],
    links: &[
        Link {
            name: "operator",
            family: Family::Needs,
            other: Side::Parent,
            kind: Some(crate::names::OPERATOR),
            follows: false,
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

pub(crate) static OPERATOR: DeclaredKind = DeclaredKind {
    name: crate::names::OPERATOR,
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

const USERS: LinkPath = LinkPath::Down(Family::Needs, interlock_core::kinds::INSTANCE);
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

fn operator(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["operator"]["name"].as_str().filter(|name| !name.is_empty());
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}
