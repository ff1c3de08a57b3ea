//! sprig 2.22, one file a family.
//!
//! Where Go's maps have no order (`keys`, `values`), the order here is that of the keys, so
//! that a template renders the same text every time.

mod cases;
mod coerce;
mod dates;
mod dicts;
mod encoding;
mod json;
mod lists;
mod math;
mod regex;
mod semver;
mod strings;
mod text;
mod types;
mod urls;

use super::function::Function;

/// All functions, by family.
pub(super) const FAMILIES: &[&[Function]] = &[
    strings::FUNCTIONS,
    text::FUNCTIONS,
    cases::FUNCTIONS,
    regex::FUNCTIONS,
    dates::FUNCTIONS,
    urls::FUNCTIONS,
    math::FUNCTIONS,
    lists::FUNCTIONS,
    dicts::FUNCTIONS,
    types::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    semver::FUNCTIONS,
];

/// Functions of sprig 2.22 that need a clock, a source of randomness, a network, keys, or the
/// process (`env`), and those of paths. A template that names one of them is refused, with the name.
pub(super) const UNSUPPORTED: &[&str] = &[
    "ago",
    "base",
    "buildCustomCert",
    "clean",
    "dateModify",
    "date_modify",
    "decryptAES",
    "derivePassword",
    "dir",
    "encryptAES",
    "env",
    "expandenv",
    "ext",
    "genCA",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSignedCert",
    "getHostByName",
    "isAbs",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randNumeric",
    "shuffle",
    "toDate",
    "unixEpoch",
    "uuidv4",
];
