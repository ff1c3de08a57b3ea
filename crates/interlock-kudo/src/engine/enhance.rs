//! Adds labels, annotations, namespace and owner to every object of a package (KUDO
//! `renderer/enhancer.go`, `renderer/consts.go`).

use interlock_core::api::map::{NotAMap, map_at};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey};
use serde_json::{Value, json};

use super::adoption;
use super::errors::{TaskError, reason};
use super::render::TaskContext;

/// Paths of pod templates, by group and kind; `*` matches any group.
const POD_TEMPLATES: [(&str, &str, &[&str]); 7] = [
    ("apps", "StatefulSet", &["spec", "template"]),
    ("apps", "Deployment", &["spec", "template"]),
    ("*", "ReplicaSet", &["spec", "template"]),
    ("*", "ReplicationController", &["spec", "template"]),
    ("*", "DaemonSet", &["spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
    // KUDO writes a spec.template here as well, which the API server drops.
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// The desired object, with labels, annotations, namespace and owner.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedObject {
    pub key: ObjectKey,
    /// The object, without [`meta::LAST_APPLIED_CONFIGURATION`].
    pub object: Value,
}

/// Adds the metadata of the Instance to a rendered object.
pub fn enhance(
    context: &TaskContext<'_>,
    mut object: Value,
    namespaced: bool,
) -> Result<WantedObject, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::ENHANCEMENT, cause);
    let gvk = Gvk::of(&object).ok_or_else(|| fatal("the object names no kind".to_owned()))?;
    adoption::strip(&mut object);
    labels(context, &gvk, &mut object)
        .map_err(|e| fatal(format!("fatal error: adding labels on parsed object: {e}")))?;
    annotations(context, &gvk, &mut object)
        .map_err(|e| fatal(format!("fatal error: adding annotations on parsed object {gvk}: {e}")))?;
    let metadata = map_at(&mut object, &["metadata"]).map_err(|e| fatal(e.to_string()))?;
    if namespaced {
        metadata.insert("namespace".to_owned(), context.run.instance.namespace.clone().into());
        set_controller_reference(context, &mut object).map_err(|e| {
            fatal(format!("fatal error: setting controller reference on parsed object {gvk}: {e}"))
        })?;
    } else {
        metadata.remove("namespace");
        let uid = [(meta::INSTANCE_UID, context.run.instance.uid.as_str())];
        set_entries(&mut object, &["metadata", "labels"], &uid).map_err(|e| fatal(e.to_string()))?;
    }
    let key =
        ObjectKey::of(&object).ok_or_else(|| fatal("the object names no kind or no name".to_owned()))?;
    Ok(WantedObject { key, object })
}

fn labels(context: &TaskContext<'_>, gvk: &Gvk, object: &mut Value) -> Result<(), NotAMap> {
    let own = own_operator(gvk, object).map(str::to_owned);
    let labels = [
        (meta::HERITAGE, meta::HERITAGE_VALUE),
        (meta::OPERATOR, own.as_deref().unwrap_or_else(|| context.run.package.operator())),
        (meta::INSTANCE, context.run.instance.name.as_str()),
    ];
    set_entries(object, &["metadata", "labels"], &labels)?;
    for template in pod_templates(gvk) {
        set_entries(object, &[template, &["metadata", "labels"]].concat(), &labels)?;
    }
    if (gvk.group.as_str(), gvk.kind.as_str()) == ("apps", "StatefulSet") {
        let claims = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
        for claim in claims.into_iter().flatten().filter(|claim| claim.is_object()) {
            set_entries(claim, &["metadata", "labels"], &labels)?;
        }
    }
    Ok(())
}

/// The operator that an Instance is of: clients find it by that label, not by the operator that made it.
fn own_operator<'o>(gvk: &Gvk, object: &'o Value) -> Option<&'o str> {
    let is_instance = (gvk.group.as_str(), gvk.kind.as_str()) == (meta::KUDO_GROUP, "Instance");
    object["metadata"]["labels"][meta::OPERATOR].as_str().filter(|_| is_instance)
}

/// Plan, phase and step are set on the object only: on a pod template they would restart the pods.
fn annotations(context: &TaskContext<'_>, gvk: &Gvk, object: &mut Value) -> Result<(), NotAMap> {
    for template in pod_templates(gvk) {
        let version = [(meta::OPERATOR_VERSION, context.run.package.version())];
        set_entries(object, &[template, &["metadata", "annotations"]].concat(), &version)?;
    }
    let annotations = [
        (meta::PLAN, context.run.plan),
        (meta::PHASE, context.phase),
        (meta::STEP, context.step),
        (meta::PLAN_UID, context.run.uid),
    ];
    set_entries(object, &["metadata", "annotations"], &annotations)
}

/// Paths of the pod templates of a kind.
pub(super) fn pod_templates(gvk: &Gvk) -> impl Iterator<Item = &'static [&'static str]> {
    let matches = |(group, kind, _): &&(&str, &str, &[&str])| {
        (*group == "*" || *group == gvk.group) && *kind == gvk.kind
    };
    POD_TEMPLATES.iter().filter(matches).map(|(_, _, path)| *path).collect::<Vec<_>>().into_iter()
}

