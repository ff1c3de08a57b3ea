//! How AuthPolicies are carried out: Envoy asks an auth server about each request to a guarded rule.
//!
//! Each effective policy is an AuthConfig, as Authorino reads it, and the map of a route configuration says which of them
//! decides about a rule. What cannot be decided is refused: a rule whose AuthConfig is not in force yet, and a route that
//! the proxy has and the map does not, where the Gateway has an AuthPolicy or the route's namespace one for its routes.
//!
//! - [`config`]: the AuthConfig of an effective policy.
//! - [`guards`]: what is done for the rules of a fleet.
//! - [`filters`]: filters as Envoy has them.
//! - [`seen`]: AuthConfigs that are there.
//! - [`writes`]: those that are written.

pub(super) mod config;
pub(super) mod filters;
pub(super) mod guards;
pub(super) mod seen;
pub(super) mod writes;

/// The kind that is carried out.
pub(super) const KIND: &str = "AuthPolicy";
