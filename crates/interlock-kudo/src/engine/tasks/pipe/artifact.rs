//! What becomes of a file: a ConfigMap or Secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::api::object::{Gvk, ObjectKey};
use serde_json::{Value, json};

use super::env_file;
use super::file::{PIPE_TASK_ERROR, base_name, path};
use crate::api::PipeSpec;
use crate::engine::errors::TaskError;
use crate::engine::pipes;
use crate::engine::render::TaskContext;

fn kind(file: &PipeSpec) -> &str {
    file.kind.as_deref().unwrap_or_default()
}

fn name(context: &TaskContext<'_>, file: &PipeSpec) -> String {
    pipes::artifact(context.run, context.place(), file.key.as_deref().unwrap_or_default())
}

/// The key of an artifact.
pub(super) fn key(context: &TaskContext<'_>, file: &PipeSpec) -> ObjectKey {
    ObjectKey {
        gvk: Gvk::new("v1", kind(file)),
        namespace: Some(context.run.instance.namespace.clone()),
        name: name(context, file),
    }
}

/// An artifact without its content.
pub(super) fn stub(context: &TaskContext<'_>, file: &PipeSpec) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind(file), "metadata": {"name": name(context, file)},
    })
}

/// An artifact with the content of its file: one key for a file, one for each variable of an env file.
pub(super) fn object(context: &TaskContext<'_>, file: &PipeSpec, content: &[u8]) -> Result<Value, TaskError> {
    let path = path(file);
    let encoded = |bytes: &[u8]| STANDARD.encode(bytes);
    let secret = kind(file) == "Secret";
    let is_env = file.file.as_ref().is_none_or(String::is_empty);
    let (field, data) = if is_env {
        let variables = env_file::parse(content).map_err(|why| {
            TaskError::fatal(PIPE_TASK_ERROR, format!("fatal error: env file {path} cannot be read: {why}"))
        })?;
        let shown = |value: &str| if secret { encoded(value.as_bytes()) } else { value.to_owned() };
        ("data", variables.iter().map(|(name, value)| (name.clone(), shown(value))).collect())
    } else {
        let data = BTreeMap::from([(base_name(path).to_owned(), encoded(content))]);
        (if secret { "data" } else { "binaryData" }, data)
    };
    let mut object = stub(context, file);
    object[field] = json!(data);
    if secret {
        object["type"] = "Opaque".into();
    }
    Ok(object)
}
