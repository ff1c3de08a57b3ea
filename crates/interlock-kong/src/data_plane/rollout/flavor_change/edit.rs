//! What a hop writes: the variable of the flavor in the container `proxy`, and nothing else.

use interlock_core::api::object::meta_str;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, ReplaceOperation, TestOperation};
use serde_json::{Value, json};
use thiserror::Error;

use crate::api::PROXY;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::reading::VARIABLE;
use crate::data_plane::flavor::sources::Sources;

/// Path of the containers of a DataPlane.
const CONTAINERS: [&str; 5] = ["spec", "deployment", "podTemplateSpec", "spec", "containers"];

/// Why the variable cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlavorEditError {
    /// There is no container `proxy`, or there are several.
    #[error("spec.deployment.podTemplateSpec has no container \"{PROXY}\", or several")]
    NoProxy,
    /// The variable comes from another object or from a field of the pod.
    #[error("{VARIABLE} of container \"{PROXY}\" comes from {from}, which a rollout does not change")]
    Elsewhere {
        /// Where it comes from.
        from: String,
        /// The patch that writes the live value into the DataPlane.
        patch: Vec<PatchOperation>,
    },
}

impl FlavorEditError {
    pub fn remedy(&self, name: &str, namespace: &str) -> String {
        match self {
            Self::NoProxy => format!("name the container that runs Kong \"{PROXY}\", and no other one"),
            Self::Elsewhere { patch, .. } => format!(
                "write the value that is live into the DataPlane, which changes no flavor, promote that, and call this \
                 again: `kubectl patch dataplane {name} -n {namespace} --type=json -p '{}' && interlock rollout promote \
                 {name} -n {namespace} --wait`",
                json!(patch)
            ),
        }
    }
}

/// The patch that writes a flavor into the version of an object that was read.
pub fn edit(
    object: &Value,
    live: Flavor,
    to: Flavor,
    sources: &dyn Sources,
) -> Result<Vec<PatchOperation>, FlavorEditError> {
    let place = Place::of(object).ok_or(FlavorEditError::NoProxy)?;
    if let Some(from) = place.source(object, sources) {
        return Err(FlavorEditError::Elsewhere { from, patch: place.written(live) });
    }
    let version = meta_str(object, "resourceVersion").unwrap_or_default();
    let mut operations =
        vec![replace(&["metadata".to_owned(), "resourceVersion".to_owned()], json!(version))];
    operations.extend(place.written(to));
    Ok(operations)
}

/// Where the variable is, or belongs.
struct Place<'o> {
    container: usize,
    proxy: &'o Value,
    entry: Option<usize>,
}

impl<'o> Place<'o> {
    fn of(object: &'o Value) -> Option<Self> {
        let containers = CONTAINERS.iter().try_fold(object, |value, member| value.get(member))?.as_array()?;
        let mut found = containers.iter().enumerate().filter(|(_, container)| container["name"] == PROXY);
        let (container, proxy) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        // The last one counts.
        let entry =
            proxy["env"].as_array().and_then(|env| env.iter().rposition(|entry| entry["name"] == VARIABLE));
        Some(Self { container, proxy, entry })
    }

    /// The object or field that the variable comes from, unless the DataPlane holds its value.
    fn source(&self, object: &Value, sources: &dyn Sources) -> Option<String> {
        let gateway = Gateway::read(object, "", sources).ok().flatten()?;
        let key = gateway.spec.reading.keys.first().map(ToString::to_string);
        match self.entry.map(|entry| &self.proxy["env"][entry]) {
            Some(entry) if entry["value"].as_str().is_some_and(|value| !value.is_empty()) => key,
            Some(entry) => {
                let from = entry["valueFrom"].as_object()?;
                let kind = from.keys().next().map_or("valueFrom", String::as_str);
                Some(key.unwrap_or_else(|| format!("valueFrom.{kind}")))
            }
            None => key.map(|key| format!("envFrom of {key}")),
        }
    }

    /// The operations that write a value.
    fn written(&self, flavor: Flavor) -> Vec<PatchOperation> {
        let value = json!({"name": VARIABLE, "value": flavor.as_str()});
        let container = self.path(&[]);
        // A patch that comes late does not hit another container or variable.
        let named = |path: &[String], name: &str| {
            let path = pointer(&[path, &["name".to_owned()]].concat());
            PatchOperation::Test(TestOperation { path, value: json!(name) })
        };
        let mut operations = vec![named(&container, PROXY)];
        match (self.entry, self.proxy["env"].is_array()) {
            (Some(entry), _) => {
                let path = self.path(&["env", &entry.to_string()]);
                operations.push(named(&path, VARIABLE));
                operations.push(replace(&path, value));
            }
            (None, true) => operations.push(add(&self.path(&["env", "-"]), value)),
            (None, false) => operations.push(add(&self.path(&["env"]), json!([value]))),
        }
        operations
    }

    fn path(&self, rest: &[&str]) -> Vec<String> {
        let container = self.container.to_string();
        let members = CONTAINERS.iter().copied().chain([container.as_str()]).chain(rest.iter().copied());
        members.map(str::to_owned).collect()
    }
}

fn pointer(path: &[String]) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().map(String::as_str))
}

fn replace(path: &[String], value: Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path: pointer(path), value })
}

fn add(path: &[String], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: pointer(path), value })
}