/// Sets entries of the map at a path, and adds missing maps on the way. A value that is not a map
/// ends the run here: the API server would reject it on every retry.
pub(super) fn set_entries(
    object: &mut Value,
    path: &[&str],
    entries: &[(&str, &str)],
) -> Result<(), NotAMap> {
    let map = map_at(object, path)?;
    map.extend(entries.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))));
    Ok(())
}

/// Makes the Instance the controller of an object.
fn set_controller_reference(context: &TaskContext<'_>, object: &mut Value) -> Result<(), String> {
    let instance = context.run.instance;
    let metadata = map_at(object, &["metadata"]).map_err(|e| e.to_string())?;
    let references = metadata.entry("ownerReferences").or_insert(Value::Null);
    if references.is_null() {
        *references = json!([]);
    }
    let Value::Array(references) = references else {
        return Err("metadata.ownerReferences is not a list".to_owned());
    };
    references.retain(|r| r["uid"] != instance.uid.as_str());
    if let Some(other) = references.iter().find(|r| r["controller"] == true) {
        return Err(format!("the template names another controller, {} {}", other["kind"], other["name"]));
    }
    references.push(json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "Instance",
        "name": instance.name,
        "uid": instance.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use go_template::Never;
    use interlock_core::api::object::NamespacedName;
    use interlock_core::api::values::Values;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::render_cache::{Parameters, Rendered};
    use crate::engine::run::{InstanceId, Run};
    use crate::package::Package;

    fn enhanced(object: Value, namespaced: bool) -> Result<WantedObject, TaskError> {
        let spec = json!({"operator": {"name": "op"}, "version": "1.2.3"});
        let package = Package::new(NamespacedName::new("ns", "ov"), serde_json::from_value(spec).unwrap());
        let instance =
            InstanceId { namespace: "ns".to_owned(), name: "inst".to_owned(), uid: "uid-1".to_owned() };
        let values = Values::new();
        let run = Run {
            package: &package,
            instance: &instance,
            plan: "deploy",
            uid: "run-1",
            values: &values,
            transient: &[],
            helper: crate::engine::run::PipeHelper::kudo(),
            seed: None,
            rendered: &Rendered::default(),
            interrupt: &Never,
        };
        let context = TaskContext {
            run: &run,
            params: &Parameters::default(),
            phase: "main",
            step: "first",
            task: "app",
        };
        enhance(&context, object, namespaced)
    }

    fn object(api_version: &str, kind: &str, rest: Value) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        object
    }

    #[rstest]
    #[case::object(json!({"metadata": {"name": "x", "labels": null, "annotations": null}}))]
    #[case::pods(json!({"spec": {"template": {"metadata": {"labels": null, "annotations": null}}}}))]
    #[case::metadata_of_pods(json!({"spec": {"template": {"metadata": null}}}))]
    fn what_is_null_is_absent(#[case] rest: Value) {
        let absent = enhanced(object("apps/v1", "Deployment", json!({})), true);
        assert_eq!(enhanced(object("apps/v1", "Deployment", rest), true), absent);
    }

    /// Every path in an object that names its Instance or version.
    fn marked(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if map.get("kudo.dev/instance").is_some_and(|v| v == "inst") {
                    found.push(path.to_owned());
                }
                if map.get("kudo.dev/operator-version").is_some_and(|v| v == "1.2.3") {
                    found.push(path.to_owned());
                }
                map.iter().for_each(|(key, value)| marked(value, &format!("{path}/{key}"), found));
            }
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, value)| marked(value, &format!("{path}/{i}"), found));
            }
            _ => {}
        }
    }

    const TEMPLATE: [&str; 2] = ["/spec/template/metadata/annotations", "/spec/template/metadata/labels"];

    #[rstest]
    #[case::deployment("apps/v1", "Deployment", &TEMPLATE)]
    #[case::stateful_set("apps/v1", "StatefulSet", &["/spec/template/metadata/annotations", "/spec/template/metadata/labels", "/spec/volumeClaimTemplates/0/metadata/labels"])]
    #[case::replica_set("apps/v1", "ReplicaSet", &TEMPLATE)]
    #[case::daemon_set("extensions/v1beta1", "DaemonSet", &TEMPLATE)]
    #[case::replication_controller("v1", "ReplicationController", &TEMPLATE)]
    #[case::job("batch/v1", "Job", &TEMPLATE)]
    #[case::cron_job("batch/v1", "CronJob", &["/spec/jobTemplate/spec/template/metadata/annotations", "/spec/jobTemplate/spec/template/metadata/labels"])]
    #[case::deployment_of_another_group("example.com/v1", "Deployment", &[])]
    #[case::config_map("v1", "ConfigMap", &[])]
    #[case::pod("v1", "Pod", &[])]
    fn places(#[case] api_version: &str, #[case] kind: &str, #[case] templates: &[&str]) {
        let claims = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        let rest = if kind == "StatefulSet" { claims } else { json!({}) };
        let wanted = enhanced(object(api_version, kind, rest), true).unwrap();
        let mut found = Vec::new();
        marked(&wanted.object, "", &mut found);
        found.sort();
        let mut expected: Vec<&str> = templates.to_vec();
        expected.push("/metadata/labels");
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn labels_of_the_template_are_kept_and_ours_win() {
        let labels = json!({"app": "db", "heritage": "Helm"});
        let wanted = enhanced(
            json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "elsewhere", "labels": labels}}),
            true,
        );
        let metadata = &wanted.unwrap().object["metadata"];
        assert_eq!(
            (&metadata["labels"]["app"], &metadata["labels"]["heritage"]),
            (&json!("db"), &json!("kudo"))
        );
        assert_eq!(metadata["namespace"], "ns");
    }

    #[rstest]
    #[case::of_an_instance("kudo.dev/v1beta1", "Instance", Some("zookeeper"), "zookeeper")]
    #[case::of_an_instance_without_it("kudo.dev/v1beta1", "Instance", None, "op")]
    #[case::of_another_kind("v1", "ConfigMap", Some("zookeeper"), "op")]
    fn the_operator(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] own: Option<&str>,
        #[case] expected: &str,
    ) {
        let mut object = object(version, kind, json!({}));
        object["metadata"]["labels"] = json!({"kudo.dev/operator": own});
        let labels = &enhanced(object, true).unwrap().object["metadata"]["labels"];
        assert_eq!(labels["kudo.dev/operator"], expected);
    }

    #[test]
    fn plan_phase_and_step_are_on_the_object_alone() {
        let wanted = enhanced(object("apps/v1", "Deployment", json!({})), true).unwrap().object;
        assert_eq!(
            wanted["spec"]["template"]["metadata"]["annotations"],
            json!({"kudo.dev/operator-version": "1.2.3"})
        );
        assert_eq!(
            wanted["metadata"]["annotations"],
            json!({
                "kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "first",
                "kudo.dev/last-plan-execution-uid": "run-1",
            })
        );
    }

    #[test]
    fn cluster_scoped_objects_have_no_namespace_and_no_owner() {
        let mut role = object("rbac.authorization.k8s.io/v1", "ClusterRole", json!({}));
        role["metadata"]["namespace"] = "elsewhere".into();
        let wanted = enhanced(role, false).unwrap();
        assert_eq!(wanted.key.namespace, None);
        let metadata = &wanted.object["metadata"];
        assert_eq!((metadata.get("namespace"), metadata.get("ownerReferences")), (None, None));
        assert_eq!(metadata["labels"]["interlock.dev/instance-uid"], "uid-1");
    }

    #[rstest]
    #[case::none(json!(null), 1)]
    #[case::of_others(json!([{"uid": "other"}]), 2)]
    #[case::ours(json!([{"uid": "uid-1"}]), 1)]
    fn the_instance_is_the_controller(#[case] found: Value, #[case] count: usize) {
        let mut config = object("v1", "ConfigMap", json!({}));
        config["metadata"]["ownerReferences"] = found;
        let owners = enhanced(config, true).unwrap().object["metadata"]["ownerReferences"].clone();
        let owners = owners.as_array().unwrap();
        assert_eq!(owners.len(), count);
        assert_eq!(
            (&owners[count - 1]["uid"], &owners[count - 1]["controller"]),
            (&json!("uid-1"), &json!(true))
        );
    }

    #[rstest]
    #[case::controller(json!({"metadata": {"name": "x", "ownerReferences": [{"uid": "o", "kind": "A", "name": "b", "controller": true}]}}), "setting controller reference on parsed object apps/v1, Kind=Deployment: the template names another controller, \"A\" \"b\"")]
    #[case::template(json!({"spec": {"template": "x"}}), "adding labels on parsed object: value at .spec.template is not an object: \"x\"")]
    #[case::spec(json!({"spec": []}), "adding labels on parsed object: value at .spec is not an object: []")]
    #[case::labels(json!({"metadata": {"name": "x", "labels": "x"}}), "adding labels on parsed object: value at .metadata.labels is not an object: \"x\"")]
    #[case::annotations(json!({"metadata": {"name": "x", "annotations": []}}), "adding annotations on parsed object apps/v1, Kind=Deployment: value at .metadata.annotations is not an object: []")]
    #[case::labels_of_pods(json!({"spec": {"template": {"metadata": {"labels": 1}}}}), "adding labels on parsed object: value at .spec.template.metadata.labels is not an object: 1")]
    #[case::annotations_of_pods(json!({"spec": {"template": {"metadata": {"annotations": true}}}}), "adding annotations on parsed object apps/v1, Kind=Deployment: value at .spec.template.metadata.annotations is not an object: true")]
    #[case::metadata_of_pods(json!({"spec": {"template": {"metadata": "x"}}}), "adding labels on parsed object: value at .spec.template.metadata is not an object: \"x\"")]
    fn objects_that_cannot_be_ours(#[case] rest: Value, #[case] cause: &str) {
        let error = enhanced(object("apps/v1", "Deployment", rest), true).unwrap_err();
        assert_eq!(error, TaskError::fatal(reason::ENHANCEMENT, format!("fatal error: {cause}")));
    }
}
