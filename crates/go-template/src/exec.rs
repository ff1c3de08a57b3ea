//! Executes a parsed template and writes its text, like Go's `text/template/exec.go` with the option
//! `missingkey=error`.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::ast::{Branch, Control, Node, NodeList, Pipe};
use super::dynamic::{Elem, Val};
use super::error::{Failure, Place, RenderError, shown};
use super::go::quote::quoted;
use super::limits::{LimitReached, MAX_DEPTH, MAX_OUTPUT, Meter};
use super::print;
use super::value::Root;

/// A value and its access path: Go's errors distinguish one in an `interface{}` from others.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    pub(super) value: Val,
    /// Whether it is an element of a `[]interface{}` or `map[string]interface{}`.
    pub(super) boxed: bool,
}

impl From<Val> for Reached {
    fn from(value: Val) -> Self {
        Self { value, boxed: false }
    }
}

/// Renders the template `name` of a file whose text is `text`.
pub(super) fn render<'t>(
    name: &'t str,
    text: &'t str,
    trees: &'t BTreeMap<String, NodeList>,
    root: &Root<'_>,
    meter: Meter<'t>,
) -> Result<Vec<u8>, RenderError> {
    let mut state = Executor {
        name,
        text,
        trees,
        template: name,
        out: Vec::new(),
        variables: Vec::new(),
        at: None,
        depth: 0,
        meter,
    };
    let root = state.limit(Val::of_root(&state.meter, root))?;
    state.variables.push(Variable { name: "$", value: root.clone().into() });
    if let Some(list) = trees.get(name) {
        state.list(&root.into(), list)?;
    }
    Ok(state.out)
}

pub(super) type Executed<T> = Result<T, RenderError>;

/// Whether a loop continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

pub(super) struct Variable<'t> {
    pub(super) name: &'t str,
    pub(super) value: Reached,
}

/// The iterations of a `range`.
struct Rounds<'t> {
    branch: &'t Branch,
    /// Number of variables that all iterations share.
    scope: usize,
    /// Whether there was an iteration.
    any: bool,
}

/// The node that an error points to.
#[derive(Clone, Copy)]
struct At<'t> {
    pos: usize,
    node: &'t dyn Display,
}

/// One execution.
pub(super) struct Executor<'t> {
    name: &'t str,
    text: &'t str,
    trees: &'t BTreeMap<String, NodeList>,
    /// Name of the template in execution.
    template: &'t str,
    out: Vec<u8>,
    pub(super) variables: Vec<Variable<'t>>,
    at: Option<At<'t>>,
    depth: usize,
    pub(super) meter: Meter<'t>,
}

