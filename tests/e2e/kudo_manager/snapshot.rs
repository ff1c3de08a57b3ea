//! What packages made in a namespace, as far as it can be compared with what they made in another: names that the API
//! server gives, uids and times become words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::support::Namespace;

/// Everything that the packages of these tests make, and the objects of KUDO themselves: group and version, plural, kind.
const KINDS: [(&str, &str, &str); 17] = [
    ("v1", "configmaps", "ConfigMap"),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ("v1", "pods", "Pod"),
    ("v1", "secrets", "Secret"),
    ("v1", "serviceaccounts", "ServiceAccount"),
    ("v1", "services", "Service"),
    ("apps/v1", "daemonsets", "DaemonSet"),
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("batch/v1", "cronjobs", "CronJob"),
    ("batch/v1", "jobs", "Job"),
    ("kudo.dev/v1beta1", "instances", "Instance"),
    ("kudo.dev/v1beta1", "operators", "Operator"),
    ("kudo.dev/v1beta1", "operatorversions", "OperatorVersion"),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "roles", "Role"),
];
/// Fields that the API server counts.
const COUNTED: [&str; 4] = ["creationTimestamp", "generation", "managedFields", "resourceVersion"];
/// Field managers of Kubernetes itself.
const CONTROLLERS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];
/// What KUDO and Interlock remember of what they applied: JSON as text, which is compared as JSON.
const APPLIED: &str = "kudo.dev/last-applied-configuration";

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a pattern")
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("a pattern"));
/// Addresses of Services.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10\.\d+\.\d+\.\d+\b").expect("a pattern"));

/// Each object, by kind and name, and in it the value of each field that has no fields.
#[derive(Debug, Default)]
pub struct Snapshot(pub BTreeMap<(String, String), BTreeMap<String, String>>);

impl Snapshot {
    /// Of what packages applied in a namespace, the Instances and their packages.
    #[track_caller]
    pub fn of(ns: &Namespace<'_>) -> Self {
        let objects = objects(ns);
        let words = words(ns.name(), &objects);
        let mut snapshot = Self::default();
        for (kind, object) in &objects {
            let mut object = named(object, &words);
            clear_what_controllers_wrote(&mut object);
            clear(kind, &mut object);
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut fields = BTreeMap::new();
            flatten("", &object, &mut fields);
            snapshot.0.insert(((*kind).to_owned(), name), fields);
        }
        snapshot
    }
}

/// Those that somebody made who is compared here.
#[track_caller]
fn objects(ns: &Namespace<'_>) -> Vec<(&'static str, Value)> {
    let mut objects = Vec::new();
    for (api, plural, kind) in KINDS {
        let list = ns.admin().read(&ns.path(api, plural, "")).ok();
        for object in list["items"].as_array().into_iter().flatten() {
            let applied = object["metadata"]["annotations"].get("kudo.dev/plan").is_some();
            if applied || api.starts_with("kudo.dev/") {
                objects.push((kind, object.clone()));
            }
        }
    }
    objects
}

/// What stands for what is different each time: the namespace, uids of objects, uids of runs.
fn words(namespace: &str, objects: &[(&str, Value)]) -> Vec<(String, String)> {
    let mut words = vec![(namespace.to_owned(), "NAMESPACE".to_owned())];
    for (kind, object) in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut add =
            |uid: &Value, word: String| words.extend(uid.as_str().map(|uid| (uid.to_owned(), word)));
        add(&object["metadata"]["uid"], format!("UID-OF-{kind}/{name}"));
        for (plan, entry) in object["status"]["planStatus"].as_object().into_iter().flatten() {
            add(&entry["uid"], format!("RUN-OF-{name}-{plan}"));
        }
    }
    words.retain(|(found, _)| !found.is_empty());
    words
}

/// An object with words in place of what is different each time.
fn named(object: &Value, words: &[(String, String)]) -> Value {
    let mut text = object.to_string();
    for (found, word) in words {
        text = text.replace(found, word);
    }
    let text = UID.replace_all(&text, "UID");
    let text = TIME.replace_all(&text, "TIME");
    let text = ADDRESS.replace_all(&text, "ADDRESS");
    serde_json::from_str(&text).expect("it was JSON")
}

/// Takes out what only the API server and the controllers of Kubernetes write.
fn clear(kind: &str, object: &mut Value) {
    let map = object.as_object_mut().expect("an object");
    if kind != "Instance" {
        map.remove("status");
    }
    map["metadata"].as_object_mut().expect("metadata").retain(|name, _| !COUNTED.contains(&name.as_str()));
}

/// Takes out the fields that Kubernetes' controllers own, as when they write them is by chance: the annotations of a
/// claim that is being bound.
fn clear_what_controllers_wrote(object: &mut Value) {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in entries.iter().filter(|entry| CONTROLLERS.iter().any(|name| entry["manager"] == *name)) {
        clear_owned(object, &entry["fieldsV1"]);
    }
}

/// Items of lists are left as they are.
fn clear_owned(value: &mut Value, owned: &Value) {
    let (Some(fields), Some(owned)) = (value.as_object_mut(), owned.as_object()) else { return };
    for (name, below) in owned.iter().filter_map(|(key, below)| Some((key.strip_prefix("f:")?, below))) {
        if below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(name);
        } else if let Some(field) = fields.get_mut(name) {
            clear_owned(field, below);
        }
    }
}

/// The path and the text of each value below one.
fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
                let step = if plain { format!("{path}.{key}") } else { format!("{path}[{key}]") };
                match value.as_str().filter(|_| key == APPLIED) {
                    Some(text) => remembered(&step, text, fields),
                    None => flatten(step.trim_start_matches('.'), value, fields),
                }
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (i, value) in list.iter().enumerate() {
                let place = i.to_string();
                // Conditions are a map by their type.
                let name = value["type"].as_str().filter(|_| path.ends_with(".conditions"));
                flatten(&format!("{path}[{}]", name.unwrap_or(&place)), value, fields);
            }
        }
        value => drop(fields.insert(path.to_owned(), value.to_string())),
    }
}

fn remembered(path: &str, text: &str, fields: &mut BTreeMap<String, String>) {
    let path = path.trim_start_matches('.');
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        fields.insert(path.to_owned(), text.to_owned());
        return;
    };
    flatten(path, &value, fields);
    // Not whitespace, so that a pattern can name it.
    fields.insert(format!("{path}(end)"), format!("{:?}", &text[text.trim_end().len()..]));
}
