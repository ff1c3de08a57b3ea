//! The expressions that say that an object is busy.

use crd_schema::expression::{EvaluationError, Expression, ExpressionError, Outcome};
use serde_json::Value;
use thiserror::Error;

use crate::api::BusyWhen;

/// The only variable: what is live, not what is to come.
const OLD_OBJECT: &str = "oldObject";
/// Functions whose cost grows faster than their input, or whose result does.
const REFUSED: [&str; 6] = ["matches", "find", "findAll", "replace", "format", "join"];

/// Compiled conditions.
#[derive(Debug, Default)]
pub struct BusyRules(Vec<BusyRule>);

#[derive(Debug)]
struct BusyRule {
    name: String,
    expression: Expression,
    message: Message,
    since: Option<Expression>,
}

#[derive(Debug)]
enum Message {
    Text(String),
    Expression(Expression),
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Its name.
    pub name: String,
    /// What it says.
    pub message: String,
    /// Since when, in seconds since 1970, where it says so.
    pub since: Option<i64>,
}

/// A condition that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("busyWhen[{index}].{field} {problem}")]
pub struct BusyError {
    /// Its position.
    pub index: usize,
    /// The field.
    pub field: &'static str,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// A condition that fails on an object, which is not busy by it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} cannot be evaluated: {source}")]
pub struct BusyFailure {
    /// Its name.
    pub name: String,
    /// Why.
    pub source: EvaluationError,
}

/// What the conditions come to on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that hold.
    pub busy: Vec<Busy>,
    /// Those that fail.
    pub failures: Vec<BusyFailure>,
}

impl BusyRules {
    /// Compiles conditions.
    ///
    /// # Errors
    /// One of them is not CEL, uses another variable than `oldObject`, or a function that is not bounded.
    pub fn compile(conditions: &[BusyWhen]) -> Result<Self, Vec<BusyError>> {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (index, condition) in conditions.iter().enumerate() {
            match rule(index, condition) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self(rules)) } else { Err(errors) }
    }

    /// Which of them hold for an object.
    pub fn found(&self, object: &Value) -> Found {
        let mut found = Found::default();
        for rule in &self.0 {
            match rule.holds(object) {
                Ok(true) => found.busy.push(rule.busy(object)),
                Ok(false) => {}
                Err(source) => found.failures.push(BusyFailure { name: rule.name.clone(), source }),
            }
        }
        found
    }
}

fn rule(index: usize, condition: &BusyWhen) -> Result<BusyRule, BusyError> {
    let compile = |field: &'static str, text: &str| {
        let error = |problem: String| BusyError { index, field, problem };
        let expression = Expression::compile(text, &[OLD_OBJECT])
            .map_err(|own: ExpressionError| error(own.to_string()))?;
        match REFUSED.iter().find(|name| expression.functions().contains(**name)) {
            Some(name) => {
                Err(error(format!("uses {name}(); compare values, or use startsWith() and size()")))
            }
            None => Ok(expression),
        }
    };
    let message = match (&condition.message, &condition.message_expression) {
        (_, Some(text)) => Message::Expression(compile("messageExpression", text)?),
        (Some(text), None) => Message::Text(text.clone()),
        (None, None) => {
            let problem = "is absent; say in message why the object is busy".to_owned();
            return Err(BusyError { index, field: "message", problem });
        }
    };
    let since = condition.since.as_ref().map(|text| compile("since", text)).transpose()?;
    let expression = compile("expression", &condition.expression)?;
    Ok(BusyRule { name: condition.name.clone(), expression, message, since })
}

impl BusyRule {
    fn holds(&self, object: &Value) -> Result<bool, EvaluationError> {
        match self.expression.evaluate(&[(OLD_OBJECT, object)])? {
            Outcome::Bool(holds) => Ok(holds),
            other => Err(EvaluationError::OnValues(format!("it comes to {other:?}, and has to be a bool"))),
        }
    }

    fn busy(&self, object: &Value) -> Busy {
        let value = |expression: &Expression| expression.evaluate(&[(OLD_OBJECT, object)]).ok();
        let message = match &self.message {
            Message::Text(text) => Some(text.clone()),
            Message::Expression(expression) => match value(expression) {
                Some(Outcome::Text(text)) => Some(text),
                _ => None,
            },
        };
        let since = match self.since.as_ref().and_then(value) {
            Some(Outcome::Time(since)) => Some(since),
            _ => None,
        };
        Busy { name: self.name.clone(), message: message.unwrap_or_else(|| self.name.clone()), since }
    }
}
