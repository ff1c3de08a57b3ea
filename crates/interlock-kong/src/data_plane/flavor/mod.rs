//! The router flavor of a gateway: its value ([`reading`]), the effect of a change ([`validate`], by the
//! table in [`compatibility`]), and the steps that work ([`plan`]).
//!
//! Input is a pod template, with the [`sources`] that its environment refers to and the existing
//! [`routes`]; output is findings with the texts of the rules RF01 to RF21. Compatibility facts:
//! Kong/kong 3.0.0 to 3.9.3 (`kong/conf_loader`, `kong/router`, `kong/db/schema/entities/routes.lua`,
//! `build/dockerfiles/entrypoint.sh`) and Kong/kubernetes-ingress-controller 3.x.

use std::fmt;

pub mod change;
pub mod compatibility;
pub mod deferred;
pub mod diagnosis;
pub mod environment;
pub mod flavor_override;
pub mod gateway;
pub mod gateway_ref;
pub mod group;
pub mod guarded_sources;
pub mod inventory;
pub mod kong_container;
pub mod overview;
pub mod pattern;
pub mod plan;
pub mod projection;
pub mod reading;
pub mod routes;
pub mod running;
pub mod serving;
pub mod sources;
pub mod validate;
pub mod version;

#[cfg(test)]
mod tests;

/// A router flavor of Kong (`kong/conf_loader/constants.lua`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavor {
    /// The Lua router with PCRE; deprecated since 3.0.
    Traditional,
    /// The Rust router, configured with the fields of the previous one.
    TraditionalCompatible,
    /// The Rust router, configured with expressions.
    Expressions,
}

/// The configuration language of a producer; ingress controllers treat `traditional` and
/// `traditional_compatible` alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Routes have match fields.
    Fields,
    /// Routes have expressions.
    Expressions,
}

impl Flavor {
    /// In the order of safe steps: one at a time, in both directions.
    pub const ALL: [Self; 3] = [Self::Traditional, Self::TraditionalCompatible, Self::Expressions];

    /// The value of `router_flavor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Traditional => "traditional",
            Self::TraditionalCompatible => "traditional_compatible",
            Self::Expressions => "expressions",
        }
    }

    /// The flavor with that value of `router_flavor`; exact, as in Kong.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flavor| flavor.as_str() == text)
    }

    /// The dialect of its configuration.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Traditional | Self::TraditionalCompatible => Dialect::Fields,
            Self::Expressions => Dialect::Expressions,
        }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
