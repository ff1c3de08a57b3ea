//! Policies of the Gateway API: the kinds that are known, and what their objects do.
//!
//! Input: objects as the API server returns them. Output: a [`PolicySurvey`], which says what acts on each path,
//! from which policy, and what it replaced. `gateway-policies` does the linking and merging.

mod acting;
mod attachments;
mod auth;
mod checks;
pub(crate) mod declared;
mod definition;
pub mod dialect;
mod drawing;
pub(crate) mod enforcement;
mod expressions;
mod generic;
mod inert;
mod kinds;
mod known;
mod labels;
mod linked;
pub(crate) mod listed;
mod merge;
mod outline;
mod predicates;
mod rate_limit;
mod rows;
pub(crate) mod rules;
mod seen;
mod statuses;
mod survey;
mod targets;
mod unseen;

pub use self::attachments::{AttachmentGraph, Attachments};
pub use self::checks::counted_as;
pub use self::definition::rate_limit_policies;
pub(crate) use self::drawing::drawing;
pub use self::enforcement::proxied;
pub use self::expressions::{ExpressionFinding, expressions};
pub use self::generic::Precedence;
pub use self::inert::Inert;
pub use self::kinds::*;
pub use self::known::{POLICY_LABEL, PolicyKinds, path_kinds};
pub(crate) use self::outline::OUTLINE;
pub use self::rows::{Acceptance, AffectedTargets, PolicyRow};
pub use self::statuses::StatusCondition;
pub use self::survey::{PolicySurvey, UnlistedKind, aged, applied, by_identity};

#[cfg(test)]
mod expression_tests;
#[cfg(test)]
mod tests;
