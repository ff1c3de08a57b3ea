//! What a policy is refused for, who is older, and how far its outputs have come.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Map, Value, json};

use super::{LimitPolicy, gateway, index, object, policy, route};
use crate::{
    Delivery, Index, PolicyKind, Rules, TargetKind, TargetState, Violation, conditions, read_policy,
};

#[rstest]
#[case::no_target(json!({"targetRefs": [], "limits": {"a": 1}}), "spec.targetRef: names no target")]
#[case::foreign_kind(
    json!({"targetRef": {"group": "", "kind": "Service", "name": "web"}, "limits": {"a": 1}}),
    "spec.targetRef: LimitPolicy cannot target /Service; it can target Gateway, HTTPRoute"
)]
#[case::foreign_group(
    json!({"targetRef": {"group": "example.org", "kind": "Gateway", "name": "gw"}, "limits": {"a": 1}}),
    "spec.targetRef: LimitPolicy cannot target example.org/Gateway; it can target Gateway, HTTPRoute"
)]
#[case::section_of_a_whole_kind(
    json!({"targetRef": {"kind": "Gateway", "name": "gw", "sectionName": "http"}, "limits": {"a": 1}}),
    "spec.targetRef: LimitPolicy cannot target a section of a Gateway"
)]
#[case::another_namespace(
    json!({"targetRef": {"kind": "Gateway", "name": "gw", "namespace": "other"}, "limits": {"a": 1}}),
    "spec.targetRef: targets another namespace; create the policy in the namespace of its target"
)]
#[case::a_target_that_is_no_object(json!({"targetRef": 7, "limits": {"a": 1}}), "spec.targetRef: cannot decode")]
#[case::bare_and_defaults(
    json!({"limits": {"a": 1}, "defaults": {"limits": {"a": 1}}}),
    "spec: has more than one of rules, defaults and overrides; keep one of them"
)]
#[case::defaults_and_overrides(
    json!({"overrides": {"limits": {"a": 1}}, "defaults": {"limits": {"a": 1}}}),
    "spec: has more than one of rules, defaults and overrides; keep one of them"
)]
#[case::no_rule(json!({}), "spec: has no rule, so the policy can never act")]
#[case::no_rule_that_counts(
    json!({"defaults": {"limits": {"_when": 1}}}),
    "spec.defaults: has no rule, so the policy can never act"
)]
#[case::an_unknown_strategy(
    json!({"defaults": {"strategy": "patch", "limits": {"a": 1}}}),
    "spec.defaults.strategy: is none that the kind has"
)]
#[case::a_strategy_of_other_kinds(
    json!({"defaults": {"strategy": "merge", "limits": {"a": 1}}}),
    "spec.defaults.strategy: is none that the kind has"
)]
#[case::rules_that_are_no_map(
    json!({"overrides": {"limits": [1]}}),
    "spec.overrides.limits: has to be a map from names to rules"
)]
#[case::a_block_that_is_no_object(json!({"overrides": [1]}), "spec.overrides: has to be an object")]
fn a_policy_is_refused(#[case] spec: Value, #[case] violation: &str) {
    let policy = read_policy(&LimitPolicy, &policy("p", spec)).unwrap();
    assert_eq!(policy.block, None);
    let found: Vec<String> = policy.violations.iter().map(ToString::to_string).collect();
    assert!(found.len() == 1 && found[0].starts_with(violation), "{found:?}");
}

#[test]
fn a_policy_has_at_most_so_many_rules() {
    let rules = |count: usize| -> Value { (0..count).map(|number| (number.to_string(), json!(1))).collect() };
    let of = |count: usize| read_policy(&LimitPolicy, &policy("p", json!({"limits": rules(count)}))).unwrap();
    assert_eq!(of(crate::limits::RULES).violations, []);
    let message = "spec: has 1025 rules, more than 1024; split the policy";
    assert_eq!(of(crate::limits::RULES + 1).violations[0].to_string(), message);
}

#[test]
fn a_position_as_a_target_is_warned_of() {
    let target = json!({"kind": "HTTPRoute", "name": "api", "sectionName": "rule-2"});
    let policy = read_policy(&LimitPolicy, &policy("p", json!({"targetRef": target, "limits": {"a": 1}})));
    let warning = &policy.unwrap().warnings[0];
    assert_eq!(
        warning.to_string(),
        "spec.targetRef.sectionName: HTTPRoute/shop/api#rule-2 is a position, which moves with the rules; \
         name the rule"
    );
}

