//! The steps that an expression could take, by the sizes of the values that it is asked about.
//!
//! A bound, not a measurement: the library that evaluates cannot be interrupted, so that what could take too long
//! is not begun.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;

use crate::limits::{MAX_CONDITIONALS, MAX_EXPRESSION_BYTES, MAX_EXPRESSION_DEPTH};

/// Characters that a call reads in one step.
const TEXT_A_STEP: u64 = 64;

/// The largest of the values that an expression is asked about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    /// Entries of a list or a map.
    pub(crate) entries: u64,
    /// Bytes of a text.
    pub(crate) text: u64,
}

impl Sizes {
    pub(crate) fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        let mut sizes = Self::default();
        values.for_each(|value| sizes.add(value));
        sizes
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text = self.text.max(text.len() as u64),
            Value::Array(items) => {
                self.entries = self.entries.max(items.len() as u64);
                items.iter().for_each(|item| self.add(item));
            }
            Value::Object(members) => {
                self.entries = self.entries.max(members.len() as u64);
                members.values().for_each(|value| self.add(value));
            }
            _ => {}
        }
    }
}

/// The calls for `a.b` and `has(a.b)` where `a` may be no object: the library takes both for false then. In the API server
/// the first is an error, and the second where `a` is a list.
pub(crate) const FIELD: &str = "@field";
pub(crate) const HAS_FIELD: &str = "@has";

/// Functions that make a list of a text.
const SPLITTERS: [&str; 3] = ["split", "findAll", "charAt"];

/// Functions whose result can be as long as the product of what they are given.
const GROWERS: [&str; 3] = ["replace", "join", "format"];

/// Functions that make lists of any length.
const UNBOUNDED: [&str; 2] = ["range", "lists.range"];

/// A bound for the steps of an expression; `None` where there is none.
pub(crate) fn bound(expression: &IdedExpr, sizes: Sizes) -> Option<u64> {
    let mut shape = Shape::default();
    shape.add(expression);
    if shape.is_unbounded {
        return None;
    }
    let mut entries = sizes.entries.max(shape.entries);
    if shape.splits {
        entries = entries.max(sizes.text);
    }
    let text = sizes.text.max(shape.text);
    let longest =
        (0..shape.growers).fold(text, |longest, _| longest.saturating_mul(text.max(entries).max(1)));
    Some(steps(expression, entries.max(1), 1 + longest / TEXT_A_STEP))
}

/// What an expression itself brings along.
#[derive(Default)]
struct Shape {
    entries: u64,
    text: u64,
    splits: bool,
    growers: u32,
    is_unbounded: bool,
}

impl Shape {
    fn add(&mut self, expression: &IdedExpr) {
        match &expression.expr {
            Expr::List(list) => self.entries = self.entries.max(list.elements.len() as u64),
            Expr::Map(map) => self.entries = self.entries.max(map.entries.len() as u64),
            Expr::Call(call) => {
                self.splits |= SPLITTERS.contains(&call.func_name.as_str());
                self.growers += u32::from(GROWERS.contains(&call.func_name.as_str()));
                self.is_unbounded |= UNBOUNDED.contains(&call.func_name.as_str());
            }
            Expr::Literal(LiteralValue::String(text)) => self.text = self.text.max(text.inner().len() as u64),
            _ => {}
        }
        for part in parts(expression) {
            self.add(part);
        }
    }
}

fn steps(expression: &IdedExpr, entries: u64, text: u64) -> u64 {
    let of = |part: &IdedExpr| steps(part, entries, text);
    match &expression.expr {
        Expr::Comprehension(loops) => {
            let round = of(&loops.loop_cond).saturating_add(of(&loops.loop_step));
            let before = of(&loops.iter_range).saturating_add(of(&loops.accu_init));
            before.saturating_add(of(&loops.result)).saturating_add(entries.saturating_mul(round))
        }
        Expr::Call(call) => {
            let own = if is_short(call) { 1 } else { text };
            parts(expression).into_iter().map(of).fold(own, u64::saturating_add)
        }
        _ => parts(expression).into_iter().map(of).fold(1, u64::saturating_add),
    }
}

/// Calls that read no text of an object.
const SHORT: [&str; 7] = [
    FIELD,
    HAS_FIELD,
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_NOT,
    operators::LOGICAL_OR,
    operators::NOT_STRICTLY_FALSE,
];

/// Whether a call reads no more than is in the expression itself, such as a name, or a text that it compares with.
fn is_short(call: &CallExpr) -> bool {
    let is_literal = |part: &IdedExpr| matches!(part.expr, Expr::Literal(_));
    let compares = [operators::EQUALS, operators::NOT_EQUALS].contains(&call.func_name.as_str());
    SHORT.contains(&call.func_name.as_str()) || (compares && call.args.iter().any(is_literal))
}

fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(loops) => {
            vec![&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(of) => of.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Why a text is not parsed: its parser recurses.
pub(crate) fn too_large(expression: &str) -> Option<String> {
    if expression.len() > MAX_EXPRESSION_BYTES {
        return Some(format!("the expression has more than {MAX_EXPRESSION_BYTES} bytes"));
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in expression.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_EXPRESSION_DEPTH {
        return Some(format!("the expression nests deeper than {MAX_EXPRESSION_DEPTH} brackets"));
    }
    (expression.matches('?').count() > MAX_CONDITIONALS)
        .then(|| format!("the expression has more than {MAX_CONDITIONALS} conditional operators"))
}
