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

/// Functions of sprig 2.22 that need a clock, a source of randomness, a network, keys, or the process
/// (`env`), and those of paths. The error of a template that calls one names it.
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