/// A kind whose rules are targeted by name alone.
struct NamedOnly;

impl PolicyKind for NamedOnly {
    fn name(&self) -> &str {
        "LimitPolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn targets(&self) -> &[TargetKind] {
        LimitPolicy.targets()
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        LimitPolicy.rules(block)
    }

    fn has_positions(&self) -> bool {
        false
    }
}

#[rstest]
#[case::a_position("", false)]
#[case::a_name("rule-2", true)]
fn a_kind_may_take_names_alone(#[case] name: &str, #[case] is_target: bool) {
    let mut index = Index::new([Arc::new(NamedOnly) as Arc<dyn PolicyKind>]);
    let rules = json!([{}, {"name": name}]);
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "example.org/ours"},
    });
    let route = object("HTTPRoute", "api", json!({"parentRefs": [{"name": "gw"}], "rules": rules}));
    [class, gateway(1), route].iter().for_each(|object| drop(index.observe(object).unwrap()));
    let target = json!({"kind": "HTTPRoute", "name": "api", "sectionName": "rule-2"});
    index.observe(&policy("p", json!({"targetRef": target, "limits": {"a": 1}}))).unwrap();
    let own = index.policies().next().unwrap();
    let target = index.state(&own.id).unwrap().targets.values().next().unwrap();
    assert_eq!(*target == TargetState::Attached, is_target, "{target:?}");
    let path = index.paths().find(|path| path.rule_index == 1).unwrap();
    assert_eq!(index.effective("LimitPolicy", path).is_some(), is_target);
    let warning = own.warnings[0].to_string();
    assert!(warning.ends_with("is the name of a rule here, not its position; name the rule"), "{warning}");
}

/// The text decides, in which `-` comes before `/`: GEP-713 sorts by `namespace/name`.
#[test]
fn names_are_compared_as_one_text() {
    let of = |namespace: &str| {
        let mut object = policy("p", json!({"limits": {"a": 1}}));
        object["metadata"]["namespace"] = json!(namespace);
        read_policy(&LimitPolicy, &object).unwrap().precedence()
    };
    assert!(of("a-b") < of("a"));
}

#[rstest]
#[case::delivered(Delivery::Delivered, true, "Enforced", "LimitPolicy has been successfully enforced")]
#[case::pending(
    Delivery::Pending("EnvoyPatchPolicy (shop/gw)".to_owned()),
    false,
    "Unknown",
    "LimitPolicy waiting for the following components to sync: [EnvoyPatchPolicy (shop/gw)]"
)]
#[case::failed(
    Delivery::Failed("the expression of a is not supported".to_owned()),
    false,
    "Unknown",
    "LimitPolicy has encountered some issues: the expression of a is not supported"
)]
fn a_condition_claims_what_is_delivered(
    #[case] delivery: Delivery,
    #[case] is_true: bool,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let index = index(&[gateway(1), route(1), policy("p", json!({"limits": {"a": 1}}))]);
    let state = index.state(&index.policies().next().unwrap().id).unwrap();
    let conditions = conditions(state, &|_| delivery.clone());
    let found = &conditions[1];
    assert_eq!((found.is_true, found.reason, found.message.as_str()), (is_true, reason, message));
}

#[test]
fn targets_list_the_policies_that_act_on_them() {
    let target = json!({"kind": "Gateway", "name": "gw"});
    let lower = policy("lower", json!({"limits": {"a": 1}}));
    let upper = policy("upper", json!({"targetRef": target, "overrides": {"limits": {"a": 2}}}));
    let mut index = index(&[gateway(1), route(1), lower, upper.clone()]);
    let node = crate::NodeKey::new(crate::ObjectKind::HttpRoute, "shop", "api");
    let names = |index: &crate::Index| -> Vec<String> {
        index.affecting(&node, None).values().flatten().map(|id| id.qualified_name()).collect()
    };
    assert_eq!(names(&index), ["shop/upper"]);
    index.forget(&upper).unwrap();
    assert_eq!(names(&index), ["shop/lower"]);
}
