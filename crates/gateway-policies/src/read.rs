//! A policy from its object, by its kind.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::kind::PolicyKind;
use crate::limits;
use crate::node::{GATEWAY_GROUP, NodeKey, ObjectKind};
use crate::object::{DecodeError, Metadata, part};
use crate::policy::{Block, Policy, PolicyId, Role, Strategy, Violation};

/// A reference to a target (GEP-713, `LocalPolicyTargetReferenceWithSectionName`).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetRef {
    group: Option<String>,
    kind: String,
    name: String,
    namespace: Option<String>,
    section_name: Option<String>,
}

/// Reads a policy. What it cannot read of `spec` is a violation; an error is an object without an identity.
pub fn read_policy(kind: &dyn PolicyKind, value: &Value) -> Result<Policy, DecodeError> {
    let metadata: Metadata = part(value, "metadata")?;
    if metadata.name.is_empty() {
        return Err(DecodeError::NoName);
    }
    let namespace: Arc<str> = metadata.namespace.as_deref().unwrap_or("default").into();
    let empty = Map::new();
    let spec = value.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let mut violations = Vec::new();
    let targets = targets(kind, &namespace, spec, &mut violations);
    let block = block(kind, spec, &mut violations);
    let id = PolicyId { kind: kind.name().into(), namespace, name: metadata.name.into() };
    let mut policy = Policy {
        id,
        created: metadata.creation_timestamp,
        generation: metadata.generation.unwrap_or_default(),
        is_deleting: metadata.deletion_timestamp.is_some(),
        targets,
        block,
        violations,
        warnings: kind.warnings(spec),
    };
    if policy.violations.is_empty() {
        policy.violations = kind.validate(&policy);
    }
    if !policy.violations.is_empty() {
        policy.block = None;
    }
    let positions = policy.targets.iter().filter(|target| target.is_position());
    let what = match kind.has_positions() {
        true => "is a position, which moves with the rules",
        false => "is the name of a rule here, not its position",
    };
    let positions = positions.map(|target| {
        let message = format!("{target} {what}; name the rule");
        Violation::new("spec.targetRef.sectionName", message)
    });
    policy.warnings.extend(positions.collect::<Vec<_>>());
    Ok(policy)
}

