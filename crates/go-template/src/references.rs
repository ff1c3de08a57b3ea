//! What a template reads of its root value, without rendering it.

use std::collections::BTreeSet;

use super::Template;
use super::ast::{Branch, Command, Control, Node, NodeList, Operand, Pipe, Term};
use super::error::Place;

/// Builtin that reads an entry of a map.
const INDEX: &str = "index";

/// A use of a value of the root, such as `.Params.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The names; none for the root itself.
    pub path: Vec<String>,
    /// Position.
    pub place: Place,
    /// Whether it surely begins at the root. Inside of `range`, `with` and a definition, a dot may be anything.
    pub of_root: bool,
}

impl Template {
    /// Every value that the template may read of its root, in its branches too.
    pub fn references(&self) -> Vec<Reference> {
        let mut all = Walk { text: &self.text, found: Vec::new(), dollar: true, roots: BTreeSet::new() };
        for (name, list) in &self.trees {
            all.dollar = *name == self.name;
            all.list(list, all.dollar);
        }
        all.found.sort();
        all.found
    }
}

struct Walk<'t> {
    text: &'t str,
    found: Vec<Reference>,
    /// Whether `$` is the root.
    dollar: bool,
    /// Variables that were declared as the root.
    roots: BTreeSet<&'t str>,
}

impl<'t> Walk<'t> {
    /// `dot` is whether a dot is the root.
    fn list(&mut self, list: &'t NodeList, dot: bool) {
        for node in &list.nodes {
            match node {
                Node::Action { pipe, .. } => self.pipe(pipe, dot),
                Node::Branch(branch) => self.branch(branch, dot),
                // A definition's own references are among those of the file.
                Node::Template { pipe: Some(pipe), .. } if is_root(pipe) => {}
                Node::Template { pipe: Some(pipe), .. } => self.pipe(pipe, dot),
                Node::Template { pipe: None, .. }
                | Node::Text(_)
                | Node::Break { .. }
                | Node::Continue { .. } => {}
            }
        }
    }

    fn branch(&mut self, branch: &'t Branch, dot: bool) {
        self.pipe(&branch.pipe, dot);
        self.list(&branch.list, dot && branch.control == Control::If);
        branch.otherwise.iter().for_each(|list| self.list(list, dot));
    }

    fn pipe(&mut self, pipe: &'t Pipe, dot: bool) {
        if let ([name], true) = (pipe.variables.as_slice(), is_root(pipe) && (dot || self.dollar)) {
            self.roots.insert(name);
            return;
        }
        pipe.commands.iter().for_each(|command| self.command(command, dot));
    }

    fn command(&mut self, command: &'t Command, dot: bool) {
        let mut args = command.args.as_slice();
        if let (Term::Function(function), [map, key, rest @ ..]) = (&command.first.term, args)
            && function.name == INDEX
            && let Term::String { value, .. } = &key.term
            && let Ok(key) = std::str::from_utf8(value)
        {
            self.operand(map, dot, &[key.to_owned()]);
            args = rest;
        } else {
            self.operand(&command.first, dot, &[]);
        }
        args.iter().for_each(|arg| self.operand(arg, dot, &[]));
    }

    /// `below` are further names behind those of the operand.
    fn operand(&mut self, operand: &'t Operand, dot: bool, below: &[String]) {
        match &operand.term {
            Term::Field(names) => self.add(operand, dot, [names, below].concat()),
            Term::Variable(name, names) if name == "$" => {
                self.add(operand, self.dollar, [names, below].concat());
            }
            // It may have been set to another value since.
            Term::Variable(name, names) if self.roots.contains(name.as_str()) => {
                self.add(operand, false, [names, below].concat());
            }
            Term::Dot if dot => self.add(operand, true, below.to_vec()),
            Term::Chain(of, names) => self.operand(of, dot, &[names, below].concat()),
            Term::Pipe(pipe) => match pipe.commands.as_slice() {
                [only] if only.args.is_empty() => self.operand(&only.first, dot, below),
                _ => self.pipe(pipe, dot),
            },
            Term::Dot
            | Term::Variable(..)
            | Term::Function(_)
            | Term::Bool(_)
            | Term::Nil
            | Term::Number(_)
            | Term::String { .. } => {}
        }
    }

    fn add(&mut self, operand: &Operand, of_root: bool, path: Vec<String>) {
        self.found.push(Reference { path, place: Place::of(self.text, operand.pos), of_root });
    }
}

/// Whether a pipeline is a dot or `$`.
fn is_root(pipe: &Pipe) -> bool {
    let [Command { first, args, .. }] = pipe.commands.as_slice() else { return false };
    let root = match &first.term {
        Term::Dot => true,
        Term::Variable(name, names) => name == "$" && names.is_empty(),
        _ => false,
    };
    root && args.is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::{Functions, Template};

    #[rstest]
    #[case::fields("{{ .Params.A }} {{ $.Name }}", "1:10 Params.A, 1:20 Name")]
    #[case::branches(
        "{{ if .Params.A }}{{ .B }}{{ else }}{{ .C }}{{ end }}",
        "1:13 Params.A, 1:21 B, 1:39 C"
    )]
    #[case::ranges(
        "{{ range .Params.L }}{{ .a }}{{ $.Params.B }}{{ end }}",
        "1:16 Params.L, 1:24 a?, 1:33 Params.B"
    )]
    #[case::with("{{ with .Params }}{{ .A }}{{ else }}{{ .B }}{{ end }}", "1:8 Params, 1:21 A?, 1:39 B")]
    #[case::arguments("{{ eq (default .Params.A \"x\") .Params.B | quote }}", "1:22 Params.A, 1:37 Params.B")]
    #[case::index("{{ index .Params \"A\" }}", "1:9 Params.A")]
    #[case::index_of_a_variable("{{ index .Params $.K }}", "1:9 Params, 1:18 K")]
    #[case::variables("{{ $p := .Params }}{{ $p.A }}", "1:9 Params")]
    #[case::the_root_as_a_variable(
        "{{ $r := . }}{{ range .L }}{{ $r.Params.A }}{{ end }}",
        "1:22 L, 1:32 Params.A?"
    )]
    #[case::chains("{{ (.Params).A }}{{ (index .Params \"L\").b }}", "1:4 Params.A, 1:27 Params.L")]
    #[case::definitions(
        "{{ define \"d\" }}{{ .X }}{{ $.Y }}{{ end }}{{ template \"d\" . }}",
        "1:19 X?, 1:28 Y?"
    )]
    #[case::whole(
        "{{ toYaml . }}{{ template \"d\" .Params }}{{ define \"d\" }}{{ end }}",
        "1:10 , 1:30 Params"
    )]
    fn what_a_template_reads(#[case] text: &str, #[case] expected: &str) {
        let functions = Functions::sprig().with(crate::TO_YAML);
        let template = Template::parse("t", text, &functions).unwrap();
        let mut all = template.references();
        all.sort_by_key(|found| found.place);
        let shown = all.iter().map(|found| {
            format!("{} {}{}", found.place, found.path.join("."), if found.of_root { "" } else { "?" })
        });
        assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
    }
}
