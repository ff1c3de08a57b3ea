//! The KudoOperator task: makes a child Instance of another package, and waits for its plan (KUDO
//! `task/task_kudo_operator.go`).
//!
//! The child is written like any object that a task applies, so admission schedules its plan, and the health of an
//! Instance is the result of that plan. For KUDO a child that failed is done; here it fails the run.

use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::object::Gvk;
use serde_json::{Value, json};

use super::apply;
use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError, reason};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render;
use crate::engine::render::TaskContext;
use crate::package::bundle;
use crate::package::dependencies;

/// The kind of task.
pub(super) struct KudoOperator;

#[derive(Debug)]
struct KudoOperatorTask<'a> {
    /// Operator of the child.
    package: &'a str,
    operator_version: &'a str,
    /// Empty for a package without one.
    app_version: &'a str,
    /// Name of the child, where the task says it.
    instance_name: Option<&'a str>,
    /// Template of its parameters.
    parameter_file: Option<&'a str>,
}

impl TaskKind for KudoOperator {
    fn name(&self) -> &'static str {
        bundle::CHILD_KIND
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let invalid = |field: &str, lacks: &str, remedy| {
            let name = task.name.as_deref().unwrap_or_default();
            let message = format!("task validation error: kudo operator task '{name}' has an empty {lacks}");
            InvalidTask::new(field, message, remedy)
        };
        let package = task_kind::text(task, |spec| spec.package.as_ref())
            .ok_or_else(|| invalid("spec.package", "package name", "name the operator of the child"))?;
        let operator_version =
            task_kind::text(task, |spec| spec.operator_version.as_ref()).ok_or_else(|| {
                invalid("spec.operatorVersion", "operatorVersion", "name the version of the child")
            })?;
        Ok(Box::new(KudoOperatorTask {
            package,
            operator_version,
            app_version: task_kind::text(task, |spec| spec.app_version.as_ref()).unwrap_or_default(),
            instance_name: task_kind::text(task, |spec| spec.instance_name.as_ref()),
            parameter_file: task_kind::text(task, |spec| spec.parameter_file.as_ref()),
        }))
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::one("parameterFile", spec.parameter_file.as_deref())
    }
}

impl KudoOperatorTask<'_> {
    /// The child as it is applied, before it gets the metadata of every object of a package.
    fn instance(&self, context: &TaskContext<'_>) -> Result<Value, TaskError> {
        let run = context.run;
        let name = dependencies::child_name(&run.instance.name, self.package, self.instance_name);
        let fatal = |cause: String| TaskError::fatal(reason::RENDERING, cause);
        if name == run.instance.name {
            let cause = format!("the child would be Instance {name} itself; give it another instanceName");
            return Err(fatal(cause));
        }
        render::addressable(&Gvk::new(meta::KUDO_API_VERSION, "Instance"), &name).map_err(fatal)?;
        let parameters = match self.parameter_file {
            Some(file) => render::parameters(context, file)?,
            None => BTreeMap::new(),
        };
        let version = bundle::version_name(self.package, self.app_version, self.operator_version);
        let mut reference = json!({ "name": version });
        // What a package installs is beside it.
        let beside = &run.package.key.namespace;
        if *beside != run.instance.namespace {
            reference["namespace"] = json!(beside);
        }
        let object = json!({
            "apiVersion": meta::KUDO_API_VERSION,
            "kind": "Instance",
            "metadata": { "name": name, "labels": { meta::OPERATOR: self.package } },
            "spec": { "operatorVersion": reference, "parameters": parameters },
        });
        let what = || format!("the child Instance {name}");
        match render::too_large(&object, what, "give it fewer or shorter parameters") {
            Some(cause) => Err(fatal(cause)),
            None => Ok(object),
        }
    }
}

impl Tasker for KudoOperatorTask<'_> {
    fn child(&self, context: &TaskContext<'_>) -> Result<Option<Value>, TaskError> {
        self.instance(context).map(Some)
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        let child = || Ok(vec![self.instance(context)?]);
        let objects = context.run.rendered.objects(context.place(), child, render::full)?;
        task_kind::claimed(context, objects, owners, |objects, owners| {
            apply::advance(context, objects, observed, owners)
        })
    }
}

#[cfg(test)]
mod tests;
