//! What a template's text tells without rendering it: the parameters and pipes it reads.

use std::collections::BTreeMap;

use super::ast::{Branch, Command, Control, List, Node, Operand, Pipe, Term};
use super::error::Place;

/// Names that a template reads from its root values, each with the first place where it does.
///
/// Best effort: `.Params.X` counts where the dot is the root, `$.Params.X` everywhere in the
/// file's own template; what is reached through a variable or a `define` is not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Names behind `.Params.`; a parameter that does not exist fails the rendering.
    pub params: BTreeMap<String, Place>,
    /// Names behind `.Pipes.`.
    pub pipes: BTreeMap<String, Place>,
    /// Other root values, such as `Name` or `Namespace`.
    pub roots: BTreeMap<String, Place>,
}

/// Collects the reads of the template `name`.
pub(super) fn reads(name: &str, text: &str, trees: &BTreeMap<String, List>) -> Reads {
    let mut finder = Finder { text, reads: Reads::default() };
    if let Some(list) = trees.get(name) {
        finder.list(list, true);
    }
    finder.reads
}

struct Finder<'t> {
    text: &'t str,
    reads: Reads,
}

impl Finder<'_> {
    fn list(&mut self, list: &List, at_root: bool) {
        for node in &list.nodes {
            match node {
                Node::Action { pipe, .. } | Node::Template { pipe: Some(pipe), .. } => {
                    self.pipe(pipe, at_root)
                }
                Node::Branch(branch) => self.branch(branch, at_root),
                _ => {}
            }
        }
    }

    fn branch(&mut self, branch: &Branch, at_root: bool) {
        self.pipe(&branch.pipe, at_root);
        self.list(&branch.list, at_root && branch.control == Control::If);
        if let Some(otherwise) = &branch.otherwise {
            self.list(otherwise, at_root);
        }
    }

    fn pipe(&mut self, pipe: &Pipe, at_root: bool) {
        for Command { first, args, .. } in &pipe.commands {
            self.operand(first, at_root);
            for arg in args {
                self.operand(arg, at_root);
            }
        }
    }

    fn operand(&mut self, operand: &Operand, at_root: bool) {
        match &operand.term {
            Term::Field(names) if at_root => self.read(names, operand.pos),
            Term::Variable(name, names) if name == "$" => self.read(names, operand.pos),
            Term::Chain(inner, _) => self.operand(inner, at_root),
            Term::Pipe(pipe) => self.pipe(pipe, at_root),
            _ => {}
        }
    }

    fn read(&mut self, names: &[String], pos: usize) {
        let place = Place::of(self.text, pos);
        let (map, name) = match names {
            [root, name, ..] if root == "Params" => (&mut self.reads.params, name),
            [root, name, ..] if root == "Pipes" => (&mut self.reads.pipes, name),
            [root, ..] => (&mut self.reads.roots, root),
            [] => return,
        };
        map.entry(name.clone()).or_insert(place);
    }
}
