//! The rules about Overrides.

use crate::api::rule::rules;

rules! {
    /// An Override is of a rule that can be overridden, by a user who may do so, and does not change.
    OVERRIDE_RIGHTS = "override-rights" in Lock;
}
