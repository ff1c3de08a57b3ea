//! The rules of `x-kubernetes-validations`.

use kube_cel::cel;
use kube_cel::cel::objects::OptionalValue;
use serde_json::Value;
use std::sync::Arc;

use crate::cel::{CelFailure, Expression, Types, as_message, functions};
use crate::conversion::{aligned, to_cel};
use crate::correlation::{Correlated, OldItems};
use crate::cost::Sizes;
use crate::field_error::{ErrorKind, FieldErrors, Path};
use crate::limits::{MAX_OBJECT_STEPS, MAX_STEPS};
use crate::schema::{CelRule, StructuralSchema};

/// Characters of a rule in a message.
const SHOWN: usize = 120;

/// Whether a schema has rules anywhere.
pub(crate) fn has_rules(schema: &StructuralSchema) -> bool {
    !schema.rules.is_empty()
        || schema.properties.values().any(has_rules)
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.values().is_some_and(has_rules)
}

/// Collects the violations of the rules about an object and all in it.
pub(crate) fn check(object: Correlated<'_>, schema: &StructuralSchema, findings: &mut FieldErrors) {
    if !has_rules(schema) {
        return;
    }
    let functions = functions();
    let mut walk = Walk { functions: &functions, findings, steps: 0 };
    walk.node(object, schema, &Path::default(), true);
}

struct Walk<'f> {
    functions: &'f cel::Context<'f>,
    findings: &'f mut FieldErrors,
    /// Steps of all expressions so far, by their bounds.
    steps: u64,
}

/// The variables of the rules of one value.
struct Variables<'c> {
    /// With `self`.
    context: cel::Context<'c>,
    old: Option<cel::Value>,
    sizes: Sizes,
}

impl Walk<'_> {
    fn node(&mut self, node: Correlated<'_>, schema: &StructuralSchema, path: &Path, is_resource: bool) {
        if node.value.is_null() {
            return;
        }
        self.rules(node, schema, path, is_resource);
        match node.value {
            Value::Object(members) => {
                for (key, value) in members {
                    let Some((below, is_map)) = schema.of_key(key) else { continue };
                    let path = if is_map { path.map_key(key) } else { path.key(key) };
                    self.node(node.key(schema, key, value), below, &path, below.embedded_resource);
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items.as_deref() else { return };
                let old = OldItems::of(node.old, schema);
                for (i, item) in items.iter().enumerate() {
                    let node = node.below(item, old.of_item(item));
                    self.node(node, below, &path.index(i), below.embedded_resource);
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, node: Correlated<'_>, schema: &StructuralSchema, path: &Path, is_resource: bool) {
        if schema.rules.is_empty() {
            return;
        }
        let old = node.old.filter(|old| !old.is_null());
        let functions = self.functions;
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", to_cel(node.value, Some(schema), is_resource));
        let variables = Variables {
            context,
            old: old.map(|old| to_cel(&aligned(old, node.value, schema), Some(schema), is_resource)),
            sizes: Sizes::of(std::iter::once(node.value).chain(old)),
        };
        for rule in &schema.rules {
            match rule.compiled() {
                Ok(expression) => {
                    // A violation that was there before stays, unless the rule is about the change.
                    let is_kept = node.is_unchanged && !expression.uses_old_self;
                    let has_no_old = expression.uses_old_self && old.is_none() && !rule.optional_old_self;
                    if !is_kept && !has_no_old {
                        self.rule(rule, expression, &variables, path);
                    }
                }
                Err(reason) => self.findings.unevaluated(path, &shown(&rule.rule), reason.clone()),
            }
        }
    }

    fn rule(&mut self, rule: &CelRule, expression: &Expression, variables: &Variables<'_>, path: &Path) {
        let bound = expression.bound(variables.sizes).filter(|bound| *bound <= MAX_STEPS);
        let Some(bound) = bound.filter(|bound| self.steps + bound <= MAX_OBJECT_STEPS) else {
            let reason = "on these values it could take more steps than its budget";
            return self.findings.unevaluated(path, &shown(&rule.rule), reason);
        };
        self.steps += bound;
        let mut context = variables.context.new_inner_scope();
        match (rule.optional_old_self, &variables.old) {
            (true, old) => {
                let old = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                context.add_variable_from_value("oldSelf", cel::Value::Opaque(Arc::new(old)));
            }
            (false, Some(old)) => context.add_variable_from_value("oldSelf", old.clone()),
            (false, None) => {}
        }
        let at = field(path, rule);
        match expression.evaluate(&context) {
            Ok(cel::Value::Bool(true)) => {}
            Ok(cel::Value::Bool(false)) => {
                let message = message(rule, &context);
                self.findings.add(&at, kind(rule), message);
            }
            Ok(_) => self.findings.unevaluated(path, &shown(&rule.rule), "its value is no boolean offline"),
            Err(CelFailure::OnValues(why)) => {
                let message = format!("the rule {} fails, as {why}: correct the value", shown(&rule.rule));
                self.findings.add(&at, ErrorKind::Rule, message);
            }
            Err(CelFailure::Unevaluated(why)) => self.findings.unevaluated(path, &shown(&rule.rule), why),
        }
    }
}

fn kind(rule: &CelRule) -> ErrorKind {
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => ErrorKind::Forbidden,
        Some("FieldValueRequired") => ErrorKind::Required,
        Some("FieldValueDuplicate") => ErrorKind::Duplicate,
        _ => ErrorKind::Rule,
    }
}

fn message(rule: &CelRule, context: &cel::Context<'_>) -> String {
    let made = rule.message_expression.as_deref().and_then(|text| {
        let value = Expression::compile(text, Types::OfSchema).ok()?.evaluate(context).ok()?;
        Some(as_message(&value)?.trim().to_owned())
    });
    let given = rule.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    made.or_else(|| given.map(str::to_owned))
        .unwrap_or_else(|| format!("violates the rule {}", shown(&rule.rule)))
}

/// The field that a rule names, below the value that it is about: `.a.b`, `.a['b']`.
fn field(path: &Path, rule: &CelRule) -> Path {
    let mut at = path.clone();
    let mut rest = rule.field_path.as_deref().unwrap_or_default();
    while let Some(next) = rest.strip_prefix(['.', '[']) {
        let is_bracket = rest.starts_with('[');
        let end = if is_bracket { next.find(']') } else { next.find(['.', '[']) }.unwrap_or(next.len());
        let name = next[..end].trim_matches(['\'', '"']);
        at = if is_bracket { at.map_key(name) } else { at.key(name) };
        rest = &next[end..];
        rest = rest.strip_prefix(']').filter(|_| is_bracket).unwrap_or(rest);
    }
    at
}

/// The start of a rule, on one line.
fn shown(rule: &str) -> String {
    let line = rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = line.chars().take(SHOWN).collect();
    if start.len() < line.len() { format!("{start}...") } else { start }
}
