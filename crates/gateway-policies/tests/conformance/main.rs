//! Runs the conformance kit (README.md in this folder) with this crate.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{
    Condition, Delivery, EffectivePolicy, Index, ObjectKey, ObjectKind, PolicyClass, PolicyKind, Rules,
    Subject, TargetKind, Violation, ancestor_statuses, conditions, limits, rules_under,
};
use rstest::rstest;
use serde_json::{Map, Value, json};

/// InheritedPolicy and DirectPolicy of the kit.
struct Kind {
    name: &'static str,
    class: PolicyClass,
    targets: Vec<TargetKind>,
}

impl PolicyKind for Kind {
    fn name(&self) -> &str {
        self.name
    }

    fn group(&self) -> &str {
        "policies.example.org"
    }

    fn class(&self) -> PolicyClass {
        self.class
    }

    fn targets(&self) -> &[TargetKind] {
        &self.targets
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "rules")
    }
}

fn index() -> Index {
    let inherited = ObjectKind::ALL.into_iter().filter(|kind| *kind != ObjectKind::Service);
    let inherited = inherited.map(TargetKind::with_sections).collect();
    let direct = ObjectKind::ALL.into_iter().map(TargetKind::with_sections).collect();
    let kinds: [Arc<dyn PolicyKind>; 2] = [
        Arc::new(Kind { name: "InheritedPolicy", class: PolicyClass::Inherited, targets: inherited }),
        Arc::new(Kind { name: "DirectPolicy", class: PolicyClass::Direct, targets: direct }),
    ];
    Index::new(kinds).with_controllers(["example.org/ours".to_owned()])
}

