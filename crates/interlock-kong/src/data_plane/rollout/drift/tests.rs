//! Tables of what is a difference and what is none.

use rstest::rstest;
use serde_json::json;

use super::*;

#[rstest]
#[case::the_same(json!({"a": 1, "b": {"c": [1, "x"]}}), json!({"a": 1, "b": {"c": [1, "x"]}}), None)]
#[case::a_value(json!({"spec": {"type": "ClusterIP"}}), json!({"spec": {"type": "NodePort"}}), Some("spec.type"))]
#[case::gone(json!({"spec": {"a": {"b": 1}}}), json!({"spec": {}}), Some("spec.a"))]
#[case::null_is_gone(json!({"spec": {"a": 1}}), json!({"spec": {"a": null}}), Some("spec.a"))]
#[case::another_type(json!({"a": {"b": 1}}), json!({"a": [1]}), Some("a"))]
#[case::added_by_others(json!({"metadata": {"labels": {"a": "b"}}}), json!({"metadata": {"labels": {"a": "b", "c": "d"}, "uid": "u"}, "status": {}}), None)]
#[case::a_label_of_many_parts(
    json!({"metadata": {"labels": {"kong.com/selector": "a"}}}), json!({"metadata": {"labels": {"kong.com/selector": "b"}}}),
    Some("metadata.labels[kong.com/selector]")
)]
#[case::an_empty_label_is_one(json!({"labels": {"a": ""}}), json!({"labels": {}}), Some("labels.a"))]
#[case::a_label_is_no_number(json!({"labels": {"a": "1"}}), json!({"labels": {"a": 1}}), Some("labels.a"))]
#[case::a_label_named_as_a_field(json!({"labels": {"type": ""}}), json!({"labels": {"type": "x"}}), Some("labels.type"))]
#[case::empty_is_dropped(json!({"a": {}, "b": [], "c": "", "d": null, "e": {"f": {}}}), json!({}), None)]
#[case::empty_is_not_full(json!({"args": []}), json!({"args": ["x"]}), Some("args"))]
#[case::an_object_of_others(json!({"securityContext": {}}), json!({"securityContext": {"fsGroup": 1}}), None)]
#[case::false_is_dropped(json!({"hostNetwork": false, "initialDelaySeconds": 0}), json!({}), None)]
#[case::false_is_not_true(json!({"hostNetwork": false}), json!({"hostNetwork": true}), Some("hostNetwork"))]
#[case::false_that_is_kept(json!({"automountServiceAccountToken": false}), json!({}), Some("automountServiceAccountToken"))]
#[case::zero_is_defaulted(json!({"timeoutSeconds": 0, "protocol": "", "nodePort": 0}), json!({"timeoutSeconds": 1, "protocol": "TCP", "nodePort": 30080}), None)]
#[case::zero_replicas(json!({"replicas": 0}), json!({"replicas": 3}), Some("replicas"))]
#[case::integers_or_strings(json!({"a": 8000, "b": "25%"}), json!({"a": "8000", "b": "25%"}), None)]
#[case::names_of_ports(json!({"targetPort": "proxy"}), json!({"targetPort": 8000}), Some("targetPort"))]
#[case::no_object(json!({"a": 1}), json!(null), Some(""))]
fn members(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
    assert_eq!(differs(&wanted, &found).as_deref(), path);
}

#[rstest]
#[case::limits(json!({"resources": {"limits": {"cpu": "1000m", "memory": "2048Mi"}}}), json!({"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}), None)]
#[case::a_number(json!({"requests": {"cpu": 2}}), json!({"requests": {"cpu": "2"}}), None)]
#[case::changed(json!({"limits": {"memory": "2000Mi"}}), json!({"limits": {"memory": "2Gi"}}), Some("limits.memory"))]
#[case::size_limit(json!({"emptyDir": {"sizeLimit": "1024Mi"}}), json!({"emptyDir": {"sizeLimit": "1Gi"}}), None)]
#[case::a_metric(json!({"target": {"type": "Value", "value": "1000m"}}), json!({"target": {"type": "Value", "value": "1"}}), None)]
#[case::a_variable_is_text(json!({"env": [{"name": "A", "value": "1000m"}]}), json!({"env": [{"name": "A", "value": "1"}]}), Some("env[name=A].value"))]
#[case::no_quantity(json!({"limits": {"cpu": "x"}}), json!({"limits": {"cpu": "y"}}), Some("limits.cpu"))]
#[case::gone(json!({"limits": {"cpu": "1"}}), json!({"limits": {}}), Some("limits.cpu"))]
fn quantities(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
    assert_eq!(differs(&wanted, &found).as_deref(), path);
}

