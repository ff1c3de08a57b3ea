//! Patch strategies are JSON Merge Patches of rules.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::{
    NodeKey, ObjectKind, Policy, PolicyKind, Rules, Strategy as Merging, TargetKind, Violation, assemble,
    fields_under, fold, read_policy,
};

struct TimeoutPolicy;

impl PolicyKind for TimeoutPolicy {
    fn name(&self) -> &str {
        "TimeoutPolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn targets(&self) -> &[TargetKind] {
        const { &[TargetKind::whole(ObjectKind::Gateway)] }
    }

    fn strategies(&self) -> &[Merging] {
        &[Merging::Atomic, Merging::Patch]
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        fields_under(block, "rules")
    }
}

fn policy(name: &str, role: &str, rules: &Value) -> Policy {
    let target = json!({"kind": "Gateway", "name": "gw"});
    let object = json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"targetRef": target, role: {"strategy": "patch", "rules": rules}},
    });
    let policy = read_policy(&TimeoutPolicy, &object).unwrap();
    assert_eq!(policy.targets, [NodeKey::new(ObjectKind::Gateway, "shop", "gw")]);
    policy
}

fn patched(policies: &[Policy]) -> Value {
    let policies: Vec<&Policy> = policies.iter().collect();
    assemble(&fold(&policies, &|_| true).rules)
}

#[rstest]
#[case::fields_of_both(
    json!({"request": {"total": 10, "idle": 1}}), json!({"request": {"total": 60}}),
    json!({"request": {"total": 60, "idle": 1}}), json!({"request": {"total": 10, "idle": 1}}),
)]
#[case::null_removes(
    json!({"request": {"total": 10, "idle": 1}}), json!({"request": {"idle": null}}),
    json!({"request": {"total": 10}}), json!({"request": {"total": 10, "idle": 1}}),
)]
#[case::a_list_is_whole(json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]}), json!({"a": [1, 2]}))]
#[case::a_value_for_an_object(json!({"a": {"b": 1}}), json!({"a": 2}), json!({"a": 2}), json!({"a": {"b": 1}}))]
#[case::an_empty_object(json!({"a": {"b": 1}}), json!({"a": {}}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}))]
#[case::names_with_slashes(
    json!({"a/b": {"c~": 1}}), json!({"a": {"b": 2}}),
    json!({"a/b": {"c~": 1}, "a": {"b": 2}}), json!({"a/b": {"c~": 1}, "a": {"b": 2}}),
)]
fn policies_are_patched(
    #[case] upper: Value,
    #[case] lower: Value,
    #[case] by_defaults: Value,
    #[case] by_overrides: Value,
) {
    let lower = policy("lower", "defaults", &lower);
    assert_eq!(patched(&[policy("upper", "defaults", &upper), lower.clone()]), by_defaults);
    assert_eq!(patched(&[policy("upper", "overrides", &upper), lower]), by_overrides);
}

#[test]
fn each_field_has_its_source() {
    let upper = policy("upper", "defaults", &json!({"request": {"total": 10, "idle": 1}}));
    let lower = policy("lower", "defaults", &json!({"request": {"total": 60}}));
    let effective = fold(&[&upper, &lower], &|_| true);
    let sources: Vec<(&str, &str)> =
        effective.rules.iter().map(|(key, rule)| (key.as_ref(), rule.source.name.as_ref())).collect();
    assert_eq!(sources, [("request/idle", "upper"), ("request/total", "lower")]);
    assert_eq!(effective.replaced.len(), 1);
}

/// RFC 7386, section 2.
fn merge_patch(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut target = if let Value::Object(target) = target { target } else { Map::new() };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            let old = target.remove(name).unwrap_or(Value::Null);
            target.insert(name.clone(), merge_patch(old, value));
        }
    }
    Value::Object(target)
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), Just(json!([1]))];
    let value = leaf.prop_recursive(3, 16, 3, |inner| {
        prop::collection::btree_map("[ab/~]", inner, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    });
    prop::collection::btree_map("[ab/~]", value, 1..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Neither empty objects, which have no field, nor nulls in the target, which a merge patch never leaves.
fn plain(value: &Value) -> Value {
    merge_patch(json!({}), value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn patch_is_a_merge_patch(upper in document(), lower in document()) {
        let upper = plain(&upper);
        prop_assume!(upper.as_object().is_some_and(|rules| !rules.is_empty()));
        let found = patched(&[policy("upper", "defaults", &upper), policy("lower", "defaults", &lower)]);
        prop_assert_eq!(found, merge_patch(upper, &lower));
    }
}
