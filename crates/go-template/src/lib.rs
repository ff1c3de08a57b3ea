//! Go's `text/template` with the functions of sprig 2.22, and YAML as Go reads and writes it.
//!
//! For programs that render templates written for Go. Output and errors match Go's exactly, with the option
//! `missingkey=error`; the README lists intended differences. Work, memory and nesting of a rendering are
//! limited ([`limits`]), so that untrusted templates can be rendered.
//!
//! ```
//! use go_template::{Functions, Never, Root, Template, Value};
//!
//! let template = Template::parse("greeting", "Hello {{ .Name | upper }}!", &Functions::sprig())?;
//! let values: Value = [("Name", "world")].into_iter().collect();
//! assert_eq!(template.render(&Root::from(&values), &Never)?, "Hello WORLD!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An error has its position, in Go's words:
//!
//! ```
//! # use go_template::{Functions, Never, Root, Template, Value};
//! let template = Template::parse("file.txt", "a\n{{ .Missing }}", &Functions::go())?;
//! let error = template.render(&Root::from(&Value::Map(Default::default())), &Never).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "template: file.txt:2:3: executing \"file.txt\" at <.Missing>: map has no entry for key \"Missing\""
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program adds functions of its own ([`Function::new`]), and removes others:
//!
//! ```
//! # use go_template::{Function, Functions, Never, Root, Template, Type, Value};
//! const MINE: &[Function] = &[Function::new("half", &[Type::Int], |args| match args {
//!     [Value::Int(number)] if number % 2 == 0 => Ok(Value::Int(number / 2)),
//!     _ => Err("it is odd".to_owned()),
//! })];
//! let functions = Functions::sprig().with(MINE).without(&["b64enc"]);
//! let template = Template::parse("half", "{{ half 84 }}", &functions)?;
//! assert_eq!(template.render(&Root::default(), &Never)?, "42");
//! assert!(Template::parse("encoded", "{{ b64enc \"x\" }}", &functions).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod ast;
mod builtins;
mod crypto;
mod dynamic;
mod error;
mod eval;
mod exec;
mod function;
mod functions;
mod generator;
pub mod go;
mod key_store;
mod lexer;
pub mod limits;
mod literal;
mod parser;
mod patterns;
mod print;
mod references;
mod sprig;
mod time;
mod to_yaml;
mod token;
mod value;
mod version;
pub mod yaml;

use std::collections::BTreeMap;

pub use error::{ParseError, ParseErrorKind, Place, RenderError};
pub use function::{Function, Plain, Type};
pub use functions::{Functions, TO_YAML};
pub use generator::Generator;
pub use key_store::{KeyStore, Keys};
pub use limits::{Interrupt, Interrupted, Never};
pub use references::Reference;
pub use value::{Given, Root, SharedMap, Value};

/// A parsed template, ready to be rendered.
#[derive(Clone, Debug)]
pub struct Template {
    name: String,
    text: String,
    trees: BTreeMap<String, ast::NodeList>,
    nodes: usize,
}

impl Template {
    /// Parses a template; `name` is the name of its file, for errors.
    ///
    /// # Errors
    /// The text is no template, calls a function that is not among these, or exceeds one of the [`limits`].
    pub fn parse(name: &str, text: &str, functions: &Functions) -> Result<Self, ParseError> {
        let parser::Parse { trees, nodes } = parser::parse(name, text, functions)?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), trees, nodes })
    }

    /// Renders the template with these values. Functions that need a clock or randomness fail.
    ///
    /// # Errors
    /// As [`Template::render_with`].
    pub fn render(&self, root: &Root<'_>, interrupt: &dyn Interrupt) -> Result<String, RenderError> {
        self.text_of(root, None, interrupt)
    }

    /// Renders the template with these values, and with what this generator gives for `now` and for what is
    /// random.
    ///
    /// # Errors
    /// Permanent if the template is wrong or exceeds a budget of [`limits`], transient if `interrupt` ends
    /// the rendering ([`RenderError::is_transient`]).
    pub fn render_with(
        &self,
        root: &Root<'_>,
        generator: &Generator,
        interrupt: &dyn Interrupt,
    ) -> Result<String, RenderError> {
        self.text_of(root, Some(generator), interrupt)
    }

    fn text_of(
        &self,
        root: &Root<'_>,
        generator: Option<&Generator>,
        interrupt: &dyn Interrupt,
    ) -> Result<String, RenderError> {
        let meter = limits::Meter::new(interrupt, generator);
        let bytes = exec::render(&self.name, &self.text, &self.trees, root, meter)?;
        String::from_utf8(bytes).map_err(|error| RenderError::NotText {
            name: self.name.clone(),
            offset: error.utf8_error().valid_up_to(),
        })
    }

    /// Number of its nodes, commands and operands; each takes a hundred bytes or two.
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
