//! Gateways that run Kong, their configuration producers, and the sources of their router flavor.
//!
//! The graph has only labelled Deployments, Services and ConfigMaps, under kind names of their own; the
//! others are unknown.

use std::borrow::Cow;

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::kinds::link;
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use serde_json::Value;

use super::flavor::gateway::{Gateway, sources_of};
use super::flavor::group::{admin_service, controlled};
use super::flavor::running::rolled_out::is_rolled_out;
use super::flavor::sources::{Nothing, SourceKind};
use super::rollout::report::totals;
use crate::api;
use crate::api::stamp::StatusSelectors;
use crate::data_plane::names::CONTROL_PLANE;
use crate::data_plane::names::DATA_PLANE;
use crate::data_plane::names::FLAVOR_SOURCE;
use crate::data_plane::names::GUARDED_DEPLOYMENT;
use crate::data_plane::names::GUARDED_SERVICE;
use crate::data_plane::names::SECRET;

pub(crate) static DATA_PLANE_KIND: DeclaredKind = DeclaredKind {
    name: DATA_PLANE,
    about: "a gateway of Kong's operator",
    facts: &[FLAVOR, totals::PHASE, totals::PHASE_SINCE, totals::NEXT_STEP],
    links: &[CONFIG_MAPS, SECRETS, PRODUCER],
    sections: None,
    events: EventRow {
        update: EventScope::When(&[When {
            differs: &[SPEC, MARKS, STATUS, REQUESTS],
            concerns: &[LinkPath::Itself],
        }]),
        ..OF_A_GATEWAY
    },
};

pub(crate) static GUARDED_DEPLOYMENT_KIND: DeclaredKind = DeclaredKind {
    name: GUARDED_DEPLOYMENT,
    about: "a Deployment with the label interlock.dev/guard: a gateway, or its ingress controller",
    facts: &[FLAVOR],
    links: &[CONFIG_MAPS, SECRETS, PRODUCER, ADMIN_SERVICE],
    sections: None,
    events: EventRow {
        update: EventScope::When(&[When {
            differs: &[SPEC, MARKS, STATUS, ROLLED_OUT],
            concerns: &[LinkPath::Itself],
        }]),
        ..OF_A_GATEWAY
    },
};

pub(crate) static CONTROL_PLANE_KIND: DeclaredKind = DeclaredKind {
    name: CONTROL_PLANE,
    about: "configures a DataPlane",
    facts: &[],
    links: &[Link {
        name: "dataplane",
        family: Family::Needs,
        other: Side::Child,
        kind: Some(DATA_PLANE),
        follows: false,
        read: data_plane,
    }],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[DATA_PLANES]),
        update: EventScope::When(&[When { differs: &[SPEC], concerns: &[DATA_PLANES] }]),
        delete: EventTriggers::Roots(&[DATA_PLANES]),
    },
};

pub(crate) static SERVICE_KIND: DeclaredKind = DeclaredKind {
    name: GUARDED_SERVICE,
    about: "a Service with the label interlock.dev/guard: the way of an ingress controller to its gateway",
    facts: &[],
    links: &[],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[DEPLOYMENTS]),
        update: EventScope::When(&[When { differs: &[SPEC], concerns: &[DEPLOYMENTS] }]),
        delete: EventTriggers::Roots(&[DEPLOYMENTS]),
    },
};

pub(crate) static SOURCE_KIND: DeclaredKind = DeclaredKind {
    name: FLAVOR_SOURCE,
    about: "a ConfigMap with the label interlock.dev/flavor-source",
    facts: &[],
    links: &[],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[DATA_PLANES, DEPLOYMENTS]),
        update: EventScope::When(&[When { differs: &[CONTENT], concerns: &[DATA_PLANES, DEPLOYMENTS] }]),
        delete: EventTriggers::Roots(&[DATA_PLANES, DEPLOYMENTS]),
    },
};

const OF_A_GATEWAY: EventRow = EventRow {
    create: EventTriggers::Roots(&[LinkPath::Itself]),
    update: EventScope::When(&[When { differs: &[SPEC, MARKS, STATUS], concerns: &[LinkPath::Itself] }]),
    delete: EventTriggers::Roots(&[LinkPath::Itself]),
};

const DATA_PLANES: LinkPath = LinkPath::Down(Family::Needs, DATA_PLANE);
const DEPLOYMENTS: LinkPath = LinkPath::Down(Family::Needs, GUARDED_DEPLOYMENT);

const FLAVOR: Fact = Fact { name: "flavor", read: ReadDepth::Word(flavor) };
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };
const CONTENT: Fact = Fact { name: "content", read: ReadDepth::Mark(fingerprint::content) };
const MARKS: Fact = Fact { name: "marks", read: ReadDepth::Mark(marks) };
const STATUS: Fact = Fact { name: "status", read: ReadDepth::Mark(status) };
const REQUESTS: Fact = Fact { name: "requests", read: ReadDepth::Mark(requests) };
const ROLLED_OUT: Fact = Fact { name: "rolledOut", read: ReadDepth::Mark(rolled_out) };

