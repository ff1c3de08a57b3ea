//! Each bound has its stated outcome.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::difference::Certificate;
use super::{gateway, index, object, policy, route};
use crate::{
    Index, NodeKey, ObjectKind, PolicyId, PolicyKind, RefusalReason, TargetState, conditions, limits,
};

fn many(count: usize, entry: &Value) -> Value {
    Value::Array(vec![entry.clone(); count])
}

#[rstest]
#[case::listeners(gateway(limits::LISTENERS + 1), "spec.listeners has 129 entries, more than 128")]
#[case::parents(
    object("HTTPRoute", "api", json!({"parentRefs": many(limits::PARENT_REFS + 1, &json!({"name": "gw"}))})),
    "spec.parentRefs has 65 entries, more than 64"
)]
#[case::hostnames(
    object("HTTPRoute", "api", json!({"hostnames": many(limits::HOSTNAMES + 1, &json!("a.example.com"))})),
    "spec.hostnames has 65 entries, more than 64"
)]
#[case::rules(route(limits::ROUTE_RULES + 1), "spec.rules has 65 entries, more than 64")]
#[case::backends(
    object("HTTPRoute", "api", json!({"rules": [{"backendRefs": many(limits::BACKEND_REFS + 1, &json!({"name": "v"}))}]})),
    "spec.rules[].backendRefs has 65 entries, more than 64"
)]
#[case::grants(
    object("ReferenceGrant", "api", json!({"to": many(limits::GRANT_ENTRIES + 1, &json!({"kind": "Service"}))})),
    "spec.to has 65 entries, more than 64"
)]
fn an_object_over_a_bound_keeps_its_last_version(#[case] object: Value, #[case] fault: &str) {
    let mut index = index(&[gateway(2), route(2)]);
    let before: Vec<_> = index.paths().cloned().collect();
    assert_eq!(before.len(), 4);
    let changes = index.observe(&object).unwrap();
    assert!(changes.is_empty());
    assert_eq!(index.faults().values().collect::<Vec<_>>(), [fault]);
    assert_eq!(index.paths().cloned().collect::<Vec<_>>(), before);
    // A version within the bounds ends the fault.
    assert_eq!(index.forget(&object).unwrap().is_empty(), object["kind"] == "ReferenceGrant");
    assert!(index.faults().is_empty());
}

#[test]
fn listeners_over_the_budget_of_paths_are_refused() {
    let index = index(&[gateway(128), route(64)]);
    assert_eq!(index.paths().count(), limits::PATHS_PER_ROUTE);
    let links = index.links(&NodeKey::new(ObjectKind::HttpRoute, "shop", "api")).unwrap();
    assert_eq!(links.refused.len(), 64);
    assert!(links.refused.iter().all(|refusal| refusal.reason == RefusalReason::OverBudget));
    assert_eq!(links.refused[0].parent, "Gateway/shop/gw#l064");
}

fn id(kind: &str, name: &str) -> PolicyId {
    PolicyId { kind: kind.into(), namespace: "shop".into(), name: name.into() }
}

/// What the policies of a target state of themselves, by name.
fn states(index: &Index, kind: &str, names: &[&str]) -> Vec<TargetState> {
    let state = |name: &&str| index.state(&id(kind, name)).unwrap().targets.values().next().unwrap().clone();
    names.iter().map(state).collect()
}

#[test]
fn the_oldest_policies_count_whose_rules_are_not_too_many() {
    let rules = |count: usize| -> Value { (0..count).map(|number| (number.to_string(), json!(1))).collect() };
    let of = |name: &str, count: usize| policy(name, json!({"limits": rules(count)}));
    let objects = [gateway(1), route(1), of("a", limits::RULES), of("b", limits::RULES), of("c", 1)];
    let mut index = index(&objects);
    let all = ["a", "b", "c"];
    let [attached, over] = [TargetState::Attached, TargetState::OverLimit];
    assert_eq!(states(&index, "LimitPolicy", &all), [attached.clone(), attached.clone(), over]);
    index.observe(&of("b", limits::RULES - 1)).unwrap();
    assert_eq!(states(&index, "LimitPolicy", &all), [attached.clone(), attached.clone(), attached]);
}

/// Each older policy takes the target from all that were there.
#[test]
fn a_new_winner_costs_as_many_states_as_a_target_has_conflicts() {
    let mut index = Index::new([Arc::new(Certificate) as Arc<dyn PolicyKind>]);
    index.observe(&gateway(1)).unwrap();
    let of = |number: usize| {
        let mut own = policy(&format!("p{number:03}"), json!({"limits": {"a": 1}}));
        own["kind"] = "CertificatePolicy".into();
        own["spec"]["targetRef"] = json!({"kind": "Gateway", "name": "gw"});
        own
    };
    for number in (0..300).rev() {
        let cost = index.observe(&of(number)).unwrap().cost;
        assert!(cost.policies <= limits::CONFLICTS_PER_TARGET + 1, "{number}: {cost:?}");
    }
    let found = states(&index, "CertificatePolicy", &["p000", "p063", "p064", "p299"]);
    let conflict = TargetState::Conflicted(id("CertificatePolicy", "p000"));
    assert_eq!(found, [TargetState::Attached, conflict, TargetState::OverLimit, TargetState::OverLimit]);
}

#[test]
fn the_oldest_policies_of_a_target_count() {
    let mut objects = vec![gateway(1), route(1)];
    objects.extend(
        (0..20).rev().map(|number| policy(&format!("p{number:02}"), json!({"limits": {"a": number}}))),
    );
    let mut index = index(&objects);
    let path = index.paths().next().unwrap().clone();
    let effective = index.effective("LimitPolicy", &path).unwrap();
    assert_eq!(effective.policies.len(), limits::POLICIES_PER_TARGET);
    // Atomic defaults: the youngest that counts.
    assert_eq!(&*effective.rules["a"].source.name, "p15");
    let id = |name: &str| id("LimitPolicy", name);
    let state = index.state(&id("p16")).unwrap();
    assert!(state.targets.values().all(|target| *target == TargetState::OverLimit));
    let condition = &conditions(state, &|_| crate::Delivery::Delivered)[0];
    assert_eq!(condition.reason, "Invalid");
    assert_eq!(
        condition.message,
        "LimitPolicy is over the limit of policies of its kind on HTTPRoute/shop/api"
    );
    let changes = index.forget(&policy("p03", json!({}))).unwrap();
    assert!(changes.policies.contains(&id("p16")));
    assert_eq!(&*index.effective("LimitPolicy", &path).unwrap().rules["a"].source.name, "p16");
}

#[test]
fn messages_count_what_they_do_not_name() {
    let targets: Vec<Value> =
        (0..12).map(|number| json!({"kind": "HTTPRoute", "name": format!("r{number:02}")})).collect();
    let index = index(&[policy("p", json!({"targetRefs": targets, "limits": {"a": 1}}))]);
    let state = index.state(&index.policies().next().unwrap().id).unwrap();
    let message = &conditions(state, &|_| crate::Delivery::Delivered)[0].message;
    assert!(message.ends_with("HTTPRoute/shop/r07 and 4 more was not found"), "{message}");
}
