//! sprig 2.22, the function library of KUDO's templates, one file a family, and what KUDO adds.
//!
//! Where Go's maps have no order (`keys`, `values`), the order here is that of the keys, so
//! that a template renders the same text every time.

mod cases;
mod coerce;
mod dates;
mod dicts;
mod encoding;
mod json;
mod kudo;
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
    kudo::FUNCTIONS,
];

/// Functions of sprig 2.22 that need a clock, a source of randomness, a network, or keys. A
/// template that names one of them is refused, with the name.
///
/// `env expandenv base dir clean ext isAbs` are not among them: KUDO takes them out of sprig's
/// map, so they are unknown to it as well.
pub(super) const UNSUPPORTED: &[&str] = &[
    "ago",
    "buildCustomCert",
    "dateModify",
    "date_modify",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSignedCert",
    "getHostByName",
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
