//! What is kept of an Override: everything that decides whether it admits a write.

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::Value;

use crate::api::override_object::Override;
use crate::kinds::fact;
use crate::topology::schema::{DeclaredKind, EventRow, EventScope, EventTriggers, Fact, LinkPath, ReadDepth};

pub(super) static SCHEMA: DeclaredKind = DeclaredKind {
    name: crate::kinds::OVERRIDE,
    about: "admits one user's writes of one Instance against one rule, until it expires",
    facts: &[OBJECT, RULE, USER, EXPIRES],
    links: &[],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[LinkPath::Itself]),
        update: EventScope::Nobody("its spec does not change"),
        delete: EventTriggers::Nobody("what was admitted stays admitted"),
    },
};

const OBJECT: Fact =
    Fact { name: fact::OVERRIDDEN_OBJECT, read: ReadDepth::Word(|object| spec(object, "objectUID")) };
const RULE: Fact = Fact { name: fact::OVERRIDDEN_RULE, read: ReadDepth::Word(|object| spec(object, "rule")) };
const USER: Fact = Fact { name: fact::OVERRIDING_USER, read: ReadDepth::Word(|object| spec(object, "user")) };
const EXPIRES: Fact = Fact { name: fact::EXPIRES, read: ReadDepth::Mark(expires) };

fn spec<'o>(object: &'o Value, field: &str) -> Cow<'o, str> {
    object["spec"][field].as_str().unwrap_or_default().into()
}

fn expires(object: &Value) -> u64 {
    let expires = Override::deserialize(object).ok().and_then(|object| object.expires());
    expires.and_then(|at| u64::try_from(at.as_second()).ok()).unwrap_or(0)
}
