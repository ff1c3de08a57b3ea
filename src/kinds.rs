//! The list of the kinds: the only place that names every domain.

use std::sync::LazyLock;

use interlock_core::api::rule::Rule;
use interlock_core::kinds;
use interlock_core::kinds::{Kind, Kinds};

static ALL: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
    [
        interlock_kudo::KINDS,
        kinds::KINDS,
        interlock_gateway::KINDS,
        interlock_gateway::OF_ATTACHMENTS,
        interlock_gateway::policies::KINDS,
        interlock_gateway::policies::OF_ENFORCEMENT,
        interlock_kong::KINDS,
    ]
    .concat()
});

/// The kinds of Interlock.
pub fn all() -> Kinds {
    &ALL
}

/// The rules whose denial a later try may find lifted.
pub fn transient_rules() -> &'static [Rule] {
    static TRANSIENT: LazyLock<Vec<Rule>> = LazyLock::new(|| kinds::transient_rules(all()));
    &TRANSIENT
}
