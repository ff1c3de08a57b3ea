//! What is listed of a run, and what becomes of it when the Instance is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::inventory::{ListedObject, ObjectInventory};
use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::reconcile::{KindServed, Lookup};
use rstest::rstest;
use serde_json::{Value, json};

use super::{LeftObject, Release, Remainder, release, told};
use crate::api::ExecutionStatus::Complete;
use crate::engine::advance::fixture::phase;
use crate::engine::advance::sim::{Fixture, Process, Server, failure, manifest};
use crate::engine::lookup::Observed;
use crate::package::time_limits::RunLimits;

const KINDS: [(&str, &str, &str); 4] = [
    ("a", "v1", "ConfigMap"),
    ("r", "rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("s", "rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("d", "v1", "PersistentVolume"),
];

/// A plan of a step for each of these tasks, `apply-X` or `delete-X`.
fn fixture(tasks: &[&str]) -> Fixture {
    let mut templates = BTreeMap::new();
    let mut all: Vec<Value> = Vec::new();
    for (name, version, kind) in KINDS {
        let file = format!("{name}.yaml");
        templates.insert(file.clone(), manifest(version, kind, name));
        for (verb, kind) in [("apply", "Apply"), ("delete", "Delete")] {
            all.push(json!({"name": format!("{verb}-{name}"), "kind": kind, "spec": {"resources": [file]}}));
        }
    }
    let steps: Vec<[&str; 1]> = tasks.iter().map(|task| [*task]).collect();
    let steps: Vec<&[&str]> = steps.iter().map(<[&str; 1]>::as_slice).collect();
    Fixture::new(json!({
        "operator": {"name": "op"}, "version": "1.2.3", "templates": templates, "tasks": all,
        "plans": {"deploy": phase(json!("serial"), &steps)},
    }))
}

fn listed(inventory: &ObjectInventory) -> Vec<&str> {
    inventory.all().into_iter().map(|object| object.name.as_str()).collect()
}

#[rstest]
#[case::none(&["apply-a"], &[])]
#[case::one(&["apply-a", "apply-r"], &["r"])]
#[case::two(&["apply-r", "apply-s"], &["r", "s"])]
#[case::that_hold_data(&["apply-d"], &[])]
fn what_a_run_makes_in_the_cluster_is_listed(#[case] tasks: &[&str], #[case] expected: &[&str]) {
    let (fixture, mut server) = (fixture(tasks), Server::default());
    let mut process = Process::new(fixture.run(), fixture.start());
    process.watch = |_, step| {
        let makes = step
            .effects
            .iter()
            .flatten()
            .any(|effect| matches!(effect, Effect::Create { object } if object["kind"] == "ClusterRole"));
        assert!(!makes || step.finalizer, "the Instance has the finalizer before");
    };
    let step = process.finish(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    assert_eq!(listed(&process.inventory), expected);
    assert_eq!(step.finalizer, !expected.is_empty());
}

/// One that an earlier process has made without a list, or that another Instance has made.
#[rstest]
#[case::of_this_one(Some("uid-1"), None, true)]
#[case::of_another(Some("uid-2"), None, true)]
#[case::of_both(Some("uid-2"), Some("uid-1"), true)]
#[case::of_nobody(None, None, false)]
fn what_is_there_is_listed_where_an_instance_has_made_it(
    #[case] creator: Option<&str>,
    #[case] others: Option<&str>,
    #[case] expected: bool,
) {
    let (fixture, mut server) = (fixture(&["apply-r"]), Server::default());
    server.put(role("r", creator, others));
    let mut process = Process::new(fixture.run(), fixture.start());
    drop(process.finish(&mut server).unwrap());
    assert_eq!(listed(&process.inventory).is_empty(), !expected);
}

#[test]
fn a_process_that_is_killed_at_any_write_leaves_nothing_unlisted() {
    for lives in 1.. {
        let (fixture, mut server) = (fixture(&["apply-a", "apply-r", "apply-s"]), Server::default());
        let mut process = Process::new(fixture.run(), fixture.start());
        process.lives = lives;
        let whole = process.finish(&mut server).is_ok();
        let known = listed(&process.inventory);
        let made = server.objects.keys().filter(|key| key.namespace.is_none());
        assert!(made.clone().all(|key| known.contains(&key.name.as_str())), "{lives}: {known:?}");
        if whole {
            assert_eq!((made.count(), known), (2, vec!["r", "s"]));
            break;
        }
    }
}

/// With pruning, what the plan does not render any more is not on the list.
#[test]
fn pruning_takes_off_what_it_has_removed() {
    let mut server = Server::default();
    let mut inventory = ObjectInventory::default();
    for (tasks, expected) in [(&["apply-r", "apply-s"][..], &["r", "s"][..]), (&["apply-r"][..], &["r"][..])]
    {
        let fixture = fixture(tasks);
        let mut process = Process::new(fixture.run(), fixture.start());
        process.limits = RunLimits { prunes: true, ..RunLimits::default() };
        process.inventory = inventory;
        drop(process.finish(&mut server).unwrap());
        inventory = process.inventory;
        assert_eq!(listed(&inventory), expected);
    }
    assert_eq!(server.objects.len(), 1);
}

fn role(name: &str, creator: Option<&str>, others: Option<&str>) -> Value {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "uid": "r-uid", "resourceVersion": "7"},
    });
    if let Some(creator) = creator {
        role["metadata"]["labels"] = json!({meta::INSTANCE_UID: creator});
    }
    if let Some(others) = others {
        role["metadata"]["annotations"] = json!({meta::SHARED_BY: others});
    }
    role
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { namespace: None, ..ObjectKey::of(&role(name, None, None)).unwrap() }
}

