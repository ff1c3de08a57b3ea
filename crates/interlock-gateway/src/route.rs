//! `HTTPRoute`, `GRPCRoute` and `TLSRoute` with their rules (Gateway API v1).
//!
//! Edges are a superset: a listener's `allowedRoutes`, hostnames, protocol and `parentRef.port` are not
//! checked here. A route that names no listener is a child of the Gateway itself, for all its
//! listeners, so that the number of edges does not grow with listeners times routes.

use std::collections::BTreeSet;

use interlock_core::kinds::owned_child::{MADE_BY, MAKER, TERMINATING, TO_MAKER};
use interlock_core::topology::KindName;
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Sections, Side, When,
};
use serde_json::Value;

use crate::names::GATEWAY;
use crate::names::GATEWAY_API;
use crate::names::SERVICE;

pub(crate) static HTTP_ROUTE: DeclaredKind = route(crate::names::HTTP_ROUTE, "HTTP routes of Gateways");
pub(crate) static GRPC_ROUTE: DeclaredKind = route(crate::names::GRPC_ROUTE, "gRPC routes of Gateways");

pub(crate) static TLS_ROUTE: DeclaredKind = route(crate::names::TLS_ROUTE, "TLS routes of Gateways");

const fn route(name: KindName, about: &'static str) -> DeclaredKind {
    DeclaredKind {
        name,
        about,
        facts: &[],
        links: &[
            Link {
                name: "parent",
                family: Family::Carries,
                other: Side::Parent,
                kind: Some(GATEWAY),
                follows: false,
                read: parents,
            },
            MADE_BY,
        ],
        sections: Some(Sections {
            noun: "rule",
            family: Family::Carries,
            read: rules,
            links: &[Link {
                name: "backend",
                family: Family::Carries,
                other: Side::Child,
                kind: Some(SERVICE),
                follows: false,
                read: backends,
            }],
        }),
        events: EventRow {
            create: EventTriggers::Roots(&[GATEWAYS, MAKER]),
            update: EventScope::When(&[
                When { differs: &[SPEC, TERMINATING], concerns: &[GATEWAYS] },
                TO_MAKER,
            ]),
            delete: EventTriggers::Roots(&[GATEWAYS, MAKER]),
        },
    }
}

const GATEWAYS: LinkPath = LinkPath::Up(Family::Carries, GATEWAY);
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

fn parents(holder: &Holder<'_>) -> Vec<Ref> {
    let all = holder.object["spec"]["parentRefs"].as_array().into_iter().flatten();
    let gateways = all.filter(|parent| is(parent, GATEWAY_API, GATEWAY.kind));
    let section = |parent: &Value| parent["sectionName"].as_str().unwrap_or_default().to_owned();
    gateways.filter_map(|parent| named(parent, holder.namespace, &section(parent))).collect()
}

fn backends(holder: &Holder<'_>) -> Vec<Ref> {
    let all = holder.part["backendRefs"].as_array().into_iter().flatten();
    let services = all.filter(|backend| is(backend, SERVICE.group, SERVICE.kind));
    services.filter_map(|backend| named(backend, holder.namespace, "")).collect()
}

/// Whether a reference is to that kind, the default of its fields.
fn is(reference: &Value, group: &str, kind: &str) -> bool {
    reference["group"].as_str().unwrap_or(group) == group
        && reference["kind"].as_str().unwrap_or(kind) == kind
}

fn named(reference: &Value, namespace: &str, section: &str) -> Option<Ref> {
    let name = reference["name"].as_str()?;
    Some(Ref::part(reference["namespace"].as_str().unwrap_or(namespace), name, section))
}

/// The section of a rule is its name. A rule without a name, or with that of an earlier rule, gets its
/// index in brackets: no `sectionName` matches that, so no reference moves to another rule by mistake.
fn rules(object: &Value) -> Vec<(String, &Value)> {
    let mut taken = BTreeSet::new();
    let all = object["spec"]["rules"].as_array().into_iter().flatten().enumerate();
    all.map(|(place, rule)| {
        let name = rule["name"].as_str().filter(|name| !name.is_empty() && taken.insert(*name));
        (name.map_or_else(|| format!("[{place}]"), str::to_owned), rule)
    })
    .collect()
}
