//! A second configuration producer, for the preview alone: a copy of the live one's Deployment that is bound to the
//! preview's admin Service, and under labels of its own, so that neither takes the other's pods.

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde_json::{Value, json};

use crate::data_plane::rollout::side::{SideState, admin_name};

/// What the preview's producer has to have, as flags of Kong's ingress controller and as variables.
struct Setting {
    flag: &'static str,
    variable: &'static str,
    value: String,
}

/// The settings of a producer that sees the pods of the preview alone. A second one that elects the same leader would
/// send nothing, and one that writes statuses would fight with the first.
fn settings(data_plane: &NamespacedName) -> [Setting; 3] {
    let NamespacedName { namespace, name } = data_plane;
    let service = admin_name(name, SideState::Preview);
    let setting = |flag, variable, value| Setting { flag, variable, value };
    [
        setting("--kong-admin-svc", "CONTROLLER_KONG_ADMIN_SVC", format!("{namespace}/{service}")),
        setting("--election-id", "CONTROLLER_ELECTION_ID", service),
        setting("--update-status", "CONTROLLER_UPDATE_STATUS", "false".to_owned()),
    ]
}

/// What a producer for the preview needs, for people.
pub fn described(data_plane: &NamespacedName) -> String {
    let listed = settings(data_plane).map(|setting| format!("{}={}", setting.variable, setting.value));
    format!("an ingress controller with {}", listed.join(" "))
}

/// The name of the copy of a producer.
pub fn copy_name(producer: &NamespacedName) -> String {
    format!("{}-preview", producer.name)
}

/// The command that makes the copy of a producer's Deployment.
pub fn command(deployment: &Value, producer: &NamespacedName, data_plane: &NamespacedName) -> String {
    let NamespacedName { namespace, name } = producer;
    // A single quote would end the argument in a shell.
    let patch = json!(copy(deployment, producer, data_plane)).to_string().replace('\'', "\\u0027");
    format!(
        "kubectl get deployment {name} -n {namespace} -o json | kubectl patch --local -f - --type=json -p '{patch}' -o json \
         | kubectl create -f -"
    )
}

/// The patch that makes the copy: no value of the Deployment is repeated in it, as they may be secrets.
fn copy(deployment: &Value, producer: &NamespacedName, data_plane: &NamespacedName) -> Vec<PatchOperation> {
    let labels = json!({meta::PREVIEW_PRODUCER_OF: data_plane.name});
    let metadata = json!({"name": copy_name(producer), "namespace": producer.namespace, "labels": labels});
    let mut operations = vec![
        add(&["metadata"], metadata),
        add(&["spec", "replicas"], json!(1)),
        add(&["spec", "selector"], json!({"matchLabels": labels})),
        add(&["spec", "template", "metadata", "labels"], labels),
    ];
    if !deployment["status"].is_null() {
        operations
            .push(PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(["status"]) }));
    }
    let wanted = settings(data_plane);
    let index = container(deployment, &wanted);
    let at = &deployment["spec"]["template"]["spec"]["containers"][index];
    let index = index.to_string();
    let path = ["spec", "template", "spec", "containers", index.as_str()];
    if !at["env"].is_array() {
        operations.push(add(&[&path[..], &["env"]].concat(), json!([])));
    }
    for setting in &wanted {
        let (list, place, value) = setting.place(at);
        let path = [&path[..], &[list, &place]].concat();
        operations.push(match place == "-" {
            true => add(&path, value),
            false => replace(&path, value),
        });
    }
    operations
}

impl Setting {
    /// The list of a container, the element in it, and its value; flags count before variables.
    fn place(&self, container: &Value) -> (&'static str, String, Value) {
        let words = |list: &str| container[list].as_array().cloned().unwrap_or_default();
        for list in ["args", "command"] {
            let words = words(list);
            if let Some(at) = words.iter().position(|word| word == self.flag) {
                return (list, (at + 1).min(words.len() - 1).to_string(), json!(self.value));
            }
            let assigned = |word: &Value| {
                word.as_str()
                    .and_then(|word| word.strip_prefix(self.flag))
                    .is_some_and(|rest| rest.starts_with('='))
            };
            if let Some(at) = words.iter().position(assigned) {
                return (list, at.to_string(), json!(format!("{}={}", self.flag, self.value)));
            }
        }
        let entry = json!({"name": self.variable, "value": self.value});
        match words("env").iter().rposition(|entry| entry["name"] == self.variable) {
            Some(at) => ("env", at.to_string(), entry),
            None => ("env", "-".to_owned(), entry),
        }
    }
}

/// The container of the controller: the one that names the admin Service, else the one that is called so, else the
/// first.
fn container(deployment: &Value, settings: &[Setting; 3]) -> usize {
    let containers =
        deployment["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let [service, ..] = settings;
    let names_it = |container: &Value| service.place(container).1 != "-";
    let named = || containers.iter().position(|container| container["name"] == "ingress-controller");
    containers.iter().position(names_it).or_else(named).unwrap_or_default()
}

fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn replace(path: &[&str], value: Value) -> PatchOperation {
    let path = PointerBuf::from_tokens(path.iter().copied());
    PatchOperation::Replace(json_patch::ReplaceOperation { path, value })
}
