//! `Ingress`: an entry point of traffic.

use interlock_core::kinds::owned_child::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};

use crate::names::SERVICE;

pub(crate) static INGRESS: DeclaredKind = DeclaredKind {
    name: crate::names::INGRESS,
    about: "routes of an ingress controller",
    facts: &[HEALTHY],
    links: &[
        Link {
            name: "backend",
            family: Family::Carries,
            other: Side::Child,
            kind: Some(SERVICE),
            follows: false,
            read: backends,
        },
        MADE_BY,
    ],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
        update: EventScope::When(&[When { differs: &[SPEC], concerns: &[LinkPath::Itself] }, TO_MAKER]),
        delete: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
    },
};

const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

fn backends(holder: &Holder<'_>) -> Vec<Ref> {
    let spec = &holder.object["spec"];
    let rules = spec["rules"].as_array().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let all = paths.map(|path| &path["backend"]).chain([&spec["defaultBackend"]]);
    let names = all.filter_map(|backend| backend["service"]["name"].as_str());
    names.map(|name| Ref::to(holder.namespace, name)).collect()
}
