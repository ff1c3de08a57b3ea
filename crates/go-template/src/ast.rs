//! A parsed template, printed as Go prints its nodes in error messages.

use std::fmt::{self, Display, Formatter};

use super::function::Function;
use super::go::quote::quoted;

/// Nodes one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeList {
    pub(super) nodes: Vec<Node>,
}

/// Text or an action.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Text(String),
    Action { pos: usize, pipe: Pipe },
    Branch(Branch),
    Template { pos: usize, name: String, pipe: Option<Pipe> },
    Break { pos: usize },
    Continue { pos: usize },
}

/// Kind of a control structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    If,
    Range,
    With,
}

impl Control {
    /// Its keyword.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Range => "range",
            Self::With => "with",
        }
    }
}

/// `if`, `range` or `with`.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) pos: usize,
    pub(super) control: Control,
    pub(super) pipe: Pipe,
    pub(super) list: NodeList,
    pub(super) otherwise: Option<NodeList>,
}

/// Commands joined by `|`, perhaps assigned to variables.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    pub(super) pos: usize,
    /// `=` rather than `:=`.
    pub(super) assigns: bool,
    pub(super) variables: Vec<String>,
    pub(super) commands: Vec<Command>,
}

/// An operand with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) pos: usize,
    pub(super) first: Operand,
    pub(super) args: Vec<Operand>,
}

/// One word of a command, with its position in the text.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) pos: usize,
    pub(super) term: Term,
}

/// Kind of an operand.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// `.A.B`
    Field(Vec<String>),
    /// `(pipeline).A.B`
    Chain(Box<Operand>, Vec<String>),
    Function(&'static Function),
    /// `(pipeline)`
    Pipe(Box<Pipe>),
    /// `$x.A.B`, the name with its dollar sign.
    Variable(String, Vec<String>),
    Bool(bool),
    Dot,
    Nil,
    Number(Number),
    String {
        literal: String,
        value: Vec<u8>,
    },
}

/// A number in each of the types that can hold it.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) literal: String,
    pub(super) int: Option<i64>,
    pub(super) float: Option<f64>,
}

impl Node {
    /// Position that errors about the node point to.
    pub(super) fn pos(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Action { pos, .. }
            | Self::Template { pos, .. }
            | Self::Break { pos }
            | Self::Continue { pos } => *pos,
            Self::Branch(branch) => branch.pos,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.trim().is_empty())
    }
}

impl NodeList {
    /// Whether it is empty except for spaces: such a definition does not replace another.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(Node::is_empty)
    }
}

impl Display for NodeList {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.nodes.iter().try_for_each(|node| node.fmt(f))
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Action { pipe, .. } => write!(f, "{{{{{pipe}}}}}"),
            Self::Branch(branch) => branch.fmt(f),
            Self::Template { name, pipe, .. } => {
                write!(f, "{{{{template {}", quoted(name))?;
                if let Some(pipe) = pipe {
                    write!(f, " {pipe}")?;
                }
                f.write_str("}}")
            }
            Self::Break { .. } => f.write_str("{{break}}"),
            Self::Continue { .. } => f.write_str("{{continue}}"),
        }
    }
}

impl Display for Branch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{} {}}}}}{}", self.control.word(), self.pipe, self.list)?;
        if let Some(otherwise) = &self.otherwise {
            write!(f, "{{{{else}}}}{otherwise}")?;
        }
        f.write_str("{{end}}")
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            write!(f, "{} {} ", self.variables.join(", "), if self.assigns { "=" } else { ":=" })?;
        }
        for (i, command) in self.commands.iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            command.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.first.fmt_argument(f)?;
        for arg in &self.args {
            f.write_str(" ")?;
            arg.fmt_argument(f)?;
        }
        Ok(())
    }
}

impl Operand {
    fn fmt_argument(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Pipe(pipe) => write!(f, "({pipe})"),
            _ => self.fmt(f),
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fields =
            |f: &mut Formatter<'_>, names: &[String]| names.iter().try_for_each(|name| write!(f, ".{name}"));
        match &self.term {
            Term::Field(names) => fields(f, names),
            Term::Chain(operand, names) => {
                operand.fmt_argument(f)?;
                fields(f, names)
            }
            Term::Function(function) => f.write_str(function.name),
            Term::Pipe(pipe) => pipe.fmt(f),
            Term::Variable(name, names) => {
                f.write_str(name)?;
                fields(f, names)
            }
            Term::Bool(value) => value.fmt(f),
            Term::Dot => f.write_str("."),
            Term::Nil => f.write_str("nil"),
            Term::Number(number) => f.write_str(&number.literal),
            Term::String { literal, .. } => f.write_str(literal),
        }
    }
}