/// Uid `a` is deleted; what is done about a ClusterRole `r` that its inventory lists.
fn about(found: Option<Lookup>, failed: Option<ApiFailure>, served: Option<KindServed>) -> Release {
    let mut observed = Observed::default();
    observed.facts.kinds.extend(served.map(|served| (key("r").gvk, served)));
    observed.facts.objects.extend(found.map(|found| (key("r"), found)));
    observed.facts.failures.extend(failed.map(|failure| (key("r"), failure)));
    let listed = BTreeSet::from([ListedObject::of(&role("r", None, None)).unwrap()]);
    release("a", &listed, &observed, &[])
}

fn present(role: Value) -> Option<Lookup> {
    Some(Lookup::Found(Arc::new(role)))
}

/// What one word says of a release.
fn word(release: &Release) -> String {
    let effect = release.effects.iter().flatten().next().map(|effect| match effect {
        Effect::Delete { uid, resource_version, .. } => format!("delete {uid} at {resource_version}"),
        Effect::Patch { patch, .. } => format!("patch {}", patch["metadata"]),
        other => format!("{other:?}"),
    });
    let need = match (release.needs.is_empty(), release.needs.kinds.is_empty()) {
        (true, _) => None,
        (false, false) => Some("kind".to_owned()),
        (false, true) => Some("look".to_owned()),
    };
    let named = |word: &str, objects: &[LeftObject]| {
        objects.first().map(|object| format!("{word} {:?}: {}", object.found, object.why))
    };
    let words = [effect, need, named("left", &release.left), named("waits", &release.waits)];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[rstest]
#[case::the_last(role("r", Some("a"), None), "delete r-uid at 7")]
#[case::the_maker_of_two(
    role("r", Some("a"), Some("b")),
    r#"patch {"annotations":{"interlock.dev/shared-by":null},"labels":{"interlock.dev/instance-uid":"b"}}"#
)]
#[case::another(
    role("r", Some("b"), Some("a")),
    r#"patch {"annotations":{"interlock.dev/shared-by":null},"labels":{"interlock.dev/instance-uid":"b"}}"#
)]
#[case::of_an_unknown_maker(
    role("r", None, Some("a")),
    r#"patch {"annotations":{"interlock.dev/shared-by":""},"labels":{"interlock.dev/instance-uid":null}}"#
)]
#[case::a_stranger(role("r", Some("b"), None), "")]
#[case::of_nobody(role("r", None, None), "")]
fn who_applies_it_decides(#[case] current: Value, #[case] expected: &str) {
    assert_eq!(word(&about(present(current), None, Some(KindServed::Cluster))), expected);
}

