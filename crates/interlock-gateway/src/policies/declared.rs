//! How the kinds are declared that say where policies are attached.

use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::kinds::descriptor::{
    Calls, MatchCondition, MatchedObjects, OnFailure, WebhookEntry, cel,
};
use interlock_core::kinds::owned_child::{HEALTHY, MADE_BY, MAKER, TO_MAKER};
use interlock_core::topology::KindName;
use interlock_core::topology::schema::{DeclaredKind, EventRow, EventScope, EventTriggers};

/// The schema of a kind that only the graph of policies reads: in the topology it has no links but to who made it.
pub(crate) const fn schema(name: KindName, about: &'static str) -> DeclaredKind {
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

/// Declares kinds, a line each, and the list of them as `ATTACHED`.
macro_rules! attached {
    ($($(#[doc = $doc:literal])+ $name:ident = $group:expr, $versions:expr, $kind:literal, $plural:literal,
        $about:literal;)+) => {
        $(
            $(#[doc = $doc])+
            pub static $name: interlock_core::kinds::Kind = interlock_core::kinds::Kind {
                    watch: Some(interlock_core::kinds::descriptor::Watch::optional(
                        &interlock_core::kinds::capabilities::ATTACHMENTS,
                    )),
                    schema: Some(
                        const {
                            &$crate::policies::declared::schema(
                                interlock_core::topology::KindName::new($group, $kind),
                                $about,
                            )
                        },
                    ),
                    ..interlock_core::kinds::Kind::new(interlock_core::api::resource::Resource::custom(
                        $group, $versions, $kind, $plural,
                    ))
                };
        )+

        static ATTACHED: interlock_core::kinds::Kinds = &[$(&$name),+];
    };
}

pub(crate) use attached;
