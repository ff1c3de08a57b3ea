//! Bounds on hostile input. Each one has a stated outcome.
//!
//! The bounds on one object lie above those of the Gateway API's definitions. An object over one of them does
//! not decode ([`crate::DecodeError::OverLimit`]): its last decoded version stays in force, and it is reported.

/// Listeners of one Gateway or ListenerSet. The definition admits 64.
pub const LISTENERS: usize = 128;

/// `parentRefs` of one route. The definition admits 32.
pub const PARENT_REFS: usize = 64;

/// `hostnames` of one route. The definition admits 16.
pub const HOSTNAMES: usize = 64;

/// `rules` of one route. The definition admits 16.
pub const ROUTE_RULES: usize = 64;

/// `backendRefs` of one route rule. The definition admits 16.
pub const BACKEND_REFS: usize = 64;

/// `from` and `to` of one ReferenceGrant. The definition admits 16.
pub const GRANT_ENTRIES: usize = 64;

/// Values of one label selector.
pub const SELECTOR_VALUES: usize = 256;

/// Target references of one policy, where its kind sets no other limit. GEP-713 admits 16 ancestors.
pub const TARGETS: usize = 16;

/// Rules of one policy. A policy over it is invalid.
pub const RULES: usize = 1024;

/// Rules of one policy that are listed as replaced on one path; the others are replaced too.
pub const REPLACED_RULES: usize = 32;

/// Rules of policies that [`crate::Index::difference`] merges, each as often as another list of policies has it.
pub const MERGED_RULES: usize = 100_000;

/// Accepted policies of one kind on one target. The oldest ones count; the others are not accepted.
pub const POLICIES_PER_TARGET: usize = 16;

/// Rules of the policies of one kind on one target, which bounds what an event costs on each path. The oldest policies
/// count that have no more together; the others are not accepted.
pub const RULES_PER_TARGET: usize = 2 * RULES;

/// Policies of one direct kind on one target of which the oldest acts, and the others name it as their winner, so that
/// a new winner costs no more than as many states. Those beyond are over the limit.
pub const CONFLICTS_PER_TARGET: usize = 64;

/// Paths of one route. The listeners beyond it are refused as [`crate::RefusalReason::OverBudget`].
///
/// 64 listeners with 64 rules each need as many.
pub const PATHS_PER_ROUTE: usize = 4096;

/// Routes and paths that [`crate::Index::difference`] follows; policies on a target with more paths are over it too.
/// Over it, the difference is an error: the change is not foreseen, and not refused for that.
pub const DIFFERENCE: usize = 20_000;

/// Ancestors in the status of one policy (GEP-713, `PolicyStatus.ancestors`, maxItems 16).
pub const ANCESTORS: usize = 16;

/// Policies that one message names; the message counts the others.
pub const NAMES_IN_MESSAGE: usize = 8;