#[rstest]
#[case::by_name(
    json!({"containers": [{"name": "proxy", "image": "a"}]}),
    json!({"containers": [{"name": "injected", "image": "x"}, {"name": "proxy", "image": "a", "tty": true}]}),
    None
)]
#[case::changed(
    json!({"containers": [{"name": "proxy", "image": "a"}]}), json!({"containers": [{"name": "proxy", "image": "b"}]}),
    Some("containers[name=proxy].image")
)]
#[case::gone(
    json!({"containers": [{"name": "proxy"}, {"name": "log"}]}), json!({"containers": [{"name": "proxy"}]}),
    Some("containers[name=log]")
)]
#[case::ports_of_a_service(
    json!({"ports": [{"port": 80, "targetPort": 8000}]}),
    json!({"ports": [{"port": 443, "protocol": "TCP"}, {"port": 80, "protocol": "TCP", "targetPort": 8000, "nodePort": 30080}]}),
    None
)]
#[case::another_protocol(json!({"ports": [{"port": 80}]}), json!({"ports": [{"port": 80, "protocol": "UDP"}]}), Some("ports[port=80,protocol=TCP]"))]
#[case::ports_of_a_container(
    json!({"ports": [{"containerPort": 8000, "name": "proxy"}]}), json!({"ports": [{"containerPort": 8000, "protocol": "TCP", "name": "p"}]}),
    Some("ports[containerPort=8000,protocol=TCP].name")
)]
#[case::owners_by_uid(
    json!({"ownerReferences": [{"uid": "u-1", "controller": true}]}),
    json!({"ownerReferences": [{"uid": "u-0"}, {"uid": "u-1", "controller": true, "blockOwnerDeletion": true}]}),
    None
)]
#[case::no_controller(
    json!({"ownerReferences": [{"uid": "u-1", "controller": true}]}), json!({"ownerReferences": [{"uid": "u-1"}]}),
    Some("ownerReferences[uid=u-1].controller")
)]
#[case::order_of_variables(
    json!({"env": [{"name": "A"}, {"name": "B"}]}), json!({"env": [{"name": "B"}, {"name": "A"}]}), Some("env")
)]
#[case::variables_of_others_between(
    json!({"env": [{"name": "A"}, {"name": "B"}]}), json!({"env": [{"name": "X"}, {"name": "A"}, {"name": "Y"}, {"name": "B"}]}), None
)]
#[case::order_of_volumes(
    json!({"volumes": [{"name": "a"}, {"name": "b"}]}), json!({"volumes": [{"name": "b"}, {"name": "a"}]}), None
)]
#[case::another_source(
    json!({"volumes": [{"name": "a", "emptyDir": {}}]}), json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
    Some("volumes[name=a].emptyDir")
)]
#[case::none_of_ours(json!({"volumes": []}), json!({"volumes": [{"name": "injected"}]}), None)]
#[case::a_whole_list(json!({"command": ["a", "b"]}), json!({"command": ["b", "a"]}), Some("command[0]"))]
#[case::a_longer_list(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": [{"key": "a"}, {"key": "b"}]}), Some("tolerations"))]
#[case::defaults_in_a_whole_list(
    json!({"metrics": [{"type": "Resource"}]}), json!({"metrics": [{"type": "Resource", "resource": {}}]}), None
)]
fn lists_of(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
    assert_eq!(differs(&wanted, &found).as_deref(), path);
}