const CONFIG_MAPS: Link = Link {
    name: link::FLAVOR_SOURCE,
    family: Family::Needs,
    other: Side::Parent,
    kind: Some(FLAVOR_SOURCE),
    follows: false,
    read: config_maps,
};
/// Secrets are not watched: these edges only record the references.
const SECRETS: Link = Link {
    name: "flavorSecret",
    family: Family::Needs,
    other: Side::Parent,
    kind: Some(SECRET),
    follows: false,
    read: secrets,
};
const PRODUCER: Link = Link {
    name: "producer",
    family: Family::Needs,
    other: Side::Parent,
    kind: Some(GUARDED_DEPLOYMENT),
    follows: false,
    read: producer,
};
const ADMIN_SERVICE: Link = Link {
    name: "adminService",
    family: Family::Needs,
    other: Side::Parent,
    kind: Some(GUARDED_SERVICE),
    follows: false,
    read: admin,
};

/// The flavor, if the template alone determines it.
fn flavor(object: &Value) -> Cow<'_, str> {
    let known = Gateway::read(object, "", &Nothing).ok().flatten();
    known
        .and_then(|gateway| gateway.spec.reading.effective.known())
        .map_or("", |flavor| flavor.as_str())
        .into()
}

/// Fingerprint of producer, last-applied spec and selectors, which each promotion changes.
fn marks(object: &Value) -> u64 {
    let StatusSelectors { live, preview } = StatusSelectors::of(&object["status"]);
    let (producer, stamp) = (meta::CONFIG_PRODUCER, meta::LAST_APPLIED_SPEC);
    fingerprint::of((annotation(object, producer), annotation(object, stamp), live, preview))
}

/// Fingerprint of the status that others write: it shows pods starting, stopping and turning ready.
/// Leaves out the condition that this process writes.
fn status(object: &Value) -> u64 {
    const CONDITIONS: &str = "conditions";
    let status = &object["status"];
    let members = status.as_object().into_iter().flatten().filter(|(name, _)| *name != CONDITIONS);
    let conditions = status[CONDITIONS].as_array().into_iter().flatten();
    let others =
        conditions.filter(|condition| condition["type"] != meta::condition::ROUTER_FLAVOR_CONSISTENT);
    fingerprint::of((members.collect::<Vec<_>>(), others.collect::<Vec<_>>()))
}

/// Annotations that a rollout reads beside Kong's.
const READ_BY_ROLLOUTS: [&str; 3] =
    [meta::PROMOTION_GRACE_PERIOD, meta::REVISION_HISTORY_LIMIT, meta::TAKE_OVER];

/// Fingerprint of what people and other operators ask of a rollout beside the spec: annotations, such as that of a
/// promotion, who owns the DataPlane, and its deletion.
fn requests(object: &Value) -> u64 {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let of_kong = |name: &str| name.strip_prefix(api::GROUP).is_some_and(|rest| rest.starts_with('/'));
    let is_read = |name: &str| of_kong(name) || READ_BY_ROLLOUTS.contains(&name);
    let annotations: Vec<_> = annotations.filter(|(name, _)| is_read(name)).collect();
    fingerprint::of((annotations, &metadata["ownerReferences"], meta_str(object, "deletionTimestamp")))
}

fn rolled_out(object: &Value) -> u64 {
    fingerprint::of(is_rolled_out(object))
}

fn sources(holder: &Holder<'_>, kind: SourceKind) -> Vec<Ref> {
    let all = sources_of(holder.object);
    let names = all.iter().filter(|source| source.kind == kind).map(|source| &source.name);
    names.map(|name| Ref::to(&name.namespace, &name.name)).collect()
}

fn config_maps(holder: &Holder<'_>) -> Vec<Ref> {
    sources(holder, SourceKind::ConfigMap)
}

fn secrets(holder: &Holder<'_>) -> Vec<Ref> {
    sources(holder, SourceKind::Secret)
}

fn producer(holder: &Holder<'_>) -> Vec<Ref> {
    let Some(named) = annotation(holder.object, meta::CONFIG_PRODUCER) else { return Vec::new() };
    let (namespace, name) = named.split_once('/').unwrap_or((holder.namespace, named));
    vec![Ref::to(namespace, name)]
}

fn admin(holder: &Holder<'_>) -> Vec<Ref> {
    let service = admin_service(holder.object, holder.namespace);
    service.map(|name| Ref::to(&name.namespace, &name.name)).into_iter().collect()
}

fn data_plane(holder: &Holder<'_>) -> Vec<Ref> {
    controlled(holder.object).map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}
