//! How RateLimitPolicies are carried out: Envoy asks Limitador about each request that a limit may count.
//!
//! Input: the graph of Gateways, routes and policies. Output: for each Gateway the filters of its proxies, as
//! EnvoyPatchPolicies, and the limits that a Limitador counts. Only Envoy's own filters are used, so no proxy has to
//! fetch a module.
//!
//! - [`limits`]: the limits of one rule of a route, and which cannot be carried out.
//! - [`envoy`]: filters as Envoy has them.
//! - [`xds`]: the names of listeners and route configurations that Envoy Gateway makes.
//! - [`output`]: all of one Gateway.
//! - [`patches`]: its EnvoyPatchPolicies.
//! - [`limitador`]: the limits as Limitador reads them.
//! - [`state`]: what is known beside the graph, of [`counting`] (which Limitador counts for a Gateway), [`written`] (what
//!   is there already) and [`rendering`] (what is to be there).

mod ancestors;
mod budget;
mod counting;
mod envoy;
mod finding;
mod gateway;
mod limitador;
mod limits;
mod listeners;
mod names;
mod output;
mod patches;
mod policy;
mod rendering;
mod state;
mod written;
mod xds;

pub(crate) use self::gateway::RECONCILER as GATEWAYS;
pub(crate) use self::names::{LIMITS, LIMITS_CONFIG_MAP};
pub(super) use self::output::KIND as RATE_LIMIT_POLICY;
pub(crate) use self::policy::RECONCILER as RATE_LIMIT_POLICIES;
pub(super) use self::state::{Concern, Enforcement};

#[cfg(test)]
mod tests;
