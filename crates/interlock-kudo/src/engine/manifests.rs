//! The objects of a plan as a run applies or deletes them, without an API server.

use std::collections::BTreeMap;

use interlock_core::api::object::Gvk;
use serde_json::Value;

use super::enhance;
use super::errors::{TaskError, reason};
use super::render;
use super::render::TaskContext;
use super::render_cache::Parameters;
use super::run::Run;
use super::tasks;
use crate::package::values;
use crate::package::values::ValueError;

/// Kinds of Kubernetes without a namespace (group, kind).
const CLUSTER_SCOPED: [(&str, &str); 31] = [
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("authentication.k8s.io", "TokenReview"),
    ("authorization.k8s.io", "SubjectAccessReview"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// A task of a plan, and its objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskManifests<'a> {
    pub phase: &'a str,
    pub step: &'a str,
    pub task: &'a str,
    /// Kind of the task, empty if there is no such task.
    pub kind: &'a str,
    /// Objects that it applies.
    pub applied: Vec<RenderedObject>,
    pub deleted: Vec<RenderedObject>,
    /// Why there are none.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RenderedObject {
    /// Template file; that of the parameters of a child Instance, empty where it has none.
    pub template: String,
    /// The object, with the labels, annotations, namespace and owner that a run adds.
    pub object: Value,
}

/// Every task of the plan of a run, in order, once for each step that names it. A kind that is neither one of
/// Kubernetes nor defined by the plan itself is taken as namespaced.
///
/// # Errors
/// A value that templates cannot be given.
pub fn of_plan<'a>(run: &Run<'a>) -> Result<Vec<TaskManifests<'a>>, ValueError> {
    let params = values::parameters(run.package, run.values)?;
    let mut all = Vec::new();
    for phase in run.package.plan(run.plan).and_then(|plan| plan.phases.as_deref()).unwrap_or_default() {
        for step in phase.steps.iter().flatten() {
            for task in step.tasks.iter().flatten() {
                let phase = phase.name.as_deref().unwrap_or_default();
                let step = step.name.as_deref().unwrap_or_default();
                let mut found = TaskManifests { phase, step, task, ..TaskManifests::default() };
                if let Err(error) = render_task(run, &params, &mut found) {
                    found.error = Some(text(error));
                }
                all.push(found);
            }
        }
    }
    let defined = defined(&all);
    for found in &mut all {
        if let Err(error) = enhance_all(run, &params, &defined, found) {
            found.applied.clear();
            found.deleted.clear();
            found.error = Some(text(error));
        }
    }
    Ok(all)
}

fn render_task<'a>(
    run: &Run<'a>,
    params: &Parameters,
    found: &mut TaskManifests<'a>,
) -> Result<(), TaskError> {
    let context = TaskContext { run, params, phase: found.phase, step: found.step, task: found.task };
    let Some(task) = run.package.task(found.task) else {
        return Err(TaskError::fatal(reason::UNKNOWN_TASK, format!("missing task {}", context.path())));
    };
    found.kind = task.kind.as_deref().unwrap_or_default();
    let tasker = tasks::build(task).map_err(TaskError::Build)?;
    let render = |files: &[String]| -> Result<Vec<RenderedObject>, TaskError> {
        let objects = render::with_files(&context, files)?.into_iter();
        Ok(objects.map(|(file, object)| RenderedObject { template: file.to_owned(), object }).collect())
    };
    found.deleted = render(tasker.deleted(&context)?)?;
    found.applied = render(tasker.applied(&context))?;
    if let Some(object) = tasker.child(&context)? {
        let template = tasks::templates(task).first().map_or("", |named| named.file).to_owned();
        found.applied.push(RenderedObject { template, object });
    }
    Ok(())
}

fn enhance_all(
    run: &Run<'_>,
    params: &Parameters,
    defined: &BTreeMap<(String, String), bool>,
    found: &mut TaskManifests<'_>,
) -> Result<(), TaskError> {
    let context = TaskContext { run, params, phase: found.phase, step: found.step, task: found.task };
    for RenderedObject { object, .. } in found.applied.iter_mut().chain(&mut found.deleted) {
        let namespaced = is_namespaced(object, defined);
        *object = enhance::enhance(&context, object.take(), namespaced)?.object;
    }
    Ok(())
}

