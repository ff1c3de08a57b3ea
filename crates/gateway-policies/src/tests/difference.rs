//! The sentences of a difference, and its budget.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Map, Value, json};

use super::{LimitPolicy, gateway, index, object, policy, route};
use crate::{Index, ObjectKind, PolicyClass, PolicyKind, Rules, TargetKind, Violation, rules_under};

const PATH: &str =
    "GatewayClass/eg > Gateway/shop/gw > Gateway/shop/gw#l000 > HTTPRoute/shop/api > HTTPRoute/shop/api#";

fn on_gateway(name: &str, block: &str) -> Value {
    let mut spec = json!({"targetRef": {"kind": "Gateway", "name": "gw"}});
    spec[block] = json!({"limits": {"a": 1, "b": 1}});
    policy(name, spec)
}

fn on_rule(name: &str, rule: &str) -> Value {
    let target = json!({"kind": "HTTPRoute", "name": "api", "sectionName": rule});
    policy(name, json!({"targetRef": target, "limits": {"a": 1}}))
}

fn lower() -> Value {
    policy("lower", json!({"limits": {"a": 2, "b": 2}}))
}

fn rules(names: &[&str]) -> Value {
    let rules: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    object("HTTPRoute", "api", json!({"parentRefs": [{"name": "gw"}], "rules": rules}))
}

fn only_hostname(hostname: &str) -> Value {
    let listener = json!({"name": "l000", "port": 1000, "protocol": "HTTP", "hostname": hostname});
    object("Gateway", "gw", json!({"gatewayClassName": "eg", "listeners": [listener]}))
}

fn with_hostname() -> Value {
    object(
        "HTTPRoute",
        "api",
        json!({"parentRefs": [{"name": "gw"}], "hostnames": ["a.org"], "rules": [{"name": "x"}]}),
    )
}

#[rstest]
#[case::a_deletion_opens_paths(
    vec![gateway(3), route(1), on_gateway("all", "defaults")],
    json!({"delete": on_gateway("all", "defaults")}),
    vec![format!("no rule of any LimitPolicy acts on 3 paths any more, as on {PATH}rule-1")],
)]
#[case::a_deletion_that_leaves_another_policy(
    vec![gateway(1), route(1), on_gateway("all", "defaults"), lower()],
    json!({"delete": lower()}),
    vec![],
)]
#[case::naming_a_rule(
    vec![gateway(1), rules(&["", ""]), on_rule("second", "rule-2")],
    json!({"apply": rules(&["", "b"])}),
    vec![
        "LimitPolicy/shop/second: target HTTPRoute/shop/api#rule-2 was not found".to_owned(),
        format!("no rule of any LimitPolicy acts on 1 new path, as on {PATH}b"),
    ],
)]
#[case::a_target_that_is_absent(
    vec![gateway(1), route(1)],
    json!({"apply": on_rule("p", "b")}),
    vec!["LimitPolicy/shop/p: target HTTPRoute/shop/api#b was not found".to_owned()],
)]
#[case::what_was_so_before(
    vec![gateway(1), route(1), on_rule("p", "b")],
    json!({"apply": {"metadata": {"generation": 2}, "of": on_rule("p", "b")}}),
    vec![],
)]
#[case::overrides_from_above(
    vec![gateway(2), route(1), lower()],
    json!({"apply": on_gateway("upper", "overrides")}),
    vec![
        "LimitPolicy/shop/lower is overridden by [shop/upper] on all its 2 paths".to_owned(),
        "shop/upper replaces rules [a b] of LimitPolicy/shop/lower on 2 paths".to_owned(),
    ],
)]
#[case::overridden_from_the_start(
    vec![gateway(1), route(1), on_gateway("upper", "overrides")],
    json!({"apply": lower()}),
    vec![
        "LimitPolicy/shop/lower is overridden by [shop/upper] on its only path".to_owned(),
        "shop/upper replaces rules [a b] of LimitPolicy/shop/lower on 1 path".to_owned(),
    ],
)]
#[case::no_listener_any_more(
    vec![only_hostname("a.org"), with_hostname()],
    json!({"apply": only_hostname("b.org")}),
    vec!["no listener carries HTTPRoute/shop/api [Gateway/shop/gw#l000: HostnameMismatch]".to_owned()],
)]
#[case::a_new_route_without_policies(
    vec![gateway(1)],
    json!({"apply": route(1)}),
    vec![format!("no rule of any LimitPolicy acts on 1 new path, as on {PATH}rule-1")],
)]
fn a_change_is_foreseen(#[case] objects: Vec<Value>, #[case] change: Value, #[case] expected: Vec<String>) {
    let mut index = index(&objects);
    let event = match change.get("apply") {
        None => index.deletion(&change["delete"]),
        Some(apply) if apply.get("of").is_some() => {
            let mut object = apply["of"].clone();
            object["metadata"]["generation"] = apply["metadata"]["generation"].clone();
            index.event(&object)
        }
        Some(apply) => index.event(apply),
    };
    let difference = index.difference(event.unwrap()).unwrap();
    let found: Vec<String> = difference.findings().iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

pub struct Certificate;

impl PolicyKind for Certificate {
    fn name(&self) -> &str {
        "CertificatePolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn class(&self) -> PolicyClass {
        PolicyClass::Direct
    }

    fn targets(&self) -> &[TargetKind] {
        const { &[TargetKind::whole(ObjectKind::Gateway)] }
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "limits")
    }
}

