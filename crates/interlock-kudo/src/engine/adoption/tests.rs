//! Tables of ownership, and of the metadata written onto objects.

use rstest::rstest;
use serde_json::{Value, json};

use super::Ownership::{Adopted, Owned, Shared};
use super::*;

fn instance() -> InstanceId {
    InstanceId { namespace: "ns".to_owned(), name: "inst".to_owned(), uid: "uid-1".to_owned() }
}

fn unmanaged() -> Ownership {
    Ownership::Foreign(ForeignOwner::Unmanaged)
}

fn of_instance(name: &str) -> Ownership {
    Ownership::Foreign(ForeignOwner::Instance(name.to_owned()))
}

fn of_controller() -> Ownership {
    Ownership::Foreign(ForeignOwner::Controller("ReplicaSet web".to_owned()))
}

/// Owner references, one of an Instance.
fn owners(name: &str, uid: &str) -> Value {
    json!([{"uid": "x"}, {"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": name, "uid": uid, "controller": true}])
}

fn controller() -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "x", "controller": true}])
}

/// KUDO's annotation, and the label with the name of an Instance.
fn made(name: &str) -> Value {
    json!({"labels": {"kudo.dev/instance": name}, "annotations": {"kudo.dev/last-applied-configuration": "{}"}})
}

fn with(mut metadata: Value, rest: &Value) -> Value {
    json_patch::merge(&mut metadata, rest);
    metadata
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"annotations": {key: value}})
}

#[rstest]
#[case::bare(json!({}), unmanaged(), Adopted)]
#[case::with_annotations(annotated("a", "b"), unmanaged(), Adopted)]
#[case::labelled_like_ours(json!({"labels": {"kudo.dev/instance": "inst", "heritage": "kudo"}}), unmanaged(), Adopted)]
#[case::ours(json!({"ownerReferences": owners("inst", "uid-1")}), Owned, Owned)]
#[case::ours_without_being_the_controller(json!({"ownerReferences": [{"uid": "uid-1"}]}), Owned, Owned)]
#[case::made_by_kudo_and_orphaned(made("inst"), Owned, Owned)]
#[case::made_by_an_instance_that_is_not_known(
    annotated("kudo.dev/last-applied-configuration", "{}"),
    Owned,
    Owned
)]
#[case::of_a_former_one(json!({"ownerReferences": owners("inst", "uid-0")}), Owned, Owned)]
#[case::of_another_instance(with(made("other"), &json!({"ownerReferences": owners("other", "uid-2")})), of_instance("other"), of_instance("other"))]
#[case::of_another_instance_and_orphaned(made("other"), of_instance("other"), of_instance("other"))]
#[case::of_an_instance_of_another_group(json!({"ownerReferences": [{"apiVersion": "kudo.developers/v1", "kind": "Instance", "name": "inst", "uid": "x"}]}), unmanaged(), Adopted)]
#[case::controlled(json!({"ownerReferences": controller()}), of_controller(), Adopted)]
#[case::owned_and_not_controlled(json!({"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "x"}]}), unmanaged(), Adopted)]
#[case::handed_over(annotated("interlock.dev/adopt", "inst"), Owned, Owned)]
#[case::given_to_another(annotated("interlock.dev/adopt", "other"), unmanaged(), Adopted)]
#[case::given_with_its_controller(with(annotated("interlock.dev/adopt", "inst"), &json!({"ownerReferences": controller()})), of_controller(), Adopted)]
#[case::given_by_its_instance(with(annotated("interlock.dev/adopt", "inst"), &json!({"ownerReferences": owners("other", "uid-2")})), of_instance("other"), of_instance("other"))]
#[case::left_behind_and_given(with(made("other"), &annotated("interlock.dev/adopt", "inst")), Owned, Owned)]
#[case::adopted(with(made("inst"), &annotated("interlock.dev/adopted-by", "uid-1")), Adopted, Adopted)]
#[case::adopted_and_owned(with(annotated("interlock.dev/adopted-by", "uid-1"), &json!({"ownerReferences": owners("inst", "uid-1")})), Adopted, Adopted)]
#[case::adopted_and_given(with(with(made("inst"), &annotated("interlock.dev/adopted-by", "uid-1")), &annotated("interlock.dev/adopt", "inst")), Owned, Owned)]
#[case::adopted_by_a_former_one(with(made("inst"), &annotated("interlock.dev/adopted-by", "uid-0")), unmanaged(), Adopted)]
#[case::adopted_by_another(with(made("other"), &annotated("interlock.dev/adopted-by", "uid-2")), of_instance("other"), of_instance("other"))]
fn namespaced(#[case] metadata: Value, #[case] deny: Ownership, #[case] allow: Ownership) {
    let metadata = with(json!({"name": "x", "namespace": "ns"}), &metadata);
    let current = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    assert_eq!(ownership(&current, &instance(), Adoption::Deny), deny);
    assert_eq!(ownership(&current, &instance(), Adoption::Allow), allow);
}

fn labelled(uid: &str) -> Value {
    json!({"labels": {"interlock.dev/instance-uid": uid}})
}

