//! Converts a package directory to the objects that `kubectl kudo install` writes.
//!
//! Source of every rule here: KUDO v0.19, `pkg/kudoctl/packages` (reader, convert) and
//! `pkg/util/convert`, and the observed output of that client.

use std::collections::BTreeMap;

use go_template::yaml::{self, YamlError};
use interlock_core::api::meta;
use interlock_core::api::meta::KUDO_API_VERSION;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use self::field::PackagedField;
use crate::api::{Parameter, Task};

pub(super) mod field;
mod value;

pub use field::WrongType;
pub use value::parameter_text;

/// The two files and the templates of a package, as text.
#[derive(Clone, Debug, Default)]
pub struct PackageFiles {
    /// `operator.yaml`
    pub operator: String,
    /// `params.yaml`
    pub params: String,
    /// Files under `templates/`, by their path below it.
    pub templates: BTreeMap<String, String>,
}

/// Why a package cannot be installed.
#[derive(Debug, Error)]
pub enum PackageError {
    /// A file is not YAML.
    #[error("{file}: {error}")]
    Yaml {
        /// Name of the file.
        file: &'static str,
        /// The parse error.
        error: YamlError,
    },
    /// A field has a value of another type.
    #[error("{file}: {error}")]
    Type {
        /// Name of the file.
        file: &'static str,
        /// Field and type.
        error: WrongType,
    },
    /// A field is missing.
    #[error("{file}: {field} is missing; a package needs one")]
    Missing {
        /// Name of the file.
        file: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// An unknown `apiVersion`.
    #[error("{file}: apiVersion is {found}, but only {KUDO_API_VERSION} is known")]
    ApiVersion {
        /// Name of the file.
        file: &'static str,
        /// The value of `apiVersion`.
        found: String,
    },
    /// A value of an `enum` is null.
    #[error("params.yaml: parameter {parameter}: a value of enum is null; write \"\" for an empty one")]
    NullEnum { parameter: String },
    /// Invalid tasks, a message each.
    #[error("operator.yaml: {}", .0.join("\noperator.yaml: "))]
    Tasks(Vec<String>),
}

/// The objects of a package, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageBundle {
    pub operator_name: String,
    pub version: String,
    /// Lowest version of Kubernetes that the package names.
    pub kubernetes_version: Option<String>,
    /// `Operator`, without a namespace.
    pub operator: Value,
    /// `OperatorVersion`, without a namespace.
    pub operator_version: Value,
    /// Name of the OperatorVersion.
    pub operator_version_name: String,
    /// Names of required parameters without a default.
    pub must_be_given: Vec<String>,
}

/// A task that installs another package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagedChild {
    /// Name of the task.
    pub task: String,
    /// The other package as `operator.yaml` names it: an operator, a path, or a URL.
    pub package: String,
    /// Its version, where the task names one.
    pub version: Option<String>,
    /// The version of its application, where the task names one.
    pub app_version: Option<String>,
    /// Place of the task among all.
    index: usize,
}

/// Finds the faults of a task, among the templates of its package.
pub type CheckTask = fn(&Task, &BTreeMap<String, String>) -> Vec<String>;

impl PackageBundle {
    /// Reads a package whose tasks this check accepts.
    pub fn read(source: &PackageFiles, check: CheckTask) -> Result<Self, PackageError> {
        let operator = parse(OPERATOR, &source.operator)?;
        let params = parse(PARAMS, &source.params)?;
        let (operator, params) = (PackagedField::root(&operator), PackagedField::root(&params));
        let name = required(&operator, "name")?;
        let version = required(&operator, "operatorVersion")?;
        let app_version = text(&operator, "appVersion")?;
        let kubernetes_version = text(&operator, "kubernetesVersion")?;
        let (tasks, problems) = tasks(&operator, &source.templates, check)?;
        if !problems.is_empty() {
            return Err(PackageError::Tasks(problems));
        }
        let parameters = parameters(&params)?;
        let must_be_given = parameters
            .iter()
            .filter(|p| p.required == Some(true) && p.default.is_none())
            .filter_map(|p| p.name.clone())
            .collect();
        let spec = filled([
            ("operator", json!({ "name": name, "kind": "Operator" })),
            ("version", json!(version)),
            ("appVersion", json!(app_version)),
            ("templates", json!(source.templates)),
            ("tasks", tasks),
            ("parameters", json!(parameters)),
            ("plans", plans(&operator)?),
        ]);
        let operator_version_name = version_name(&name, app_version.as_deref().unwrap_or_default(), &version);
        Ok(Self {
            operator: object("Operator", &name, operator_spec(&operator)?),
            operator_version: object("OperatorVersion", &operator_version_name, spec),
            operator_name: name,
            version,
            kubernetes_version,
            operator_version_name,
            must_be_given,
        })
    }

