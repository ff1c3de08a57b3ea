//! The rules about policies of the Gateway API.

use interlock_core::api::rule::rules;

rules! {
    /// A window of a limit is a second or longer.
    POLICY_WINDOW = "policy-window" in Policies;
    /// A counter has no name that limits themselves have.
    POLICY_COUNTER = "policy-counter" in Policies;
    /// A policy has its rules, defaults or overrides.
    POLICY_BLOCKS = "policy-blocks" in Policies;
    /// A policy targets what it can act on.
    POLICY_TARGET = "policy-target" in Policies;
    /// An expression can be evaluated.
    POLICY_EXPRESSION = "policy-expression" in Policies;
    /// A new path of a route has a rule of an AuthPolicy.
    POLICY_COVERAGE = "policy-coverage" in Coverage, reads_others;
    /// What a change does to policies; it only warns.
    POLICY_EFFECT = "policy-effect" in Policies;
}
