//! What a package made: any kind, also one that nobody declared, watched while something needs it.

use std::borrow::Cow;

use serde_json::Value;

use super::INSTANCE;
use super::fact::{self, YES};
use super::link;
use crate::api::object::meta_str;
use crate::plan::health::{self, Health};
use crate::plan::told;
use crate::topology::declare::{
    Concerns, Events, Fact, Family, Holder, Kind, Link, Reach, Read, Ref, Side, Update, When,
};
use crate::topology::id::KindName;
use crate::topology::mark;

/// The Instance that made an object, directly or by what it made.
pub(super) const MAKER: Reach = Reach::Up(Family::Owns, INSTANCE);

/// What of an object concerns the Instance that made it: its status only as far as it tells
/// whether the object is as it should be, its metadata not at all.
pub(super) const TO_MAKER: When = When { differs: &[HEALTH, CONTENT, TERMINATING], concerns: &[MAKER] };

/// Owner references; the label for cluster-scoped objects, which can have no owner.
pub const MADE_BY: Link =
    Link { name: link::MADE_BY, family: Family::Owns, other: Side::Parent, kind: None, read: makers };

/// How an object is that no declaration knows.
pub static MADE: Kind = Kind {
    name: KindName::new("*", "*"),
    about: "an object that a package made, of any kind that nobody declared",
    facts: &[HEALTHY],
    links: &[MADE_BY],
    sections: None,
    events: Events {
        create: Concerns::Roots(&[MAKER]),
        update: Update::When(&[TO_MAKER]),
        delete: Concerns::Roots(&[MAKER]),
    },
};

pub(super) const HEALTH: Fact = Fact { name: "health", read: Read::Mark(how_it_is) };
pub(super) const HEALTHY: Fact = Fact { name: fact::HEALTHY, read: Read::Word(healthy) };
pub(super) const CONTENT: Fact = Fact { name: "content", read: Read::Mark(mark::content) };
pub(super) const TERMINATING: Fact = Fact { name: fact::TERMINATING, read: Read::Word(terminating) };

fn makers(holder: &Holder<'_>) -> Vec<Ref> {
    told::makers(holder.object).map(|uid| Ref::Uid(uid.to_owned())).collect()
}

fn how_it_is(object: &Value) -> u64 {
    mark::of(match health::of(object) {
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