    /// The tasks that install other packages.
    pub fn children(&self) -> Vec<PackagedChild> {
        let tasks = self.operator_version["spec"]["tasks"].as_array();
        let child = |(index, task): (usize, &Value)| {
            let package = task["spec"]["package"].as_str().filter(|_| task["kind"] == CHILD_KIND)?;
            let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            Some(PackagedChild {
                task: text(&task["name"]).unwrap_or_default(),
                package: package.to_owned(),
                version: text(&task["spec"]["operatorVersion"]),
                app_version: text(&task["spec"]["appVersion"]),
                index,
            })
        };
        tasks.into_iter().flatten().enumerate().filter_map(child).collect()
    }

    /// Names the package that a task installs as a cluster knows it (KUDO
    /// `kudoctl/resources/dependencies/resolve.go`).
    pub fn resolve(&mut self, child: &PackagedChild, package: &Self) {
        let found = &package.operator_version["spec"];
        let spec = &mut self.operator_version["spec"]["tasks"][child.index]["spec"];
        spec["package"] = json!(package.operator_name);
        spec["operatorVersion"] = json!(package.version);
        let app_version = found["appVersion"].as_str().unwrap_or_default();
        match (spec.as_object_mut(), app_version) {
            (Some(spec), "") => drop(spec.remove("appVersion")),
            (_, app_version) => spec["appVersion"] = json!(app_version),
        }
    }

    pub fn default_instance_name(&self) -> String {
        format!("{}-instance", self.operator_name)
    }

    /// An Instance of the package, without a namespace.
    pub fn instance(&self, name: &str, parameters: &BTreeMap<String, String>) -> Value {
        let mut spec = Map::new();
        spec.insert("operatorVersion".to_owned(), json!({ "name": self.operator_version_name }));
        if !parameters.is_empty() {
            spec.insert("parameters".to_owned(), json!(parameters));
        }
        let mut instance = object("Instance", name, Value::Object(spec));
        instance["metadata"]["labels"] = json!({ meta::OPERATOR: self.operator_name });
        instance
    }
}

/// `spec.tasks[].kind` of a task that makes a child Instance.
pub const CHILD_KIND: &str = "KudoOperator";

const OPERATOR: &str = "operator.yaml";
const PARAMS: &str = "params.yaml";