impl<'t> Executor<'t> {
    /// Sets the node for the following errors.
    pub(super) fn at(&mut self, pos: usize, node: &'t dyn Display) {
        self.at = Some(At { pos, node });
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Executed<T> {
        let (place, node) = self.here();
        let (name, template) = (self.name.to_owned(), self.template.to_owned());
        Err(RenderError::Execution { name, template, place, node, message: shown(message.into()) })
    }

    /// The node, and where it is.
    fn here(&self) -> (Place, String) {
        let (pos, node) = self.at.map_or((0, String::new()), |at| (at.pos, at.node.to_string()));
        (Place::of(self.text, pos), shown(node))
    }

    /// The error for a limit reached at this node.
    pub(super) fn reached<T>(&self, limit: LimitReached) -> Executed<T> {
        let LimitReached::Interrupted(why) = limit else { return self.error(limit.to_string()) };
        Err(RenderError::Interrupted { name: self.name.to_owned(), place: self.here().0, why })
    }

    /// The error of a function that needs a generator.
    pub(super) fn no_generator<T>(&self, function: &'static str, message: &'static str) -> Executed<T> {
        let (place, node) = self.here();
        Err(RenderError::NoGenerator { name: self.name.to_owned(), place, node, function, message })
    }

    pub(super) fn limit<T>(&self, result: Result<T, LimitReached>) -> Executed<T> {
        result.or_else(|limit| self.reached(limit))
    }

    pub(super) fn check<T>(&self, result: Result<T, Failure>) -> Executed<T> {
        result.or_else(|failure| match failure {
            Failure::Limit(limit) => self.reached(limit),
            Failure::Refused(message) => self.error(message),
            Failure::NoGenerator(message) => self.error(message),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Executed<()> {
        if self.out.len() + bytes.len() > MAX_OUTPUT {
            return self.reached(LimitReached::Output);
        }
        self.limit(self.meter.read(bytes.len()))?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Descends one level while `run` executes.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Executed<T>) -> Executed<T> {
        if self.depth >= MAX_DEPTH {
            return self.reached(LimitReached::Depth);
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    fn list(&mut self, dot: &Reached, list: &'t NodeList) -> Executed<Flow> {
        self.deeper(|state| {
            for node in &list.nodes {
                let flow = state.node(dot, node)?;
                if flow != Flow::On {
                    return Ok(flow);
                }
            }
            Ok(Flow::On)
        })
    }

    fn node(&mut self, dot: &Reached, node: &'t Node) -> Executed<Flow> {
        if let Node::Text(text) = node {
            self.write(text.as_bytes())?;
            return Ok(Flow::On);
        }
        self.at(node.pos(), node);
        self.limit(self.meter.step())?;
        match node {
            Node::Text(_) => {}
            Node::Action { pipe, .. } => {
                let value = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at(node.pos(), node);
                    self.print(&value)?;
                }
            }
            Node::Branch(branch) => {
                let scope = self.variables.len();
                let flow = match branch.control {
                    Control::Range => self.range(dot, branch, node),
                    Control::If | Control::With => self.condition(dot, branch),
                };
                self.variables.truncate(scope);
                return flow;
            }
            Node::Template { name, pipe, .. } => self.template(dot, name, pipe.as_ref())?,
            Node::Break { .. } => return Ok(Flow::Break),
            Node::Continue { .. } => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn print(&mut self, value: &Val) -> Executed<()> {
        match value {
            Val::Nil => self.write(b"<no value>"),
            Val::Str(text) => self.write(text),
            value => {
                let text = self.check(print::sprintv(&self.meter, value))?;
                self.write(&text)
            }
        }
    }

    fn condition(&mut self, dot: &Reached, branch: &'t Branch) -> Executed<Flow> {
        let value = self.pipeline(dot, &branch.pipe)?;
        if value.truth() {
            match branch.control {
                Control::With => self.list(&value.into(), &branch.list),
                _ => self.list(dot, &branch.list),
            }
        } else {
            self.otherwise(dot, branch)
        }
    }

    fn otherwise(&mut self, dot: &Reached, branch: &'t Branch) -> Executed<Flow> {
        branch.otherwise.as_ref().map_or(Ok(Flow::On), |list| self.list(dot, list))
    }

    fn range(&mut self, dot: &Reached, branch: &'t Branch, node: &'t Node) -> Executed<Flow> {
        self.at(node.pos(), node);
        let value = self.pipeline(dot, &branch.pipe)?;
        let scope = self.variables.len();
        let mut rounds = Rounds { branch, scope, any: false };
        match &value {
            Val::Int(_) | Val::Int64(_) | Val::Byte(_) => self.count(&value, &mut rounds)?,
            Val::List(list) => {
                let boxed = list.elem == Elem::Any;
                for (i, item) in list.items().iter().enumerate() {
                    let element = Reached { value: item.clone(), boxed };
                    if self.round(&mut rounds, index(i), &element)? == Flow::Break {
                        break;
                    }
                }
            }
            Val::Map(map) => {
                let boxed = map.elem == Elem::Any;
                // The iterations may change the map.
                self.limit(self.meter.entries(map.len()))?;
                for (key, value) in map.entries() {
                    let element = Reached { value, boxed };
                    if self.round(&mut rounds, Val::Str(key), &element)? == Flow::Break {
                        break;
                    }
                }
            }
            Val::Nil => {}
            other => {
                let text = self.check(print::sprintv(&self.meter, other))?;
                return self.error(format!("range can't iterate over {}", String::from_utf8_lossy(&text)));
            }
        }
        if rounds.any { Ok(Flow::On) } else { self.otherwise(dot, branch) }
    }

    /// A `range` over an integer: the numbers from 0.
    fn count(&mut self, value: &Val, rounds: &mut Rounds<'t>) -> Executed<()> {
        let number = value.integer().unwrap_or(0);
        if rounds.branch.pipe.variables.len() > 1 {
            return self.error(format!("can't use {number} to iterate over more than one variable"));
        }
        for i in 0..number {
            let i = match value {
                Val::Int64(_) => Val::Int64(i),
                Val::Byte(_) => Val::Byte(u8::try_from(i).unwrap_or(u8::MAX)),
                _ => Val::Int(i),
            };
            if self.round(rounds, Val::Nil, &i.into())? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// One iteration of a `range`.
    fn round(&mut self, rounds: &mut Rounds<'t>, key: Val, element: &Reached) -> Executed<Flow> {
        rounds.any = true;
        self.limit(self.meter.step())?;
        self.bind(&rounds.branch.pipe, key, element)?;
        let flow = self.list(element, &rounds.branch.list)?;
        self.variables.truncate(rounds.scope);
        Ok(flow)
    }

    /// Sets the variables of a `range` for one iteration.
    fn bind(&mut self, pipe: &'t Pipe, key: Val, element: &Reached) -> Executed<()> {
        let values = match pipe.variables.len() {
            0 => return Ok(()),
            1 => vec![element.clone()],
            _ => vec![key.into(), element.clone()],
        };
        let top = self.variables.len() - if pipe.assigns { 0 } else { values.len() };
        for (i, (name, value)) in pipe.variables.iter().zip(values).enumerate() {
            if pipe.assigns {
                self.assign(name, value)?;
            } else {
                self.variables[top + i].value = value;
            }
        }
        Ok(())
    }

    pub(super) fn assign(&mut self, name: &str, value: Reached) -> Executed<()> {
        match self.place(name)? {
            Some(at) => {
                self.variables[at].value = value;
                Ok(())
            }
            None => self.error(format!("undefined variable: {name}")),
        }
    }

    /// Index of the innermost variable of a name.
    pub(super) fn place(&self, name: &str) -> Executed<Option<usize>> {
        let at = self.variables.iter().rposition(|variable| variable.name == name);
        let passed = self.variables.len() - at.unwrap_or(0);
        self.limit(self.meter.read(passed))?;
        Ok(at)
    }

    fn template(&mut self, dot: &Reached, name: &'t str, pipe: Option<&'t Pipe>) -> Executed<()> {
        let Some((name, list)) = self.trees.get_key_value(name) else {
            return self.error(format!("template {} not defined", quoted(name)));
        };
        let dot: Reached = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?.into(),
            None => Val::Nil.into(),
        };
        // A template cannot access its caller's variables.
        let outside =
            std::mem::replace(&mut self.variables, vec![Variable { name: "$", value: dot.clone() }]);
        let caller = std::mem::replace(&mut self.template, name);
        self.list(&dot, list)?;
        self.variables = outside;
        self.template = caller;
        Ok(())
    }
}

fn index(i: usize) -> Val {
    Val::Int(i64::try_from(i).unwrap_or(i64::MAX))
}
