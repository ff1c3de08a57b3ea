//! What of a policy can be said from its object alone.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{NO_RULE, SEVERAL_BLOCKS, Violation, read_policy};
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::violations::Violations;
use interlock_core::api::resource::Resource;
use interlock_core::api::rule::Rule;
use serde_json::Value;

use super::ids::{POLICY_BLOCKS, POLICY_EXPRESSION, POLICY_TARGET};
use super::write::Write;
use crate::policies::checks::{self, MOST, NeverActs};
use crate::policies::dialect::Verdict;
use crate::policies::expressions::{ExpressionFinding, expressions};
use crate::policies::known::KNOWN;
use crate::policies::labels::Labels;
use crate::policies::survey::group_and_kind;

/// Adds what can never act, and returns what is only warned of. What the object had before stays, with a warning.
/// `by_envoy` says whether limits are evaluated by Envoy itself.
pub(super) fn judge(
    resource: &Resource,
    write: &Write,
    violations: &Violations<'_>,
    by_envoy: bool,
) -> Vec<String> {
    let judged = |object: &Value| judged(object, by_envoy);
    let Some((refused, warned)) = write.new.as_ref().and_then(judged) else { return Vec::new() };
    // A field moves when one before it is removed: what matters is what it says, and how often.
    let mut before: BTreeMap<(Rule, String), usize> = BTreeMap::new();
    for own in write.old.as_ref().and_then(judged).map(|(refused, _)| refused).unwrap_or_default() {
        *before.entry((own.rule, own.value)).or_default() += 1;
    }
    let mut is_known = |own: &NeverActs| {
        let left = before.get_mut(&(own.rule, own.value.clone())).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let (mut known, mut new): (Vec<NeverActs>, Vec<NeverActs>) =
        refused.into_iter().partition(|own| is_known(own));
    known.truncate(MOST);
    new.truncate(MOST);
    let mut warnings: Vec<String> =
        known.iter().map(|own| format!("{}: {}: {}", own.field, own.value, own.sentence)).collect();
    new.sort_by_key(|own| own.rule);
    for same in new.chunk_by(|one, other| one.rule == other.rule) {
        denial(resource, same).into_iter().for_each(|denial| violations.push(denial));
    }
    warnings.extend(warned.iter().map(Violation::to_string));
    warnings
}

/// One denial for all violations of a rule.
fn denial(resource: &Resource, all: &[NeverActs]) -> Option<Denial> {
    let first = all.first()?;
    let fields = all.iter().map(|own| ViolationField::new(&own.field, FieldReason::Invalid, &own.value));
    let remedy = format!("{} (`kubectl explain {}.spec` prints the fields)", first.remedy, resource.plural);
    Some(Denial::invalid(first.rule, &first.sentence, fields.collect()).next(remedy))
}

/// What can never act, and what is only warned of; none where the object is no policy.
fn judged(object: &Value, by_envoy: bool) -> Option<(Vec<NeverActs>, Vec<Violation>)> {
    let (group, kind) = group_and_kind(object);
    let name = KNOWN.name_of(group, kind)?;
    let own = KNOWN.get(name)?;
    let indexed = KNOWN.read(name, object, &Labels::default())?.object?;
    let policy = read_policy(own.kind.as_ref(), &indexed).ok()?;
    let (mut refused, mut warned) = (Vec::new(), policy.violations);
    if own.is_understood {
        let spec = object["spec"].as_object();
        refused.extend(spec.map(checks::limits).unwrap_or_default().refused);
        let (found, rest): (Vec<Violation>, Vec<Violation>) =
            warned.into_iter().partition(|own| rule_of(own).is_some());
        refused.extend(found.into_iter().filter_map(|own| never_acts(object, own)));
        warned = rest;
        let is_said = |own: &ExpressionFinding| by_envoy || own.is_said();
        let said = expressions(name, &object["spec"]).into_iter().filter(is_said);
        for ExpressionFinding { field, verdict, .. } in said {
            match verdict {
                // A reserved name is refused as such already.
                _ if refused.iter().any(|own: &NeverActs| own.field == field) => {}
                Verdict::Refused(text) => refused.push(NeverActs {
                    rule: POLICY_EXPRESSION,
                    limit: String::new(),
                    sentence: "an expression can never be evaluated".to_owned(),
                    field,
                    value: text,
                    remedy: "correct the expression".to_owned(),
                }),
                Verdict::Unsupported(text) => warned.push(Violation::new(field, text)),
                Verdict::Right => {}
            }
        }
    }
    let known: BTreeSet<&str> = refused.iter().map(|own| own.field.as_str()).collect();
    let others = policy.warnings.into_iter().filter(|own| !known.contains(own.field.as_str()));
    warned.extend(others);
    Some((refused, warned))
}

fn rule_of(violation: &Violation) -> Option<Rule> {
    match violation.message.as_str() {
        SEVERAL_BLOCKS | NO_RULE => Some(POLICY_BLOCKS),
        _ => violation.field.starts_with("spec.targetRef").then_some(POLICY_TARGET),
    }
}

fn never_acts(object: &Value, violation: Violation) -> Option<NeverActs> {
    let rule = rule_of(&violation)?;
    let spec = &object["spec"];
    let (value, remedy) = if violation.message == NO_RULE {
        ("no rule".to_owned(), "write a rule, such as a limit")
    } else if rule == POLICY_BLOCKS {
        let of_bare = |field: &&String| !["targetRef", "targetRefs", "when"].contains(&field.as_str());
        let blocks = spec.as_object().into_iter().flatten().map(|(field, _)| field).filter(of_bare);
        let blocks: Vec<&str> = blocks.map(String::as_str).collect();
        (blocks.join(", "), "keep one of them, or write a second policy")
    } else {
        let target = &spec["targetRef"];
        let text = |field: &str| target[field].as_str().unwrap_or_default();
        (
            format!("{}/{}", text("kind"), text("name")),
            "let it target a Gateway or a route of its own namespace, or a section of one",
        )
    };
    Some(NeverActs {
        rule,
        limit: String::new(),
        sentence: violation.message,
        field: violation.field,
        value,
        remedy: remedy.into(),
    })
}
