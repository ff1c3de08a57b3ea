//! CEL expressions over objects without a schema, as the conditions of webhooks and of admission policies have them.
//!
//! The API server evaluates such expressions on values that have no types but those of JSON: a number without a point is an
//! int, and names of fields are as they are.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube_cel::cel;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;
use thiserror::Error;

use crate::cel::{CelFailure, Expression as Compiled, Types, functions};
use crate::cost::Sizes;
use crate::limits::MAX_STEPS;
use crate::syntax::{self, SyntaxError};

/// Levels of an expression.
const DEPTH: u16 = 96;

/// A compiled expression over some variables.
#[derive(Debug)]
pub struct Expression {
    compiled: Compiled,
    /// The names of the functions that it calls, without operators.
    functions: BTreeSet<String>,
}

/// Why a text is no expression that can be asked here.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// It is not CEL, or exceeds a limit.
    #[error("does not parse: {0}")]
    Syntax(#[from] SyntaxError),
    /// It cannot be evaluated here.
    #[error("{0}")]
    Unsupported(String),
    /// It has a variable that is not there.
    #[error("uses {name}; it may use {known}")]
    Variable {
        /// The variable.
        name: String,
        /// Those that are there.
        known: String,
    },
}

/// Why an expression has no value on an object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EvaluationError {
    /// It fails on these values, also in the API server.
    #[error("{0}")]
    OnValues(String),
    /// It cannot be evaluated here.
    #[error("{0}")]
    Unevaluated(String),
    /// It could take too many steps on these values.
    #[error("it could take more than {MAX_STEPS} steps on this object")]
    Steps,
}

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A boolean.
    Bool(bool),
    /// A text.
    Text(String),
    /// A time, in seconds since 1970.
    Time(i64),
    /// Something else, by its type.
    Other(&'static str),
}

impl Expression {
    /// Compiles an expression that may use these variables.
    ///
    /// # Errors
    /// The text is not CEL, exceeds a limit, uses another variable, or has what is not supported.
    pub fn compile(text: &str, variables: &[&str]) -> Result<Self, ExpressionError> {
        let tree = syntax::parse(text, DEPTH)?;
        let mut found = Found::default();
        found.add(&tree, &mut Vec::new());
        if let Some(name) = found.variables.iter().find(|name| !variables.contains(&name.as_str())) {
            return Err(ExpressionError::Variable { name: name.clone(), known: variables.join(", ") });
        }
        let compiled = Compiled::compile(text, Types::OfValues).map_err(ExpressionError::Unsupported)?;
        Ok(Self { compiled, functions: found.functions })
    }

    /// The names of the functions that it calls, without operators and macros.
    pub fn functions(&self) -> &BTreeSet<String> {
        &self.functions
    }

    /// What it comes to, with these values of variables.
    ///
    /// # Errors
    /// It fails on the values, cannot be evaluated, or could take too long.
    pub fn evaluate(&self, variables: &[(&str, &Value)]) -> Result<Outcome, EvaluationError> {
        let sizes = Sizes::of(variables.iter().map(|(_, value)| *value));
        if self.compiled.bound(sizes).is_none_or(|bound| bound > MAX_STEPS) {
            return Err(EvaluationError::Steps);
        }
        let mut context = functions();
        for (name, value) in variables {
            context.add_variable_from_value(*name, unstructured(value));
        }
        match self.compiled.evaluate(&context) {
            Ok(value) => Ok(outcome(&value)),
            Err(CelFailure::OnValues(why)) => Err(EvaluationError::OnValues(why)),
            Err(CelFailure::Unevaluated(why)) => Err(EvaluationError::Unevaluated(why)),
        }
    }
}

fn outcome(value: &cel::Value) -> Outcome {
    match value {
        cel::Value::Bool(value) => Outcome::Bool(*value),
        cel::Value::String(text) => Outcome::Text(text.to_string()),
        cel::Value::Timestamp(time) => Outcome::Time(time.timestamp()),
        cel::Value::Null => Outcome::Other("null"),
        cel::Value::Int(_) | cel::Value::UInt(_) => Outcome::Other("an int"),
        cel::Value::Float(_) => Outcome::Other("a double"),
        cel::Value::List(_) => Outcome::Other("a list"),
        cel::Value::Map(_) => Outcome::Other("a map"),
        _ => Outcome::Other("a value of another type"),
    }
}

