//! Objects that exist already, are being deleted, or are of a kind that is not served.

use interlock_core::api::object::Gvk;
use interlock_core::reconcile::KindServed;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::ExecutionStatus;
use crate::api::ExecutionStatus::{Complete, FatalError, InProgress};
use crate::engine::advance::fixture::{config_map, key, made, one, package, phase};
use crate::engine::advance::sim::{Did, Fixture, Process, Server, manifest};

#[rstest]
#[case::on("T", true)]
#[case::off("0", false)]
fn a_toggle_applies_or_deletes(#[case] value: &'static str, #[case] present: bool) {
    let fixture = one("toggle").with("ON", value);
    for there in [false, true] {
        let mut server = Server::default();
        if there {
            server.put(made("v1", "ConfigMap", "a"));
        }
        let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
        assert_eq!(step.state.status.status, Complete);
        assert_eq!(server.objects.contains_key(&config_map("a")), present);
    }
}

#[test]
fn deletion_is_waited_for() {
    let fixture = one("delete-j");
    let mut server = Server::default();
    server.put(made("batch/v1", "Job", "j"));
    let mut process = Process::new(fixture.run(), fixture.start());
    for _ in 0..2 {
        let step = process.pass(&mut server).unwrap();
        assert_eq!(
            (step.state.status.status, step.waiting),
            (InProgress, vec!["Job ns/j is being deleted".to_owned()])
        );
    }
    server.tick();
    assert_eq!(process.pass(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(server.ledger, [Did::Delete(key("batch/v1", "Job", "j"))]);
}

#[rstest]
#[case::claim("v1", "PersistentVolumeClaim", json!({}), true)]
#[case::volume("v1", "PersistentVolume", json!({}), true)]
#[case::namespace("v1", "Namespace", json!({}), true)]
#[case::definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), true)]
#[case::role("rbac.authorization.k8s.io/v1", "ClusterRole", json!({}), false)]
#[case::annotated("v1", "ConfigMap", json!({"interlock.dev/keep": ""}), true)]
#[case::other("v1", "ConfigMap", json!({}), false)]
fn data_is_reported_and_not_deleted(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] annotations: Value,
    #[case] kept: bool,
) {
    let mut spec = package(phase(json!("serial"), &[&["delete-a"]]));
    spec["templates"]["a.yaml"] = manifest(api_version, kind, "a").into();
    let fixture = Fixture::new(spec);
    let mut server = Server::default();
    let mut object = made(api_version, kind, "a");
    object["metadata"]["annotations"] = annotations;
    if server.kind(&Gvk::new(api_version, kind)) == KindServed::Cluster {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| key == "name" || key == "annotations");
        metadata.insert("labels".to_owned(), json!({"interlock.dev/instance-uid": "uid-1"}));
    }
    server.put(object);
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    assert_eq!((server.objects.len(), server.ledger.is_empty()), (usize::from(kept), kept));
    assert_eq!(step.notes.len(), usize::from(kept));
    if kept {
        assert!(step.notes[0].message.contains("is kept:"), "{}", step.notes[0].message);
    }
}

/// Objects of an undefined kind are gone; those of a kind that is not served, or possibly not, may
/// exist.
#[rstest]
#[case::never_served(KindServed::NeverServed, Complete, "")]
#[case::not_defined(KindServed::Undefined, Complete, "")]
#[case::withheld(KindServed::NotServed, InProgress, "the API server does not serve batch/v1, Kind=Job now")]
#[case::unsure(
    KindServed::Unknown,
    InProgress,
    "it is not known yet whether the API server serves batch/v1, Kind=Job"
)]
fn deletion_passes_over_kinds_that_are_not_defined(
    #[case] served: KindServed,
    #[case] status: ExecutionStatus,
    #[case] waiting: &str,
) {
    let fixture = one("delete-j");
    let mut server = Server { served: [("Job", served)].into(), ..Server::default() };
    server.put(made("batch/v1", "Job", "j"));
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!((step.state.status.status, step.waiting.join("; ")), (status, waiting.to_owned()));
    assert_eq!(step.absent.is_empty(), served != KindServed::NotServed, "Stalled names it");
    if step.waiting.is_empty() {
        return;
    }
    server.served.clear();
    let _ = process.pass(&mut server).unwrap();
    assert_eq!(server.ledger, [Did::Delete(key("batch/v1", "Job", "j"))], "it is deleted once it is seen");
}

#[test]
fn applying_a_kind_that_is_not_served_is_fatal() {
    let fixture = one("apply-j");
    let mut server = Server { served: [("Job", KindServed::NeverServed)].into(), ..Server::default() };
    let fatal = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap().fatal.unwrap();
    assert_eq!(fatal.reason, "TaskEnhancementError");
    assert!(
        fatal
            .message
            .ends_with("a resource with GVK batch/v1, Kind=Job seems to be missing in API resource list")
    );
}

#[test]
fn a_kind_that_is_being_defined_is_waited_for() {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"]]));
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: \
                      things.x.io\nspec:\n  group: x.io\n  names:\n    kind: Thing\n";
    spec["templates"]["a.yaml"] = format!("{definition}---\n{}", manifest("x.io/v1", "Thing", "t")).into();
    let fixture = Fixture::new(spec);
    let mut server = Server { served: [("Thing", KindServed::NeverServed)].into(), ..Server::default() };
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.fatal, None);
    assert_eq!(step.waiting[0], "the API server does not serve x.io/v1, Kind=Thing yet");
    assert_eq!(server.objects.len(), 1);
    server.served.clear();
    server.objects.values_mut().next().unwrap()["status"] =
        json!({"conditions": [{"type": "Established", "status": "True"}]});
    assert_eq!(process.pass(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(server.objects.len(), 2);
}

#[rstest]
#[case::of_somebody_else(json!({"annotations": {"a": "b"}}), FatalError, "; then run `interlock plan retry inst -n ns --reason WHY`")]
#[case::without_annotations(json!({}), FatalError, "; then run `interlock plan retry inst -n ns --reason WHY`")]
#[case::given(json!({"annotations": {"interlock.dev/adopt": "inst"}}), Complete, "")]
#[case::going_away(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), InProgress, "ConfigMap ns/a is being deleted")]
#[case::of_a_former_instance(json!({"ownerReferences": [{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-0", "controller": true}]}), InProgress, "ConfigMap ns/a belongs to a former Instance inst and is about to be removed")]
fn objects_that_are_there_already(
    #[case] metadata: Value,
    #[case] status: ExecutionStatus,
    #[case] text: &str,
) {
    let fixture = one("apply-a");
    let mut server = Server::default();
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    server.put(object);
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, status);
    let said = step.fatal.map(|f| f.message).or_else(|| step.waiting.first().cloned()).unwrap_or_default();
    assert!(said.ends_with(text), "{said}");
}
