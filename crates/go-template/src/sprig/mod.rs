//! sprig 2.22, one family per file.
//!
//! Go's maps have no order (`keys`, `values`); here keys are sorted, so that a template always renders the
//! same text.

mod cases;
mod coerce;
mod dates;
mod dicts;
mod encoding;
mod json;
mod keys;
mod lists;
mod math;
mod random;
mod regex;
mod semver;
mod strings;
mod text;
mod types;
mod urls;

pub(super) use dates::METHODS;

use super::function::Function;

/// All functions, by family.
pub(super) const FAMILIES: &[&[Function]] = &[
    strings::FUNCTIONS,
    text::FUNCTIONS,
    cases::FUNCTIONS,
    regex::FUNCTIONS,
    dates::FUNCTIONS,
    random::FUNCTIONS,
    keys::FUNCTIONS,
    urls::FUNCTIONS,
    math::FUNCTIONS,
    lists::FUNCTIONS,
    dicts::FUNCTIONS,
    types::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    semver::FUNCTIONS,
];

/// Functions of sprig 2.22 that need the network or the process (`env`), and those of paths. The error of a
/// template that calls one names it.
pub(super) const UNSUPPORTED: &[&str] =
    &["base", "clean", "dir", "env", "expandenv", "ext", "getHostByName", "isAbs"];
