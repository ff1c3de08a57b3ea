//! Go's template language, sprig's functions, and YAML as Go reads and writes it.
//!
//! Packages were written for Go's `text/template` with sprig 2.22 and `missingkey=error`, and
//! their users know its error texts; so both are kept to the letter. The differences are on
//! purpose: maps have an order wherever Go shuffles, work and nesting are bounded (see
//! [`limits`]), complex numbers and functions that are not deterministic are refused.
//!
//! `tests/data` holds cases whose answers were recorded from Go.

mod ast;
mod builtins;
mod dynamic;
mod error;
mod eval;
mod exec;
mod facts;
mod function;
pub mod go;
mod lexer;
mod library;
pub mod limits;
mod literal;
mod parser;
mod patterns;
mod print;
mod sprig;
mod token;
mod value;
mod version;
pub mod yaml;

use std::collections::BTreeMap;

pub use error::{ParseError, ParseErrorKind, Place, RenderError};
pub use facts::Reads;
pub use limits::{Interrupt, Interrupted, Never};
pub use value::{Given, Root, Value};

/// A template that was read without an error, ready to be rendered.
#[derive(Clone, Debug)]
pub struct Template {
    name: String,
    text: String,
    trees: BTreeMap<String, ast::List>,
    nodes: usize,
}

impl Template {
    /// Reads a template; `name` is the name of its file, as errors show it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ParseError> {
        let parser::Parse { trees, nodes } = parser::parse(name, text)?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), trees, nodes })
    }

    /// The text that the template gives for these values.
    ///
    /// Fails for good where the template is wrong or a budget of [`limits`] runs out, and for now
    /// where `interrupt` ends it ([`RenderError::is_transient`]).
    pub fn render(&self, root: &Root<'_>, interrupt: &dyn Interrupt) -> Result<String, RenderError> {
        let bytes = exec::render(&self.name, &self.text, &self.trees, root, interrupt)?;
        String::from_utf8(bytes).map_err(|error| RenderError::NotText {
            name: self.name.clone(),
            offset: error.utf8_error().valid_up_to(),
        })
    }

    /// Which parameters and pipes the template reads by name, as far as its text tells.
    pub fn reads(&self) -> Reads {
        facts::reads(&self.name, &self.text, &self.trees)
    }

    /// How many nodes, commands and operands it has; each takes a hundred bytes or two.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Name of the template's file.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests;