fn targets(
    kind: &dyn PolicyKind,
    namespace: &str,
    spec: &Map<String, Value>,
    violations: &mut Vec<Violation>,
) -> Vec<NodeKey> {
    let one = spec
        .get("targetRef")
        .filter(|target| !target.is_null())
        .map(|target| ("spec.targetRef".to_owned(), target));
    let many = spec.get("targetRefs").and_then(Value::as_array).into_iter().flatten();
    let many = many.enumerate().map(|(index, target)| (format!("spec.targetRefs[{index}]"), target));
    let references: Vec<(String, &Value)> = one.into_iter().chain(many).collect();
    if references.is_empty() {
        violations.push(Violation::new("spec.targetRef", "names no target"));
    }
    let limit = kind.max_targets();
    if references.len() > limit {
        let message = format!("has {} targets, more than {limit}", references.len());
        violations.push(Violation::new("spec.targetRefs", message));
    }
    let mut targets = Vec::new();
    for (field, reference) in references.iter().take(limit) {
        match target(kind, namespace, reference) {
            Ok(target) => targets.push(target),
            Err(message) => violations.push(Violation::new(field, message)),
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

fn target(kind: &dyn PolicyKind, namespace: &str, reference: &Value) -> Result<NodeKey, String> {
    let reference = TargetRef::deserialize(reference).map_err(|error| format!("cannot decode: {error}"))?;
    let group = reference.group.as_deref().unwrap_or(GATEWAY_GROUP);
    let refusal = || {
        let admitted: Vec<&str> = kind.targets().iter().map(|target| target.kind.name()).collect();
        let (own, other) = (kind.name(), &reference.kind);
        format!("{own} cannot target {group}/{other}; it can target {}", admitted.join(", "))
    };
    let node = ObjectKind::find(group, &reference.kind).ok_or_else(refusal)?;
    let admitted = kind.targets().iter().find(|target| target.kind == node).ok_or_else(refusal)?;
    // Kuadrant's and Envoy Gateway's policies target their own namespace only; so do these.
    if reference.namespace.as_deref().is_some_and(|other| !other.is_empty() && other != namespace) {
        return Err("targets another namespace; create the policy in the namespace of its target".to_owned());
    }
    let target = NodeKey::new(node, namespace, &reference.name);
    match reference.section_name.as_deref().filter(|section| !section.is_empty()) {
        None => Ok(target),
        Some(section) if admitted.has_sections => Ok(target.with_section(section)),
        Some(_) => Err(format!("{} cannot target a section of a {}", kind.name(), node.name())),
    }
}

/// The message of a violation by more than one block, which has the field `spec`.
pub const SEVERAL_BLOCKS: &str = "has more than one of rules, defaults and overrides; keep one of them";

/// The message of a violation by a block without rules, which has the field of the block.
pub const NO_RULE: &str = "has no rule, so the policy can never act";

/// The block in use: `defaults`, `overrides`, or bare rules, which are atomic defaults (Kuadrant, RFC 0009).
fn block(kind: &dyn PolicyKind, spec: &Map<String, Value>, violations: &mut Vec<Violation>) -> Option<Block> {
    let bare = Some(spec).filter(|spec| kind.rules(spec).map_or(true, |rules| !rules.is_empty()));
    let of = |field: &str| spec.get(field).filter(|block| !block.is_null());
    let blocks = [
        ("spec.defaults", of("defaults"), Role::Defaults),
        ("spec.overrides", of("overrides"), Role::Overrides),
    ];
    let count = blocks.iter().filter(|(_, block, _)| block.is_some()).count() + usize::from(bare.is_some());
    if count > 1 {
        violations.push(Violation::new("spec", SEVERAL_BLOCKS));
        return None;
    }
    let mut found = None;
    for (field, block, role) in blocks {
        let Some(block) = block else { continue };
        let Some(block) = block.as_object() else {
            violations.push(Violation::new(field, "has to be an object"));
            return None;
        };
        let strategy = strategy(kind, field, block, violations)?;
        found = Some((field, block, role, strategy));
    }
    let (field, block, role, strategy) = found.unwrap_or(("spec", spec, Role::Defaults, Strategy::Atomic));
    let rules = match kind.rules(block) {
        Ok(rules) => rules,
        Err(found) => {
            let found = found.into_iter();
            violations.extend(found.map(|own| Violation::new(format!("{field}.{}", own.field), own.message)));
            return None;
        }
    };
    if rules.len() > limits::RULES {
        let message = format!("has {} rules, more than {}; split the policy", rules.len(), limits::RULES);
        violations.push(Violation::new(field, message));
        return None;
    }
    if !rules.keys().any(|key| kind.is_rule(key)) {
        violations.push(Violation::new(field, NO_RULE));
        return None;
    }
    Some(Block { role, strategy, rules, conditions: kind.conditions(block) })
}

fn strategy(
    kind: &dyn PolicyKind,
    field: &str,
    block: &Map<String, Value>,
    violations: &mut Vec<Violation>,
) -> Option<Strategy> {
    let strategy = match block.get("strategy") {
        None | Some(Value::Null) => Some(Strategy::Atomic),
        Some(Value::String(name)) if name == "atomic" => Some(Strategy::Atomic),
        Some(Value::String(name)) if name == "merge" => Some(Strategy::Merge),
        Some(Value::String(name)) if name == "patch" => Some(Strategy::Patch),
        Some(_) => None,
    };
    let strategy = strategy.filter(|strategy| kind.strategies().contains(strategy));
    if strategy.is_none() {
        violations.push(Violation::new(format!("{field}.strategy"), "is none that the kind has"));
    }
    strategy
}
