//! How RateLimitPolicies and AuthPolicies are carried out: Envoy asks a Limitador about each request that a limit may count,
//! and before it an auth server about each request to a guarded rule.
//!
//! Input: the graph of Gateways, routes and policies. Output: for each fleet of proxies their filters, as
//! EnvoyPatchPolicies, the limits that a Limitador counts, and the AuthConfigs of the auth server. Only Envoy's own filters
//! are used, so no proxy has to fetch a module.
//!
//! - [`limits`]: the limits of one rule of a route, and which cannot be carried out.
//! - [`envoy`]: filters as Envoy has them.
//! - [`auth`]: AuthConfigs, and what is guarded by them.
//! - [`carried`]: the rules of routes in the proxies, by [`xds`], the names of listeners and route configurations that
//!   Envoy Gateway makes.
//! - [`fleet`]: the Gateways whose requests the same proxies carry.
//! - [`output`]: the limits of one fleet.
//! - [`patches`]: its EnvoyPatchPolicies.
//! - [`limitador`]: the limits as Limitador reads them.
//! - [`state`]: what is known beside the graph, of [`counting`] (what the proxies of a Gateway ask), [`written`] (what
//!   is there already) and [`rendering`] (what is to be there).

mod ancestors;
mod auth;
mod budget;
mod carried;
mod counting;
mod envoy;
mod finding;
mod fleet;
mod fleet_writes;
mod gateway;
mod gateway_class;
mod idle;
mod left_out;
mod limitador;
mod limits;
mod listeners;
mod merging;
mod names;
mod output;
mod patches;
mod policy;
pub mod proxied;
mod rendering;
mod state;
mod writes;
mod written;
mod xds;

pub(super) use self::auth::guards::guards_routes;
pub(crate) use self::gateway::RECONCILER as GATEWAYS;
pub(crate) use self::gateway_class::RECONCILER as GATEWAY_CLASSES;
pub(super) use self::limits::is_of_route;
pub(crate) use self::names::{LIMITS, LIMITS_CONFIG_MAP};
pub(crate) use self::policy::{OF_AUTH, OF_LIMITS};
pub(super) use self::state::{Concern, Enforcement};

/// The kinds that are carried out.
pub(super) const CARRIED_OUT: [&str; 2] = [output::KIND, auth::KIND];

/// The kind that is carried out, by its name.
pub(super) fn carried_out(kind: &str) -> Option<&'static str> {
    CARRIED_OUT.into_iter().find(|own| *own == kind)
}

/// Whether the kind is the one of authentication.
pub(super) fn is_auth(kind: &str) -> bool {
    kind == auth::KIND
}

#[cfg(test)]
mod tests;
