//! Which expressions of policies the proxy can evaluate.
//!
//! Kuadrant's policies have expressions in CEL. Envoy has CEL with other functions, without loops, and takes names
//! that do not exist. One expression that it refuses stops a whole route configuration; one whose value it
//! does not find makes a limit that never counts. Both are found here before anything is rendered.
//!
//! The tables are data: [`ENVOY_ATTRIBUTES`], [`LATER_ATTRIBUTES`] and [`KUADRANT_ATTRIBUTES`], [`ENVOY_FUNCTIONS`]
//! and [`KUADRANT_FUNCTIONS`]. `tests/envoy` holds them, entry by entry, to what a real Envoy does.

mod attributes;
mod checker;
mod functions;
mod identity;
mod literal;
mod pattern;
mod types;
mod verdict;
mod wording;

use crd_schema::syntax::{self, SyntaxError};

pub use self::attributes::{
    AUTH_SERVER as AUTH_SERVER_ATTRIBUTES, ENVOY as ENVOY_ATTRIBUTES, KUADRANT as KUADRANT_ATTRIBUTES,
    LATER as LATER_ATTRIBUTES,
};
use self::checker::Checker;
pub use self::functions::{ENVOY as ENVOY_FUNCTIONS, Form, Function, KUADRANT as KUADRANT_FUNCTIONS};
pub use self::identity::located;
pub use self::literal::literal;
pub use self::types::Type;
pub use self::verdict::{MAX_LEVELS, Use, Verdict};

/// Bytes of an expression.
pub const MAX_BYTES: usize = 4 << 10;
/// Operators, brackets and commas of an expression, quotations included: each can be a level, and its parser recurses.
pub const MAX_MARKS: usize = 512;

/// Checks an expression for its use.
pub fn check(expression: &str, of: Use) -> Verdict {
    if let Some(reason) = over_budget(expression) {
        return Verdict::Unsupported(format!(
            "is not checked: it {reason}; split the expression into several"
        ));
    }
    match syntax::parse(expression, MAX_LEVELS) {
        Ok(tree) => Checker::new(of).verdict(&tree),
        Err(SyntaxError::TooLarge(reason)) => {
            Verdict::Unsupported(format!("is not checked: it {reason}; split the expression into several"))
        }
        Err(error) => Verdict::Refused(format!("does not parse: {error}; write an expression of CEL")),
    }
}

fn over_budget(expression: &str) -> Option<String> {
    if expression.len() > MAX_BYTES {
        return Some(format!("has more than {MAX_BYTES} bytes"));
    }
    // Each could begin a branch, also where it is part of a pattern.
    if expression.matches('?').count() > usize::from(MAX_LEVELS) {
        return Some(format!("has more than {MAX_LEVELS} question marks"));
    }
    let marks = expression.bytes().filter(|byte| b".,+-*/%!<>=&|?([{".contains(byte)).count();
    (marks > MAX_MARKS).then(|| format!("has more than {MAX_MARKS} operators, brackets and commas"))
}

#[cfg(test)]
mod tests;
