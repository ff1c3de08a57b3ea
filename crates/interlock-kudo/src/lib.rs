//! KUDO: packages, their Instances, and the plans that run on them (KEP-0018).
//!
//! [`package`] reads packages, [`instance`] and [`operator_version`] decide on requests, [`engine`] advances plans. All of it
//! is a function of what was read.

pub mod api;
pub mod engine;
pub mod instance;
pub mod names;
pub mod operator;
pub mod operator_version;
pub mod package;
#[cfg(test)]
mod tests;
mod time_limits;

use interlock_core::kinds::Kinds;

/// The kinds of KUDO.
pub static KINDS: Kinds = &[&instance::KIND, &operator_version::KIND, &operator::KIND];

/// These and the kinds of every domain.
#[cfg(test)]
fn all() -> Kinds {
    static ALL: std::sync::LazyLock<Vec<&interlock_core::kinds::Kind>> =
        std::sync::LazyLock::new(|| [KINDS, interlock_core::kinds::KINDS].concat());
    &ALL
}

#[cfg(test)]
fn transient_rules() -> &'static [interlock_core::api::rule::Rule] {
    static TRANSIENT: std::sync::LazyLock<Vec<interlock_core::api::rule::Rule>> =
        std::sync::LazyLock::new(|| interlock_core::kinds::transient_rules(all()));
    &TRANSIENT
}