#[rstest]
#[case::bare(json!({}), Adopted, Adopted)]
#[case::with_annotations(annotated("a", "b"), unmanaged(), Adopted)]
#[case::ours(with(made("inst"), &labelled("uid-1")), Owned, Owned)]
#[case::of_another(with(made("other"), &labelled("uid-2")), Shared, Shared)]
#[case::of_another_of_that_name(with(made("inst"), &labelled("uid-2")), Shared, Shared)]
#[case::made_by_kudo(made("inst"), Owned, Owned)]
#[case::made_by_kudo_for_another(made("other"), Shared, Shared)]
#[case::made_by_kudo_and_shared(with(made("inst"), &annotated("interlock.dev/shared-by", "")), Shared, Shared)]
#[case::adopted(with(made("inst"), &annotated("interlock.dev/adopted-by", "uid-1")), Adopted, Adopted)]
#[case::adopted_by_another(with(made("inst"), &annotated("interlock.dev/adopted-by", "uid-2")), Adopted, Adopted)]
#[case::handed_over(annotated("interlock.dev/adopt", "ns/inst"), Owned, Owned)]
#[case::given_to_one_of_another_namespace(
    annotated("interlock.dev/adopt", "other/inst"),
    unmanaged(),
    Adopted
)]
#[case::given_without_a_namespace(annotated("interlock.dev/adopt", "inst"), unmanaged(), Adopted)]
fn cluster_scoped(#[case] metadata: Value, #[case] deny: Ownership, #[case] allow: Ownership) {
    let metadata = with(json!({"name": "x"}), &metadata);
    let current = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    assert_eq!(ownership(&current, &instance(), Adoption::Deny), deny);
    assert_eq!(ownership(&current, &instance(), Adoption::Allow), allow);
}

#[test]
fn what_is_adopted_gets_no_owner() {
    let wanted =
        json!({"metadata": {"name": "x", "namespace": "ns", "ownerReferences": owners("inst", "uid-1")}});
    let current = json!({"metadata": {"name": "x", "namespace": "ns", "annotations": {"interlock.dev/adopted-by": "uid-0"}}});
    assert_eq!(with_ownership(&wanted, &current, &Owned, &instance()), Ok(wanted.clone()));
    let adopted = with_ownership(&wanted, &current, &Adopted, &instance()).unwrap();
    let metadata = json!({"name": "x", "namespace": "ns", "labels": {}, "annotations": {"interlock.dev/adopted-by": "uid-1"}});
    assert_eq!(adopted["metadata"], metadata);
}

#[test]
fn what_others_made_in_the_cluster_is_not_marked_as_ours() {
    let wanted = json!({"metadata": {"name": "x", "labels": {"interlock.dev/instance-uid": "uid-1"}}});
    let current = json!({"metadata": {"name": "x", "annotations": {"interlock.dev/adopted-by": "uid-0"}}});
    let adopted = with_ownership(&wanted, &current, &Adopted, &instance()).unwrap();
    let metadata = json!({"name": "x", "labels": {}, "annotations": {"interlock.dev/adopted-by": "uid-0"}});
    assert_eq!(adopted["metadata"], metadata, "the first one stays");
}

#[test]
fn a_package_does_not_speak_for_the_owner() {
    let mut object = json!({"metadata": {
        "name": "x", "labels": {"a": "b", "interlock.dev/instance-uid": "uid-2"},
        "annotations": {
            "interlock.dev/adopt": "inst", "interlock.dev/adopted-by": "uid-2", "interlock.dev/shared-by": "uid-2",
            "interlock.dev/keep": "",
        },
    }});
    strip(&mut object);
    let metadata = json!({"name": "x", "labels": {"a": "b"}, "annotations": {"interlock.dev/keep": ""}});
    assert_eq!(object["metadata"], metadata);
}

/// The text of an Event, of at most 1,024 bytes.
#[rstest]
#[case::unmanaged(
    Some("ns"),
    ForeignOwner::Unmanaged,
    "annotate it interlock.dev/adopt: inst to hand it over"
)]
#[case::cluster_scoped(
    None,
    ForeignOwner::Unmanaged,
    "annotate it interlock.dev/adopt: ns/inst to hand it over"
)]
#[case::of_an_instance(Some("ns"), ForeignOwner::Instance("other".to_owned()), "is of Instance other")]
#[case::controlled(Some("ns"), ForeignOwner::Controller("ReplicaSet web".to_owned()), "is controlled by ReplicaSet web")]
fn refusals_name_the_object_and_the_ways_out(
    #[case] namespace: Option<&str>,
    #[case] owner: ForeignOwner,
    #[case] text: &str,
) {
    let current =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}});
    let key = ObjectKey::of(&current).unwrap();
    let said = not_adopted(&key, &owner, &instance());
    assert!(said.starts_with(&format!("{key} exists, and ")) && said.contains(text), "{said}");
    assert!(
        said.contains("then run `interlock plan retry ")
            && said.ends_with(" --reason WHY`")
            && said.len() < 640,
        "{said}"
    );
    let allows = !matches!(owner, ForeignOwner::Instance(_));
    assert_eq!(
        said.contains("set adoption: Allow for namespace ns in spec.instances.existingObjects"),
        allows
    );
}