#[rstest]
#[case::attachment(include_str!("cases/attachment.json"), 35)]
#[case::conditions(include_str!("cases/conditions.json"), 12)]
#[case::conflicts(include_str!("cases/conflicts.json"), 25)]
#[case::events(include_str!("cases/events.json"), 8)]
#[case::merge(include_str!("cases/merge.json"), 37)]
#[case::precedence(include_str!("cases/precedence.json"), 13)]
#[case::sections(include_str!("cases/sections.json"), 8)]
fn conforms(#[case] file: &str, #[case] count: usize) {
    let file: Value = serde_json::from_str(file).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), count);
    let mut wrong = Vec::new();
    for case in cases {
        let mut index = index();
        for object in list(&file, "objects").iter().chain(list(case, "objects")) {
            index.observe(object).unwrap();
        }
        let name = case["name"].as_str().unwrap();
        compare(&index, &case["expect"], name, &mut wrong);
        for (number, step) in list(case, "then").iter().enumerate() {
            for object in list(step, "apply") {
                index.observe(object).unwrap();
            }
            for object in list(step, "delete") {
                index.forget(object).unwrap();
            }
            compare(&index, &step["expect"], &format!("{name}, step {}", number + 1), &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Compares what a case expects; what it does not name is not looked at.
fn compare(index: &Index, expect: &Value, name: &str, wrong: &mut Vec<String>) {
    for (field, expected) in expect.as_object().unwrap() {
        let found = match field.as_str() {
            "paths" => paths(index),
            "refused" => refused(index),
            "faults" => faults(index),
            "effective" => effective(index, expected),
            "direct" => direct(index, expected),
            "policies" => policies(index, expected),
            other => panic!("{name}: the kit has no field {other}"),
        };
        let expected = if expected.is_array() { sorted(expected) } else { expected.clone() };
        if found != expected {
            wrong.push(format!("{name}: {field}\n  expected {expected}\n  found    {found}"));
        }
    }
}

fn sorted(list: &Value) -> Value {
    let mut list = list.as_array().unwrap().clone();
    list.sort_by_key(Value::to_string);
    Value::Array(list)
}

fn paths(index: &Index) -> Value {
    sorted(&index.paths().map(|path| json!(path.to_string())).collect())
}

fn refused(index: &Index) -> Value {
    let of_route = index.routes().flat_map(|(route, links)| {
        links.refused.iter().map(
            move |own| json!({"route": route.to_string(), "parent": own.parent, "reason": own.reason.name()}),
        )
    });
    sorted(&of_route.collect())
}

fn faults(index: &Index) -> Value {
    let name = |subject: &Subject| match subject {
        Subject::Object(ObjectKey::Node(node)) => node.to_string(),
        Subject::Object(ObjectKey::Grant(namespace, name)) => format!("ReferenceGrant/{namespace}/{name}"),
        Subject::Object(ObjectKey::Namespace(name)) => format!("Namespace/{name}"),
        Subject::Policy(id) => id.to_string(),
    };
    sorted(&index.faults().keys().map(|subject| json!(name(subject))).collect())
}

fn effective(index: &Index, expected: &Value) -> Value {
    let of_path = |(name, wanted): (&String, &Value)| {
        let path = index.paths().find(|path| path.to_string() == *name);
        let path = path.unwrap_or_else(|| panic!("no path {name}; there are: {}", paths(index)));
        let own = index.effective("InheritedPolicy", path).map(AsRef::as_ref);
        (name.clone(), of_kind("InheritedPolicy", own, wanted))
    };
    Value::Object(expected.as_object().unwrap().iter().map(of_path).collect())
}

fn direct(index: &Index, expected: &Value) -> Value {
    let of_target = |(name, wanted): (&String, &Value)| {
        let targets = index.policies().flat_map(|policy| &policy.targets);
        let target = targets.into_iter().find(|target| target.to_string() == *name);
        let own = target.and_then(|target| index.direct("DirectPolicy", target));
        (name.clone(), of_kind("DirectPolicy", own, wanted))
    };
    Value::Object(expected.as_object().unwrap().iter().map(of_target).collect())
}

/// The effective policy by its kind, with the fields that are wanted.
fn of_kind(kind: &str, effective: Option<&EffectivePolicy>, wanted: &Value) -> Value {
    let Some(effective) = effective else { return json!({}) };
    for rule in effective.rules.values() {
        assert_eq!(rule.value["from"], *rule.source.name, "the rule is that of its source");
    }
    let rules: BTreeMap<String, String> =
        effective.rules.iter().map(|(key, rule)| (key.to_string(), rule.source.qualified_name())).collect();
    let mut found = json!({"rules": rules});
    if wanted[kind].get("replaced").is_some() {
        let mut replaced: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for own in &effective.replaced {
            let by = own.by.iter().map(gateway_policies::PolicyId::qualified_name).collect();
            replaced.entry(own.policy.qualified_name()).or_default().insert(own.rule.to_string(), by);
        }
        found["replaced"] = json!(replaced);
    }
    if wanted[kind].get("unreadable").is_some() {
        let unreadable: Vec<String> =
            effective.unreadable.iter().map(gateway_policies::PolicyId::qualified_name).collect();
        found["unreadable"] = json!(unreadable);
    }
    json!({kind: found})
}

fn policies(index: &Index, expected: &Value) -> Value {
    let of_policy = |(name, wanted): (&String, &Value)| {
        let policy = index.policies().find(|policy| policy.id.to_string() == *name).unwrap();
        let state = index.state(&policy.id).unwrap();
        let delivered = |_: &gateway_policies::NodeKey| Delivery::Delivered;
        let flat = conditions(state, &delivered);
        let mut found = Map::new();
        let wanted: BTreeSet<&str> = wanted.as_object().unwrap().keys().map(String::as_str).collect();
        if wanted.contains("conditions") {
            found.insert("conditions".to_owned(), json!(flat.iter().map(short).collect::<Vec<_>>()));
        }
        if wanted.contains("messages") {
            let messages: Vec<&String> = flat.iter().map(|condition| &condition.message).collect();
            found.insert("messages".to_owned(), json!(messages));
        }
        if wanted.contains("ancestors") {
            let of = |own: gateway_policies::AncestorStatus| {
                (own.ancestor.to_string(), json!(own.conditions.iter().map(short).collect::<Vec<_>>()))
            };
            let ancestors: Map<String, Value> =
                ancestor_statuses(state, &delivered, limits::ANCESTORS).into_iter().map(of).collect();
            found.insert("ancestors".to_owned(), Value::Object(ancestors));
        }
        (name.clone(), Value::Object(found))
    };
    Value::Object(expected.as_object().unwrap().iter().map(of_policy).collect())
}

fn short(condition: &Condition) -> String {
    let status = if condition.is_true { "True" } else { "False" };
    format!("{}={status}/{}", condition.kind, condition.reason)
}