/// A value of JSON as CEL has it without a schema.
fn unstructured(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => cel::Value::Int(integer),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(unstructured).collect())),
        Value::Object(members) => {
            let entry =
                |(name, value): (&String, &Value)| (Key::String(Arc::new(name.clone())), unstructured(value));
            let map: HashMap<Key, cel::Value> = members.iter().map(entry).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// What an expression uses.
#[derive(Default)]
struct Found {
    variables: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Found {
    /// `bound` are the variables of loops around it.
    fn add(&mut self, tree: &IdedExpr, bound: &mut Vec<String>) {
        match &tree.expr {
            Expr::Ident(name) => {
                if !bound.contains(name) {
                    self.variables.insert(name.trim_start_matches('.').to_owned());
                }
            }
            Expr::Call(call) => {
                // Operators have names such as `_+_`, and the parser's own begin with `@`.
                if call.func_name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    self.functions.insert(call.func_name.clone());
                }
                call.target.iter().for_each(|target| self.add(target, bound));
                call.args.iter().for_each(|argument| self.add(argument, bound));
            }
            Expr::Comprehension(repeated) => {
                self.add(&repeated.iter_range, bound);
                self.add(&repeated.accu_init, bound);
                let before = bound.len();
                bound.push(repeated.accu_var.clone());
                bound.push(repeated.iter_var.clone());
                bound.extend(repeated.iter_var2.clone());
                self.add(&repeated.loop_cond, bound);
                self.add(&repeated.loop_step, bound);
                self.add(&repeated.result, bound);
                bound.truncate(before);
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.add(element, bound)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Struct(of) => of.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Select(select) => self.add(&select.operand, bound),
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &EntryExpr, bound: &mut Vec<String>) {
        match entry {
            EntryExpr::StructField(field) => self.add(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.add(&entry.key, bound);
                self.add(&entry.value, bound);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("oldObject.status.replicas > 2", Ok(Outcome::Bool(true)))]
    #[case("oldObject.status['a-b'] + 'c'", Ok(Outcome::Text("xc".to_owned())))]
    #[case("has(oldObject.status.none)", Ok(Outcome::Bool(false)))]
    #[case(
        "oldObject.status.list.exists(c, c.type == 'Ready' && c.status == 'True')",
        Ok(Outcome::Bool(true))
    )]
    #[case("timestamp(oldObject.status.since)", Ok(Outcome::Time(1_767_225_600)))]
    #[case("string(oldObject.status.replicas) == '3'", Ok(Outcome::Bool(true)))]
    #[case("oldObject.status.none > 2", Err("there is no key none"))]
    #[case("has(oldObject.status.since.of)", Ok(Outcome::Bool(false)))]
    #[case("has(oldObject.status.list.of)", Err("a field is asked of a value that is no object"))]
    #[case("oldObject.status.since.of == 5", Err("a field is asked of a value that is no object"))]
    #[case("oldObject.status.list.type == 'Ready'", Err("a field is asked of a value that is no object"))]
    fn an_expression_is_evaluated_without_a_schema(
        #[case] text: &str,
        #[case] wanted: Result<Outcome, &str>,
    ) {
        let object = json!({"status": {
            "replicas": 3, "a-b": "x", "list": [{"type": "Ready", "status": "True"}], "since": "2026-01-01T00:00:00Z",
        }});
        let expression = Expression::compile(text, &["oldObject"]).unwrap();
        let found = expression.evaluate(&[("oldObject", &object)]);
        assert_eq!(found.map_err(|error| error.to_string()), wanted.map_err(str::to_owned));
    }

    #[test]
    fn what_an_expression_uses_is_known() {
        let compile = |text| Expression::compile(text, &["oldObject"]);
        let error = compile("object.spec == oldObject.spec").unwrap_err();
        assert_eq!(error.to_string(), "uses object; it may use oldObject");
        assert!(compile("oldObject.a.all(x, x > 0 && oldObject.b.exists(y, y == x))").is_ok());
        let found = compile("size(oldObject.a) > 1 && oldObject.b.startsWith('c')").unwrap();
        assert_eq!(found.functions().iter().collect::<Vec<_>>(), ["size", "startsWith"]);
    }
}
