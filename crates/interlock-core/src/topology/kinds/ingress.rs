//! `Ingress`: an entry of traffic of its own.

use super::SERVICE;
use super::made::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use crate::topology::declare::{
    Concerns, Events, Fact, Family, Holder, Kind, Link, Reach, Read, Ref, Side, Update, When,
};
use crate::topology::mark;

pub(super) static INGRESS: Kind = Kind {
    name: super::INGRESS,
    about: "routes of an ingress controller",
    facts: &[HEALTHY],
    links: &[
        Link {
            name: "backend",
            family: Family::Carries,
            other: Side::Child,
            kind: Some(SERVICE),
            read: backends,
        },
        MADE_BY,
    ],
    sections: None,
    events: Events {
        create: Concerns::Roots(&[Reach::Itself, MAKER]),
        update: Update::When(&[When { differs: &[SPEC], concerns: &[Reach::Itself] }, TO_MAKER]),
        delete: Concerns::Roots(&[Reach::Itself, MAKER]),
    },
};

const SPEC: Fact = Fact { name: "spec", read: Read::Mark(mark::spec) };

fn backends(holder: &Holder<'_>) -> Vec<Ref> {
    let spec = &holder.object["spec"];
    let rules = spec["rules"].as_array().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let all = paths.map(|path| &path["backend"]).chain([&spec["defaultBackend"]]);
    let names = all.filter_map(|backend| backend["service"]["name"].as_str());
    names.map(|name| Ref::to(holder.namespace, name)).collect()
}
