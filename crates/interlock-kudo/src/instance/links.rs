//! `Instance`: the object that plans run on; may itself be an owned child.

use std::borrow::Cow;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_core::api::stamp::Envelope;
use interlock_core::kinds::age::CREATED;
use interlock_core::kinds::fact;
use interlock_core::kinds::fact::YES;
use interlock_core::kinds::owned_child::{HEALTH, MADE_BY, MAKER, TERMINATING};
use interlock_core::kinds::{NAMESPACE, link};
use interlock_core::topology::fingerprint;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use serde::Deserialize;
use serde_json::Value;

use super::change::{lock, settled};
use super::{summary, trouble};
use crate::api::Instance;
use crate::names::OPERATOR_VERSION;

pub(crate) static INSTANCE: DeclaredKind = DeclaredKind {
    name: interlock_core::kinds::INSTANCE,
    about: "runs the plans of its OperatorVersion",
    facts: &FACTS,
    links: &[
        Link {
            name: link::OPERATOR_VERSION,
            family: Family::Needs,
            other: Side::Parent,
            kind: Some(OPERATOR_VERSION),
            follows: false,
            read: operator_version,
        },
        Link {
            name: link::NAMESPACE,
            family: Family::Needs,
            other: Side::Parent,
            kind: Some(NAMESPACE),
            follows: false,
            read: namespace,
        },
        MADE_BY,
    ],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
        update: EventScope::When(&[
            When { differs: &[DECISIVE], concerns: &[LinkPath::Itself] },
            When { differs: &[HEALTH, TERMINATING], concerns: &[MAKER] },
        ]),
        delete: EventTriggers::Roots(&[LinkPath::Itself, MAKER]),
    },
};

const FACTS: [Fact; 9] = {
    let [state, drifted, waits, started] = summary::FACTS;
    [LOCKED, AT_REST, TERMINATING, state, drifted, waits, started, trouble::SINCE, CREATED]
};
const LOCKED: Fact = Fact { name: fact::LOCKED, read: ReadDepth::Word(locked) };
const AT_REST: Fact = Fact { name: fact::AT_REST, read: ReadDepth::Word(at_rest) };
const DECISIVE: Fact = Fact { name: "decisive", read: ReadDepth::Mark(decisive) };

/// That of the spec, and that of the last-applied spec: while the first is not there, the second is carried out.
fn operator_version(holder: &Holder<'_>) -> Vec<Ref> {
    let reference = &holder.object["spec"]["operatorVersion"];
    let word = |field: &str| reference[field].as_str().filter(|word| !word.is_empty());
    let wanted = word("name").map(|name| Ref::to(word("namespace").unwrap_or(holder.namespace), name));
    let stamp = annotation(holder.object, meta::LAST_APPLIED_SPEC).and_then(Envelope::parse);
    let carried_out = stamp.as_ref().and_then(|stamp| stamp.kept.inline()).map(|spec| &spec.operator_version);
    let carried_out = carried_out.map(|version| Ref::to(version.namespace.as_ref(), version.name.as_ref()));
    let carried_out = carried_out.filter(|carried_out| wanted.as_ref() != Some(carried_out));
    wanted.into_iter().chain(carried_out).collect()
}

fn namespace(holder: &Holder<'_>) -> Vec<Ref> {
    vec![Ref::to("", holder.namespace)]
}

fn locked(object: &Value) -> Cow<'_, str> {
    let Ok(instance) = Instance::deserialize(object) else { return "".into() };
    lock::of(&instance).map_or_else(|| "".into(), |lock| lock.plan.to_owned().into())
}

/// Fingerprint of the fields that decide about an Instance: all but labels, foreign annotations, and
/// the counters of the API server.
fn decisive(object: &Value) -> u64 {
    let metadata = &object["metadata"];
    let ours = |key: &str| key.contains("interlock.dev/") || key.contains("kudo.dev/");
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations: Vec<_> = annotations.filter(|(key, _)| ours(key)).collect();
    fingerprint::of((
        &object["spec"],
        &object["status"],
        annotations,
        &metadata["finalizers"],
        &metadata["deletionTimestamp"],
    ))
}

fn at_rest(object: &Value) -> Cow<'_, str> {
    if settled::is_settled(object) { YES.into() } else { "".into() }
}
