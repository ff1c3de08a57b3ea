//! CEL expressions as trees, for those who look at them without evaluating.

use std::panic::catch_unwind;

use kube_cel::cel::parser::{ParseErrors, Parser};
use thiserror::Error;

use crate::cost;

/// The nodes of a tree.
pub use kube_cel::cel::common::ast as tree;

/// Characters of the parser's reason that are kept: it lists each token that could follow.
const MAX_REASON: usize = 100;

/// Why a text is not an expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SyntaxError {
    /// It exceeds one of the [`limits`](crate::limits).
    #[error("{0}")]
    TooLarge(String),
    /// It is not CEL.
    #[error("line {line}, column {column}: {reason}")]
    Malformed {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// The parser says nothing about it.
    #[error("the parser cannot read it")]
    Unreadable,
}

/// The tree of an expression, with the syntax of optional values. Macros are expanded.
///
/// The parser recurses. It stops at this number of expressions in one another, in brackets or in branches of `? :`;
/// chains such as `a.b.c` recurse as long as the text is.
///
/// # Errors
/// The text exceeds a limit, or is not CEL.
pub fn parse(text: &str, depth: u16) -> Result<tree::IdedExpr, SyntaxError> {
    if let Some(reason) = cost::too_large(text) {
        return Err(SyntaxError::TooLarge(reason));
    }
    let parser = || Parser::new().enable_optional_syntax(true).max_recursion_depth(depth);
    // The parser is known to panic on some texts that it cannot read.
    match catch_unwind(|| parser().parse(text)) {
        Ok(Ok(tree)) => Ok(tree),
        Ok(Err(errors)) if errors.errors.iter().any(|error| error.msg.contains("Recursion limit")) => {
            Err(SyntaxError::TooLarge(format!("the expression nests deeper than {depth} levels")))
        }
        Ok(Err(errors)) => Err(first(&errors)),
        Err(_) => Err(SyntaxError::Unreadable),
    }
}

/// The first error that has a place.
fn first(errors: &ParseErrors) -> SyntaxError {
    let place = |(line, column): (isize, isize)| {
        let from_one = |at: isize| usize::try_from(at).ok().filter(|at| *at > 0);
        Some((from_one(line)?, from_one(column)?))
    };
    let placed = errors.errors.iter().find_map(|error| Some((place(error.pos)?, &error.msg)));
    placed.map_or(SyntaxError::Unreadable, |((line, column), message)| {
        let reason = message.strip_prefix("Syntax error: ").unwrap_or(message);
        let reason = reason.split(" expecting ").next().unwrap_or(reason);
        let cut = reason.chars().take(MAX_REASON).map(|c| if c.is_control() { ' ' } else { c }).collect();
        SyntaxError::Malformed { line, column, reason: cut }
    })
}
