//! `Interlock`: the settings.

use super::capabilities::SETTINGS;
use super::descriptor::{Kind, READ, Right, Role, Watch};
use super::owned_child::{MADE_BY, MAKER, TO_MAKER};
use crate::api::meta::INTERLOCK_GROUP;
use crate::api::resource::Resource;
use crate::topology::schema::{DeclaredKind, EventRow, EventScope, EventTriggers};

/// Everything that is known of Interlocks.
pub static KIND: Kind = Kind {
    watch: Some(Watch::required(&SETTINGS)),
    schema: Some(&SCHEMA),
    rights: &[
        Right::new(Role::Controller, INTERLOCK_GROUP, "interlocks/status", &["patch"]),
        // The leader creates the honoured object where none exists.
        Right::new(Role::Controller, INTERLOCK_GROUP, "interlocks", &["create"]),
        // An editor of it decides what is guarded, which takes a separate right.
        Right::new(Role::Viewer, INTERLOCK_GROUP, "interlocks", READ),
    ],
    ..Kind::new(Resource::custom(INTERLOCK_GROUP, &["v1alpha1"], "Interlock", "interlocks").cluster_scoped())
};

static SCHEMA: DeclaredKind = DeclaredKind {
    name: super::INTERLOCK,
    about: "the settings; their controller reads them whole, and asks itself whom they are about",
    facts: &[],
    links: &[MADE_BY],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[MAKER]),
        update: EventScope::When(&[TO_MAKER]),
        delete: EventTriggers::Roots(&[MAKER]),
    },
};
