//! The Pod of a Pipe task: checked, named, and with a helper that waits until its files are read.

use interlock_core::api::meta;
use serde_json::{Map, Value, json};

use super::file::{base_name, path};
use crate::api::PipeSpec;
use crate::engine::errors::TaskError;
use crate::engine::pipes;
use crate::engine::render;
use crate::engine::render::TaskContext;

/// Name of the helper container.
pub(super) const HELPER: &str = "waiter";

/// Event reasons, as KUDO names them.
const UNMARSHAL: &str = "ResourceUnmarshalError";
const VALIDATION: &str = "ResourceValidationError";

/// The Pod as it is applied, without the metadata of the Instance.
pub(super) fn object(
    context: &TaskContext<'_>,
    template: &str,
    files: &[PipeSpec],
) -> Result<Value, TaskError> {
    let rendered = context.run.rendered.objects(
        context.place(),
        || render::unnamed(context, template).map(|pod| vec![pod]),
        render::full,
    )?;
    let pod = rendered.into_iter().next().unwrap_or_default();
    if (pod["apiVersion"].as_str(), pod["kind"].as_str()) != (Some("v1"), Some("Pod")) {
        let found = format!("{} {}", pod["apiVersion"], pod["kind"]);
        return Err(TaskError::fatal(UNMARSHAL, format!("{template} is no Pod of v1, but {found}")));
    }
    let mount = mount(&pod, files)
        .map_err(|why| TaskError::fatal(VALIDATION, format!("pipe pod in {template} is invalid: {why}")))?;
    Ok(completed(context, pod, &mount))
}

/// The mount of the volume in which the files are made.
fn mount(pod: &Value, files: &[PipeSpec]) -> Result<Value, String> {
    let list = |at: &Value| at.as_array().cloned().unwrap_or_default();
    let spec = &pod["spec"];
    if !list(&spec["containers"]).is_empty() {
        return Err("it has containers; make the files in its init container".to_owned());
    }
    let [init] = <[Value; 1]>::try_from(list(&spec["initContainers"]))
        .map_err(|found| format!("it has {} init containers; it needs one", found.len()))?;
    if !matches!(spec["restartPolicy"].as_str(), None | Some("" | "OnFailure")) {
        return Err(format!(
            "its restartPolicy is {}; it must be OnFailure or absent",
            spec["restartPolicy"]
        ));
    }
    let [volume] = <[Value; 1]>::try_from(list(&spec["volumes"]))
        .map_err(|found| format!("it has {} volumes; it needs one, an emptyDir", found.len()))?;
    if !volume.as_object().is_some_and(|volume| volume.contains_key("emptyDir")) {
        return Err("its volume is no emptyDir".to_owned());
    }
    let mounts = list(&init["volumeMounts"]);
    let mount = mounts.into_iter().find(|mount| mount["name"] == volume["name"]);
    let mount =
        mount.ok_or_else(|| format!("its init container does not mount volume {}", volume["name"]))?;
    let folder = mount["mountPath"].as_str().unwrap_or_default();
    files.iter().map(path).try_for_each(|file| below(folder, file))?;
    Ok(mount)
}

/// Whether a file lies in a folder, by their paths alone.
fn below(folder: &str, file: &str) -> Result<(), String> {
    let (cleaned, within) = (cleaned(file), cleaned(folder));
    let rest = cleaned.strip_prefix(&within[..]).filter(|rest| !rest.is_empty());
    // KUDO refuses hidden files with those above the folder.
    if !file.starts_with('/') || rest.is_none_or(|rest| rest[0].starts_with('.')) {
        return Err(format!("file {file} is not below the mount path {folder} of its volume"));
    }
    let base = base_name(file);
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if base.is_empty() || !base.bytes().all(valid) {
        return Err(format!("file name {base:?} is no key of a ConfigMap: use letters, digits, -, . and _"));
    }
    Ok(())
}

/// The parts of an absolute path, as Go's `filepath.Clean` leaves them.
fn cleaned(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts
}

fn completed(context: &TaskContext<'_>, mut pod: Value, mount: &Value) -> Value {
    let helper = context.run.helper;
    let mut container = json!({
        "name": HELPER,
        "image": helper.image,
        "command": ["/bin/sh", "-c"],
        "args": ["sleep infinity"],
        "volumeMounts": [mount],
    });
    if let Some(security) = &helper.security_context {
        container["securityContext"] = security.clone();
    }
    pod["spec"]["containers"] = json!([container]);
    pod["spec"]["restartPolicy"] = "OnFailure".into();
    if !pod["metadata"].is_object() {
        pod["metadata"] = Value::Object(Map::new());
    }
    pod["metadata"]["name"] = pipes::pod(context.run, context.place()).into();
    if !pod["metadata"]["annotations"].is_object() {
        pod["metadata"]["annotations"] = Value::Object(Map::new());
    }
    pod["metadata"]["annotations"][meta::PIPE_POD] = "true".into();
    pod
}
