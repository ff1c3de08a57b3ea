//! Hostnames, names of rules, backends, and objects that cannot be identified.

use rstest::rstest;
use serde_json::{Value, json};

use super::{gateway, index, object, route};
use crate::{BackendState, DecodeError, NodeKey, ObjectKind, intersection};

#[rstest]
#[case("a.example.com", "a.example.com", Some("a.example.com"))]
#[case("A.Example.com", "a.example.COM", Some("a.example.com"))]
#[case("*.example.com", "a.example.com", Some("a.example.com"))]
#[case("*.example.com", "a.b.example.com", Some("a.b.example.com"))]
#[case("*.example.com", "example.com", None)]
#[case("*.example.com", ".example.com", None)]
#[case("*.example.com", "*.example.com", Some("*.example.com"))]
#[case("*.example.com", "*.a.example.com", Some("*.a.example.com"))]
#[case("*.example.com", "*.example.org", None)]
#[case("*.example.com", "badexample.com", None)]
#[case("*", "a.example.com", Some("a.example.com"))]
#[case("*a.example.com", "ba.example.com", None)]
fn hostnames_intersect(#[case] left: &str, #[case] right: &str, #[case] common: Option<&str>) {
    assert_eq!(intersection(left, right).as_deref(), common);
    assert_eq!(intersection(right, left).as_deref(), common);
}

#[rstest]
#[case::all_named(&["a", "b"], &["a", "b"])]
#[case::positions(&["", "b", ""], &["rule-1", "b", "rule-3"])]
#[case::a_name_takes_a_position(&["rule-2", ""], &["rule-2", "#2"])]
#[case::a_later_name_takes_it_too(&["", "rule-1"], &["#1", "rule-1"])]
#[case::one_name_twice(&["a", "a"], &["a", "#2"])]
fn rules_have_names_of_their_own(#[case] names: &[&str], #[case] sections: &[&str]) {
    let rules: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let index = index(&[object("HTTPRoute", "api", json!({"rules": rules}))]);
    let links = index.links(&NodeKey::new(ObjectKind::HttpRoute, "shop", "api")).unwrap();
    let found: Vec<&str> = links.rules.iter().filter_map(|rule| rule.section.as_deref()).collect();
    assert_eq!(found, sections);
}

#[rstest]
#[case::resolved(json!({"name": "web", "port": 80}), BackendState::Resolved)]
#[case::without_a_port(json!({"name": "web"}), BackendState::Resolved)]
#[case::no_port(json!({"name": "web", "port": 81}), BackendState::PortNotFound)]
#[case::no_service(json!({"name": "api", "port": 80}), BackendState::ServiceNotFound)]
#[case::granted(json!({"name": "web", "namespace": "open", "port": 80}), BackendState::ServiceNotFound)]
#[case::not_granted(json!({"name": "other", "namespace": "open", "port": 80}), BackendState::NotPermitted)]
#[case::another_kind(json!({"name": "web", "kind": "Bucket", "group": "example.org"}), BackendState::UnknownKind)]
fn backends_come_to(#[case] backend: Value, #[case] state: BackendState) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"ports": [{"port": 80}]},
    });
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
        "metadata": {"namespace": "open", "name": "shop"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop"}],
            "to": [{"group": "", "kind": "Service", "name": "web"}],
        },
    });
    let route = object("HTTPRoute", "api", json!({"rules": [{"backendRefs": [backend]}]}));
    let mut index = index(&[service, route]);
    index.observe(&grant).unwrap();
    let links = index.links(&NodeKey::new(ObjectKind::HttpRoute, "shop", "api")).unwrap();
    assert_eq!(links.backends.iter().map(|backend| backend.state).collect::<Vec<_>>(), [state]);
}

#[rstest]
#[case::nameless(json!({"apiVersion": "v1", "kind": "Service"}), "metadata.name is empty")]
#[case::unknown(
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}),
    "apps/Deployment is not a kind that decides about paths"
)]
#[case::nothing(Value::Null, "metadata.name is empty")]
fn an_object_without_an_identity_is_an_error(#[case] object: Value, #[case] message: &str) {
    let error: DecodeError = index(&[]).observe(&object).unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// Labels, annotations and statuses decide nothing.
#[test]
fn what_does_not_decide_changes_nothing() {
    let mut index = index(&[gateway(1), route(1)]);
    let mut same = route(1);
    same["metadata"]["labels"] = json!({"a": "b"});
    same["status"] = json!({"parents": []});
    assert!(index.observe(&same).unwrap().is_empty());
}

/// The API server drops a field that is null.
#[test]
fn a_field_that_is_null_is_absent() {
    let spec = json!({"parentRefs": [{"name": "gw", "sectionName": null}], "hostnames": null, "rules": null});
    let index = index(&[gateway(1), object("HTTPRoute", "api", spec)]);
    assert!(index.faults().is_empty(), "{:?}", index.faults());
    let links = index.links(&NodeKey::new(ObjectKind::HttpRoute, "shop", "api")).unwrap();
    assert_eq!((links.attached.len(), links.rules.len()), (1, 1));
}
