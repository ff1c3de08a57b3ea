//! `Override`: admits one user's writes of one Instance against one rule, for a while.

pub mod ids;
mod links;
mod policies;
mod reconcile;

pub use policies::OVERRIDES;

use super::capabilities::SETTINGS;
use super::descriptor::{Kind, READ, Right, Role, Watch};
use crate::api::meta::INTERLOCK_GROUP;
use crate::api::resource::Resource;

/// Everything that is known of Overrides.
pub static KIND: Kind = Kind {
    watch: Some(Watch::optional(&SETTINGS)),
    schema: Some(&links::SCHEMA),
    policies: &[policies::overrides],
    rights: &[
        // The leader removes those that have expired.
        Right::new(Role::Controller, INTERLOCK_GROUP, "overrides", &["delete"]),
        // Who may create them is for an administrator to say.
        Right::new(Role::Viewer, INTERLOCK_GROUP, "overrides", READ),
    ],
    rules: ids::RULES,
    reconciler: Some(&reconcile::RECONCILER),
    ..Kind::new(Resource::custom(INTERLOCK_GROUP, &["v1alpha1"], "Override", "overrides").cluster_scoped())
};