/// Name of an OperatorVersion (KUDO `operatorversion_types_helpers.go`).
pub fn version_name(operator: &str, app_version: &str, version: &str) -> String {
    if app_version.is_empty() {
        format!("{operator}-{version}")
    } else {
        format!("{operator}-{app_version}-{version}")
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": KUDO_API_VERSION, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn parse(file: &'static str, text: &str) -> Result<Value, PackageError> {
    let value = yaml::read(text).map_err(|error| PackageError::Yaml { file, error })?;
    let version =
        PackagedField::root(&value).text("apiVersion").map_err(|error| PackageError::Type { file, error })?;
    match version.filter(|v| !v.is_empty() && v != KUDO_API_VERSION) {
        Some(found) => Err(PackageError::ApiVersion { file, found }),
        None => Ok(value),
    }
}

fn in_operator(error: WrongType) -> PackageError {
    PackageError::Type { file: OPERATOR, error }
}

fn in_params(error: WrongType) -> PackageError {
    PackageError::Type { file: PARAMS, error }
}

fn text(field: &PackagedField<'_>, key: &str) -> Result<Option<String>, PackageError> {
    Ok(field.text(key).map_err(in_operator)?.filter(|text| !text.is_empty()))
}

fn required(field: &PackagedField<'_>, key: &'static str) -> Result<String, PackageError> {
    text(field, key)?.ok_or(PackageError::Missing { file: OPERATOR, field: key })
}

/// An object without empty fields, as with Go's `omitempty`.
fn filled<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    fields
        .into_iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn operator_spec(operator: &PackagedField<'_>) -> Result<Value, PackageError> {
    let mut maintainers = Vec::new();
    for maintainer in operator.list("maintainers").map_err(in_operator)?.unwrap_or_default() {
        maintainers.push(filled([
            ("name", json!(text(&maintainer, "name")?)),
            ("email", json!(text(&maintainer, "email")?)),
        ]));
    }
    Ok(filled([
        ("description", json!(text(operator, "description")?)),
        ("kudoVersion", json!(text(operator, "kudoVersion")?)),
        ("kubernetesVersion", json!(text(operator, "kubernetesVersion")?)),
        ("maintainers", json!(maintainers)),
        ("url", json!(text(operator, "url")?)),
        ("namespaceManifest", json!(text(operator, "namespaceManifest")?)),
    ]))
}

/// The tasks, and their faults.
fn tasks(
    operator: &PackagedField<'_>,
    templates: &BTreeMap<String, String>,
    check: CheckTask,
) -> Result<(Value, Vec<String>), PackageError> {
    let (mut tasks, mut problems) = (Vec::new(), Vec::new());
    for task in operator.list("tasks").map_err(in_operator)?.unwrap_or_default() {
        let name = text(&task, "name")?;
        let kind = text(&task, "kind")?;
        let mut written = filled([("name", json!(name)), ("kind", json!(kind))]);
        written["spec"] = task_spec(&task.get("spec"))?;
        // The fields were read with the types that a task has.
        problems.extend(check(&Task::deserialize(&written).unwrap_or_default(), templates));
        tasks.push(written);
    }
    Ok((Value::Array(tasks), problems))
}

fn task_spec(spec: &PackagedField<'_>) -> Result<Value, PackageError> {
    let mut pipes = Vec::new();
    for pipe in spec.list("pipe").map_err(in_operator)?.unwrap_or_default() {
        // KUDO writes these four also when they are empty.
        let mut entry = Map::new();
        for key in ["file", "envFile", "kind", "key"] {
            entry.insert(key.to_owned(), json!(text(&pipe, key)?.unwrap_or_default()));
        }
        pipes.push(Value::Object(entry));
    }
    let flag = |key: &str| Ok::<_, PackageError>(json!(spec.flag(key).map_err(in_operator)?));
    Ok(filled([
        ("resources", json!(spec.texts("resources").map_err(in_operator)?)),
        ("parameter", json!(text(spec, "parameter")?)),
        ("wantErr", flag("wantErr")?),
        ("fatal", flag("fatal")?),
        ("done", flag("done")?),
        ("pod", json!(text(spec, "pod")?)),
        ("pipe", json!(pipes)),
        ("package", json!(text(spec, "package")?)),
        ("instanceName", json!(text(spec, "instanceName")?)),
        ("appVersion", json!(text(spec, "appVersion")?)),
        ("operatorVersion", json!(text(spec, "operatorVersion")?)),
        ("parameterFile", json!(text(spec, "parameterFile")?)),
    ]))
}

/// Plans as KUDO writes them: `strategy` and `phases` always, lists as they were given.
fn plans(operator: &PackagedField<'_>) -> Result<Value, PackageError> {
    let mut plans = Map::new();
    for (name, plan) in operator.entries("plans").map_err(in_operator)?.unwrap_or_default() {
        let phases = match plan.list("phases").map_err(in_operator)? {
            Some(phases) => phases.iter().map(phase).collect::<Result<Value, _>>()?,
            None => Value::Null,
        };
        plans.insert(
            name,
            json!({ "strategy": text(&plan, "strategy")?.unwrap_or_default(), "phases": phases }),
        );
    }
    Ok(Value::Object(plans))
}

fn phase(phase: &PackagedField<'_>) -> Result<Value, PackageError> {
    let mut out = filled([("name", json!(text(phase, "name")?))]);
    out["strategy"] = json!(text(phase, "strategy")?.unwrap_or_default());
    if let Some(steps) = phase.list("steps").map_err(in_operator)? {
        let step = |step: &PackagedField<'_>| {
            let mut out = filled([("name", json!(text(step, "name")?))]);
            if let Some(tasks) = step.texts("tasks").map_err(in_operator)? {
                out["tasks"] = json!(tasks);
            }
            Ok::<_, PackageError>(out)
        };
        out["steps"] = steps.iter().map(step).collect::<Result<Value, _>>()?;
    }
    Ok(out)
}

fn parameters(params: &PackagedField<'_>) -> Result<Vec<Parameter>, PackageError> {
    let list = params.list("parameters").map_err(in_params)?.unwrap_or_default();
    list.iter().map(parameter).collect()
}

fn parameter(field: &PackagedField<'_>) -> Result<Parameter, PackageError> {
    let text = |key: &str| field.text(key).map_err(in_params).map(|text| text.filter(|t| !t.is_empty()));
    let flag = |key: &str| field.flag(key).map_err(in_params);
    let (name, value_type) = (text("name")?, text("type")?);
    let wrap = |value: &Value| parameter_text(value, value_type.as_deref().unwrap_or_default());
    let enum_ = match field.list("enum").map_err(in_params)? {
        // An empty list reaches the API server as null, which it drops.
        Some(values) if !values.is_empty() => {
            let null = || PackageError::NullEnum { parameter: name.clone().unwrap_or_default() };
            Some(values.iter().map(|v| wrap(v.value()).ok_or_else(null)).collect::<Result<_, _>>()?)
        }
        _ => None,
    };
    Ok(Parameter {
        display_name: text("displayName")?,
        description: text("description")?,
        required: Some(flag("required")?.unwrap_or(true)),
        default: wrap(field.get("default").value()),
        trigger: text("trigger")?,
        immutable: Some(flag("immutable")?.unwrap_or(false)),
        enum_,
        value_type,
        name,
    })
}

#[cfg(test)]
mod tests;
