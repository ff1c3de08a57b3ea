//! The router flavor as the value of a flag.

use clap::ValueEnum;
use interlock_kong::data_plane::flavor::Flavor;

/// A router flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum FlavorFlag {
    /// The Lua router with PCRE.
    Traditional,
    /// The Rust router, fed with match fields.
    TraditionalCompatible,
    /// The Rust router, fed with expressions.
    Expressions,
}

impl From<FlavorFlag> for Flavor {
    fn from(flag: FlavorFlag) -> Self {
        match flag {
            FlavorFlag::Traditional => Self::Traditional,
            FlavorFlag::TraditionalCompatible => Self::TraditionalCompatible,
            FlavorFlag::Expressions => Self::Expressions,
        }
    }
}
