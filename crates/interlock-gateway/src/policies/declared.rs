//! How the kinds are declared that say where policies are attached, and those that admission is asked about.

use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::kinds::descriptor::{
    Calls, MatchCondition, MatchedObjects, OnFailure, WebhookEntry, cel,
};

/// The reviews of a kind; while Interlock is down, its objects can be written.
pub(crate) const fn entry(name: &'static str, resources: &'static [&'static str]) -> WebhookEntry {
    WebhookEntry {
        name,
        calls: Calls::Validating,
        resources,
        operations: &["CREATE", "UPDATE", "DELETE"],
        on_failure: OnFailure::Admit,
        conditions: &[
            MatchCondition::NotTheController,
            MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned()),
            MatchCondition::Cel("not-being-deleted", || NOT_BEING_DELETED.to_owned()),
        ],
        objects: MatchedObjects::All,
    }
}

const NOT_BEING_DELETED: &str =
    "!has((request.operation == 'DELETE' ? oldObject : object).metadata.deletionTimestamp)";

/// How admission decides on a kind.
pub(crate) const fn admission(
    resource: interlock_core::api::resource::Resource,
    decide: interlock_core::admission::kind::Decide,
) -> GuardedKind {
    GuardedKind { resource, capability: None, annotations: &[], decide, restore: allow, sub_resources: &[] }
}

/// A kind whose writes admission foresees.
macro_rules! guarded {
    ($kind:expr, $resource:expr, $plural:literal) => {
        interlock_core::kinds::Kind {
            admission: Some(
                const {
                    &$crate::policies::declared::admission($resource, |request, context| {
                        $crate::policies::rules::decide(&$resource, request, context)
                    })
                },
            ),
            webhooks: const { &[$crate::policies::declared::entry($plural, &[$plural])] },
            ..$kind
        }
    };
}

/// A kind whose policies are carried out: limits.
macro_rules! limited {
    ($kind:expr, $resource:expr, $plural:literal) => {
        $crate::policies::declared::enforced!($kind, $resource, $plural, OF_LIMITS, &[])
    };
}

/// The same: authentication, where its definition is there.
macro_rules! authenticated {
    ($kind:expr, $resource:expr, $plural:literal) => {
        $crate::policies::declared::enforced!(
            $kind,
            $resource,
            $plural,
            OF_AUTH,
            &[&interlock_core::kinds::capabilities::POLICIES]
        )
    };
}

/// A kind whose policies are carried out, what reconciles them, and the capabilities that do without its definition.
macro_rules! enforced {
    ($kind:expr, $resource:expr, $plural:literal, $reconciler:ident, $optional_for:expr) => {
        interlock_core::kinds::Kind {
            watch: Some(
                interlock_core::kinds::descriptor::Watch::optional(
                    &interlock_core::kinds::capabilities::ATTACHMENTS,
                )
                .also($optional_for)
                .kept(&interlock_core::kinds::descriptor::Kept::WHOLE),
            ),
            reconciler: Some(&$crate::policies::enforcement::$reconciler),
            rights: &[interlock_core::kinds::descriptor::Right::new(
                interlock_core::kinds::descriptor::Role::Policies,
                $resource.group,
                concat!($plural, "/status"),
                &["patch"],
            )],
            ..$crate::policies::declared::guarded!($kind, $resource, $plural)
        }
    };
}

/// A kind that carries policies out.
macro_rules! carrying {
    ($kind:expr, $resource:expr, $plural:literal) => {
        interlock_core::kinds::Kind {
            watch: Some(
                interlock_core::kinds::descriptor::Watch::optional(
                    &interlock_core::kinds::capabilities::ATTACHMENTS,
                )
                .also(&[&interlock_core::kinds::capabilities::POLICIES])
                .kept(&interlock_core::kinds::descriptor::Kept::WHOLE),
            ),
            rights: &[interlock_core::kinds::descriptor::Right::new(
                interlock_core::kinds::descriptor::Role::Policies,
                $resource.group,
                $plural,
                &["create", "patch", "delete"],
            )],
            ..$crate::policies::declared::guarded!($kind, $resource, $plural)
        }
    };
}

/// A kind that is only read.
macro_rules! read {
    ($kind:expr, $resource:expr, $plural:literal) => {
        $kind
    };
}

/// Declares kinds, a line each, and the list of them as `ATTACHED`.
macro_rules! attached {
    ($($(#[doc = $doc:literal])+ $name:ident: $how:ident = $group:expr, $versions:expr, $kind:literal, $plural:literal,
        $about:literal;)+) => {
        $(
            $(#[doc = $doc])+
            pub static $name: interlock_core::kinds::Kind = $how!(
                interlock_core::kinds::Kind {
                    watch: Some(interlock_core::kinds::descriptor::Watch::optional(
                        &interlock_core::kinds::capabilities::ATTACHMENTS,
                    )),
                    schema: Some(
                        const {
                            &interlock_core::kinds::owned_child::made(
                                interlock_core::topology::KindName::new($group, $kind),
                                $about,
                            )
                        },
                    ),
                    ..interlock_core::kinds::Kind::new(interlock_core::api::resource::Resource::custom(
                        $group, $versions, $kind, $plural,
                    ))
                },
                interlock_core::api::resource::Resource::custom($group, $versions, $kind, $plural),
                $plural
            );
        )+

        static ATTACHED: interlock_core::kinds::Kinds = &[$(&$name),+];
    };
}

pub(crate) use {attached, authenticated, carrying, enforced, guarded, limited, read};