/// Whether the kinds that the plan itself defines are namespaced, by group and kind.
fn defined(all: &[TaskManifests<'_>]) -> BTreeMap<(String, String), bool> {
    let objects = all.iter().flat_map(|found| &found.applied).map(|manifest| &manifest.object);
    let definitions = objects.filter(|object| object["kind"] == "CustomResourceDefinition");
    let scope = |definition: &Value| {
        let spec = &definition["spec"];
        let kind = (spec["group"].as_str()?.to_owned(), spec["names"]["kind"].as_str()?.to_owned());
        Some((kind, spec["scope"] != "Cluster"))
    };
    definitions.filter_map(scope).collect()
}

fn is_namespaced(object: &Value, defined: &BTreeMap<(String, String), bool>) -> bool {
    let Some(gvk) = Gvk::of(object) else { return true };
    let is_built_in = CLUSTER_SCOPED.contains(&(gvk.group.as_str(), gvk.kind.as_str()));
    !is_built_in && defined.get(&(gvk.group, gvk.kind)).copied().unwrap_or(true)
}

/// The cause of an error.
pub(super) fn text(error: TaskError) -> String {
    match error {
        TaskError::Transient(cause)
        | TaskError::Interrupted(cause)
        | TaskError::Rejected(_, cause)
        | TaskError::Fatal { cause, .. }
        | TaskError::Held { cause, .. } => cause,
        TaskError::Build(invalid) => invalid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use go_template::Never;
    use interlock_core::api::object::NamespacedName;
    use interlock_core::api::values::Values;
    use serde_json::json;

    use super::*;
    use crate::engine::render_cache::Rendered;
    use crate::engine::run::InstanceId;
    use crate::engine::seed::{Seed, SeedKey};
    use crate::package::Package;

    const SCALE: &str = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: scales.a.io}\n\
                         spec: {group: a.io, scope: Cluster, names: {kind: Scale}}\n---\n\
                         kind: Scale\napiVersion: a.io/v1\nmetadata: {name: s}\n";

    fn package(tasks: &Value) -> Package {
        let spec = json!({
            "operator": {"name": "web"}, "version": "1.0.0",
            "parameters": [{"name": "ON", "default": "false"}, {"name": "NAME", "default": "web"}],
            "plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": tasks}]}]}},
            "tasks": [
                {"name": "both", "kind": "Apply", "spec": {"resources": ["a.yaml", "scale.yaml"]}},
                {"name": "toggle", "kind": "Toggle", "spec": {"parameter": "ON", "resources": ["a.yaml"]}},
                {"name": "wrong", "kind": "Apply", "spec": {"resources": ["wrong.yaml"]}},
                {"name": "wait", "kind": "Dummy", "spec": {"done": true}},
            ],
            "templates": {
                "a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Params.NAME }}}\nstringData: {p: {{ randAlpha 8 }}}\n",
                "scale.yaml": SCALE,
                "wrong.yaml": "{{ .Params.NONE }}",
            },
        });
        Package::new(NamespacedName::new("ns", "web"), serde_json::from_value(spec).unwrap())
    }

    fn rendered(package: &Package, given: &[(&str, &str)], uid: &str) -> Vec<Value> {
        let instance = InstanceId { namespace: "ns".into(), name: "demo".into(), uid: "u".into() };
        let values: Values<'_> =
            given.iter().map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into())).collect();
        let key = SeedKey([7; 32]);
        let keys = std::sync::Arc::default();
        let seed = Seed { key: &key, started: jiff::Timestamp::UNIX_EPOCH, keys: &keys };
        let run = Run {
            package,
            instance: &instance,
            plan: "deploy",
            uid,
            values: &values,
            transient: &[],
            helper: crate::engine::run::PipeHelper::kudo(),
            seed: Some(seed),
            rendered: &Rendered::default(),
            interrupt: &Never,
        };
        let shown = |all: &[RenderedObject]| {
            let all = all.iter().map(|RenderedObject { template, object }| {
                json!([template, object["kind"], object["metadata"]["namespace"], object["stringData"]["p"]])
            });
            all.collect::<Vec<_>>()
        };
        let all = of_plan(&run).unwrap();
        let row = |found: &TaskManifests<'_>| {
            json!([found.task, found.kind, shown(&found.applied), shown(&found.deleted), found.error])
        };
        all.iter().map(row).collect()
    }

    #[test]
    fn each_task_has_its_objects_or_its_error() {
        let package = package(&json!(["both", "toggle", "wrong", "wait", "gone"]));
        let mut rows = rendered(&package, &[], "run-1");
        let password = rows[0][2][0][3].take();
        assert_eq!(password.as_str().map(str::len), Some(8));
        assert_eq!(rows[1][3][0][3].take(), password, "one run renders a template once");
        let error = "error expanding template wrong.yaml: error rendering template: template: wrong.yaml:1:10: executing \
                     \"wrong.yaml\" at <.Params.NONE>: map has no entry for key \"NONE\"";
        let expected = json!([
            [
                "both",
                "Apply",
                [
                    ["a.yaml", "Secret", "ns", null],
                    ["scale.yaml", "CustomResourceDefinition", null, null],
                    ["scale.yaml", "Scale", null, null],
                ],
                [],
                null
            ],
            ["toggle", "Toggle", [], [["a.yaml", "Secret", "ns", null]], null],
            ["wrong", "Apply", [], [], error],
            ["wait", "Dummy", [], [], null],
            ["gone", "", [], [], "missing task deploy.p.s.gone"],
        ]);
        assert_eq!(json!(rows), expected);
    }

    #[test]
    fn another_run_draws_another_password() {
        let package = package(&json!(["toggle"]));
        let password = |uid: &str| rendered(&package, &[("ON", "true")], uid)[0][2][0][3].clone();
        assert_eq!(password("run-1"), password("run-1"));
        assert_ne!(password("run-1"), password("run-2"));
    }

    #[test]
    fn a_parameter_that_toggles_nothing_is_an_error() {
        let rows = rendered(&package(&json!(["toggle"])), &[("ON", "maybe")], "run-1");
        assert!(rows[0][4].as_str().is_some_and(|error| error.contains("parameter ON")), "{rows:?}");
    }
}