#[test]
fn a_conflict_is_foreseen() {
    let of = |name: &str| {
        let mut policy = on_gateway(name, "defaults");
        policy["kind"] = json!("CertificatePolicy");
        policy
    };
    let mut index = Index::new([Arc::new(Certificate) as Arc<dyn PolicyKind>, Arc::new(LimitPolicy)]);
    index.observe(&gateway(1)).unwrap();
    index.observe(&of("a")).unwrap();
    let event = index.event(&of("b")).unwrap();
    let found: Vec<String> =
        index.difference(event).unwrap().findings().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["CertificatePolicy/shop/b is conflicted by shop/a: Gateway/shop/gw has an older policy"]
    );
}

#[rstest]
#[case::of_an_object(gateway(0))]
#[case::of_a_policy(on_gateway("late", "defaults"))]
fn a_difference_has_a_budget(#[case] change: Value) {
    let mut index = index(&[gateway(8), route(8), on_gateway("upper", "overrides"), lower()]);
    let event = index.event(&change).unwrap();
    let found = index.difference_within(event.clone(), 63).unwrap_err();
    assert_eq!(
        found.to_string(),
        "the change touches more than 63 routes and paths, so what it would change is not foreseen"
    );
    assert!(index.difference_within(event, 65).is_ok());
    assert_eq!(index.paths().count(), 64);
}

/// Policies of a thousand rules on a Gateway, of which two count, and a policy of its own on each route: what is merged is more than
/// the paths, and what is listed is less.
#[test]
fn rules_are_a_budget_of_their_own() {
    let many: Map<String, Value> = (0..1000).map(|number| (format!("r{number}"), json!(1))).collect();
    let on_gateway = |number: usize| {
        let target = json!({"kind": "Gateway", "name": "gw"});
        policy(&format!("p{number}"), json!({"targetRef": target, "limits": many}))
    };
    let mut objects = vec![gateway(1)];
    objects.extend((0..16).map(on_gateway));
    for number in 0..60 {
        let name = format!("api-{number}");
        objects.push(object("HTTPRoute", &name, json!({"parentRefs": [{"name": "gw"}], "rules": [{}]})));
        let target = json!({"kind": "HTTPRoute", "name": name});
        objects.push(policy(&format!("own-{number}"), json!({"targetRef": target, "limits": {"a": 1}})));
    }
    let mut index = index(&objects);
    let listed = index.outputs().map(|(_, effective)| effective.replaced.len()).max();
    assert!(listed.is_some_and(|listed| listed <= 3 * crate::limits::REPLACED_RULES), "{listed:?}");
    let event = index.event(&on_gateway(0)).unwrap();
    let changed = policy("p0", json!({"targetRef": {"kind": "Gateway", "name": "gw"}, "limits": {"a": 1}}));
    assert!(index.difference(event).unwrap().outputs.is_empty());
    let over = index.difference(index.event(&changed).unwrap()).unwrap_err();
    assert!(over.to_string().contains("100000 rules of policies"), "{over}");
}
