//! Owned children: objects of any kind that a package created, watched while something needs them.

use std::borrow::Cow;

use serde_json::Value;

use super::INSTANCE;
use super::fact;
use super::fact::YES;
use super::link;
use crate::api::object::meta_str;
use crate::api::ownership::owner_uids;
use crate::health;
use crate::health::Health;
use crate::topology::KindName;
use crate::topology::fingerprint;
use crate::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};

/// The Instance that owns an object, directly or through other owned children.
pub const MAKER: LinkPath = LinkPath::Up(Family::Owns, INSTANCE);

/// The changes of an owned child that affect its Instance: of its status only the health, of its
/// metadata only the deletion.
pub const TO_MAKER: When = When { differs: &[HEALTH, CONTENT, TERMINATING], concerns: &[MAKER] };

/// Owner references; the label for cluster-scoped objects, which cannot have a namespaced owner.
pub const MADE_BY: Link = Link {
    name: link::MADE_BY,
    family: Family::Owns,
    other: Side::Parent,
    kind: None,
    follows: false,
    read: makers,
};

/// Schema of the undeclared kinds.
pub static MADE: DeclaredKind =
    made(KindName::new("*", "*"), "an object that a package made, of any kind that nobody declared");

/// The schema of a kind without links but to what made its objects.
pub const fn made(name: KindName, about: &'static str) -> DeclaredKind {
    DeclaredKind {
        name,
        about,
        facts: &[HEALTHY],
        links: &[MADE_BY],
        sections: None,
        events: EventRow {
            create: EventTriggers::Roots(&[MAKER]),
            update: EventScope::When(&[TO_MAKER]),
            delete: EventTriggers::Roots(&[MAKER]),
        },
    }
}

/// How healthy it is, and why.
pub const HEALTH: Fact = Fact { name: "health", read: ReadDepth::Mark(how_it_is) };
/// Whether it is healthy.
pub const HEALTHY: Fact = Fact { name: fact::HEALTHY, read: ReadDepth::Word(healthy) };
/// Its content without status and metadata.
pub const CONTENT: Fact = Fact { name: "content", read: ReadDepth::Mark(fingerprint::content) };
/// Whether it is being deleted.
pub const TERMINATING: Fact = Fact { name: fact::TERMINATING, read: ReadDepth::Word(terminating) };

fn makers(holder: &Holder<'_>) -> Vec<Ref> {
    owner_uids(holder.object).map(|uid| Ref::Uid(uid.to_owned())).collect()
}

fn how_it_is(object: &Value) -> u64 {
    fingerprint::of(match health::of(object) {
        Health::Healthy => ("", String::new()),
        Health::Waiting(why) => ("waiting", why),
        Health::Failed(why) => ("failed", why),
    })
}

fn healthy(object: &Value) -> Cow<'_, str> {
    if health::of(object) == Health::Healthy { YES.into() } else { "".into() }
}

fn terminating(object: &Value) -> Cow<'_, str> {
    if meta_str(object, "deletionTimestamp").is_some() { YES.into() } else { "".into() }
}
