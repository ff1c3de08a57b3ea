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
mod literal;
mod pattern;
mod types;

use crd_schema::syntax::{self, SyntaxError};

pub use self::attributes::{
    ENVOY as ENVOY_ATTRIBUTES, KUADRANT as KUADRANT_ATTRIBUTES, LATER as LATER_ATTRIBUTES,
};
use self::checker::Checker;
pub use self::functions::{ENVOY as ENVOY_FUNCTIONS, Form, Function, KUADRANT as KUADRANT_FUNCTIONS};
pub use self::literal::literal;
pub use self::types::Type;

/// Bytes of an expression.
pub const MAX_BYTES: usize = 4 << 10;
/// Operators, brackets and commas of an expression, quotations included: each can be a level, and its parser recurses.
pub const MAX_MARKS: usize = 512;
/// Levels of an expression that the proxy takes; Envoy's own bound is 32.
pub const MAX_LEVELS: usize = 24;

/// Who evaluates an expression, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A condition of a limit: the proxy, for a boolean.
    Predicate,
    /// A counter of a limit: the proxy, for a value that tells requests apart.
    Counter,
    /// A condition of authentication or authorization: the auth server, for a boolean.
    AuthPredicate,
    /// A value of authentication or authorization: the auth server.
    AuthValue,
}

impl Use {
    /// Whether the proxy evaluates it, and not the auth server, which has all that Kuadrant has.
    fn is_of_proxy(self) -> bool {
        matches!(self, Self::Predicate | Self::Counter)
    }

    fn is_predicate(self) -> bool {
        matches!(self, Self::Predicate | Self::AuthPredicate)
    }
}

/// What becomes of an expression. The texts say why, and what to do; they go behind the name of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be evaluated.
    Right,
    /// Kuadrant has it, and the proxy cannot evaluate it: it is warned of, and not rendered.
    Unsupported(String),
    /// It can never act, in Envoy or in Kuadrant.
    Refused(String),
}

/// Checks an expression for its use.
pub fn check(expression: &str, of: Use) -> Verdict {
    if let Some(reason) = over_budget(expression) {
        return Verdict::Refused(format!("{reason}; split the expression into several"));
    }
    match syntax::parse(expression) {
        Ok(tree) => Checker::new(of).verdict(&tree),
        Err(SyntaxError::TooLarge(reason)) => {
            Verdict::Refused(format!("{reason}; split the expression into several"))
        }
        Err(error) => Verdict::Refused(format!("does not parse {error}; write an expression of CEL")),
    }
}

fn over_budget(expression: &str) -> Option<String> {
    if expression.len() > MAX_BYTES {
        return Some(format!("has more than {MAX_BYTES} bytes"));
    }
    let marks = expression.bytes().filter(|byte| b".,+-*/%!<>=&|?([{".contains(byte)).count();
    (marks > MAX_MARKS).then(|| format!("has more than {MAX_MARKS} operators, brackets and commas"))
}

#[cfg(test)]
mod tests;