#[rstest]
#[case::adopted(json!({"annotations": {meta::ADOPTED_BY: "a"}, "labels": null}), "")]
#[case::to_be_kept(json!({"annotations": {meta::KEEP: ""}}), "left Last: it is annotated interlock.dev/keep")]
#[case::to_be_kept_and_shared(json!({"annotations": {meta::KEEP: "", meta::SHARED_BY: "b"}}), r#"patch {"annotations":{"interlock.dev/shared-by":null},"labels":{"interlock.dev/instance-uid":"b"}}"#)]
#[case::goes(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), "")]
fn what_it_says_of_itself_counts(#[case] metadata: Value, #[case] expected: &str) {
    let mut current = role("r", Some("a"), None);
    json_patch::merge(&mut current["metadata"], &metadata);
    assert_eq!(word(&about(present(current), None, Some(KindServed::Cluster))), expected);
}

#[rstest]
#[case::not_looked_up(None, "kind")]
#[case::of_the_cluster(Some(KindServed::Cluster), "look")]
#[case::of_a_namespace(Some(KindServed::Namespaced), "")]
#[case::whose_definition_is_gone(Some(KindServed::Undefined), "")]
#[case::that_never_was(Some(KindServed::NeverServed), "")]
#[case::not_served_now(
    Some(KindServed::NotServed),
    "waits Unread: the API server does not serve rbac.authorization.k8s.io/v1, Kind=ClusterRole now"
)]
#[case::unknown(
    Some(KindServed::Unknown),
    "waits Unread: it is not known yet whether the API server serves rbac.authorization.k8s.io/v1, Kind=ClusterRole"
)]
fn the_kind_decides(#[case] served: Option<KindServed>, #[case] expected: &str) {
    assert_eq!(word(&about(None, None, served)), expected);
}

fn mine() -> Option<Lookup> {
    present(role("r", Some("a"), None))
}

#[rstest]
#[case::gone(Some(Lookup::Absent), None, "")]
#[case::changed(mine(), Some(409), "look")]
#[case::gone_meanwhile(mine(), Some(404), "look")]
#[case::forbidden(mine(), Some(403), "left Last: no")]
#[case::refused_for_good(mine(), Some(422), "left Last: no")]
#[case::overloaded(mine(), Some(500), "waits Last: no")]
#[case::forbidden_to_leave(
    present(role("r", Some("b"), Some("a"))),
    Some(403),
    "left Shared: failed to patch a rbac.authorization.k8s.io/v1, Kind=ClusterRole /r: failed to execute patch: no"
)]
#[case::forbidden_to_read(None, Some(403), "left Unread: no")]
#[case::not_answered(None, Some(0), "waits Unread: no")]
fn what_the_api_server_says_counts(
    #[case] found: Option<Lookup>,
    #[case] code: Option<u16>,
    #[case] expected: &str,
) {
    let failed = code.map(|code| failure(code, "no"));
    assert_eq!(word(&about(found, failed, Some(KindServed::Cluster))), expected);
}

#[test]
fn what_holds_data_is_no_business_of_a_deletion() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"},
    });
    let listed = BTreeSet::from([ListedObject::of(&definition).unwrap()]);
    assert_eq!(release("a", &listed, &Observed::default(), &[]), Release::default());
}

#[test]
fn what_is_left_is_named_with_its_remedy() {
    let left = |name: &str, found| LeftObject { key: key(name), why: "no".to_owned(), found };
    let some = [left("r", Remainder::Last), left("s", Remainder::Shared), left("t", Remainder::Unread)];
    let notes: Vec<String> = told(&some, "ns/i").into_iter().map(|note| note.message).collect();
    let expected = [
        "ClusterRole r of Instance ns/i is left: no; `kubectl delete clusterrole.rbac.authorization.k8s.io r` removes it",
        "ClusterRole s goes on naming Instance ns/i among those that apply it: no",
        "ClusterRole t of Instance ns/i may be left: no; see `kubectl get clusterrole.rbac.authorization.k8s.io t`",
    ];
    assert_eq!(notes, expected);
    let many: Vec<LeftObject> = (0..11).map(|i| left(&format!("r{i}"), Remainder::Last)).collect();
    let notes = told(&many, "ns/i");
    assert_eq!(
        (notes.len(), notes[8].message.as_str()),
        (9, "3 more cluster-scoped objects of Instance ns/i are left")
    );
}
