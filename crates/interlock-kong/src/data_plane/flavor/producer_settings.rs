//! What a configuration producer reads, by its flags, variables and fields: an ingress controller
//! (Kong/kubernetes-ingress-controller 3.x, `internal/manager/config.go`), or a ControlPlane.

use std::collections::BTreeSet;

use serde_json::Value;

/// The default of an ingress controller.
pub(super) const DEFAULT_CLASS: &str = "kong";
/// The default of an ingress controller.
const DEFAULT_CONTROLLER: &str = "konghq.com/kic-gateway-controller";

const CLASS_VARIABLE: &str = "CONTROLLER_INGRESS_CLASS";
const CONTROLLER_VARIABLE: &str = "CONTROLLER_GATEWAY_API_CONTROLLER_NAME";
/// Names the namespaces that a producer reads; may be given several times.
const NAMESPACE_FLAG: &str = "--watch-namespace";
const NAMESPACE_VARIABLE: &str = "CONTROLLER_WATCH_NAMESPACE";
pub(super) const VARIABLES: [&str; 3] = [CLASS_VARIABLE, CONTROLLER_VARIABLE, NAMESPACE_VARIABLE];

/// The settings of a producer that say what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// By a reference, or by an unknown producer.
    Unknown,
    /// Nothing of the kind.
    Nothing,
    /// What has this name.
    Named(String),
}

/// The settings of a producer that decide which routes it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProducerSettings {
    pub(super) ingress_class: Setting,
    /// Name of the controller, in GatewayClasses.
    pub(super) controller: Setting,
    /// The only class of Gateways of a ControlPlane.
    pub(super) gateway_class: Option<String>,
    /// The only namespaces that it reads; `None` for all, or where that is unknown.
    pub(super) namespaces: Option<BTreeSet<String>>,
}

impl Default for ProducerSettings {
    /// Those of an unknown producer.
    fn default() -> Self {
        Self {
            ingress_class: Setting::Unknown,
            controller: Setting::Unknown,
            gateway_class: None,
            namespaces: None,
        }
    }
}

impl ProducerSettings {
    /// The settings of a ControlPlane, or of an ingress controller's Deployment, in its namespace.
    pub(super) fn of(producer: &Value, own: &str) -> Self {
        match producer["kind"] == "ControlPlane" {
            true => Self::of_control_plane(producer, own),
            false => Self::of_controller(producer),
        }
    }

    fn of_control_plane(producer: &Value, own: &str) -> Self {
        let spec = &producer["spec"];
        let containers = containers(&spec["deployment"]["podTemplateSpec"]);
        let variable = variable(&containers, CLASS_VARIABLE);
        // "If omitted, Ingress resources will not be supported by the ControlPlane."
        let field =
            spec["ingressClass"].as_str().map_or(Setting::Nothing, |it| Setting::Named(it.to_owned()));
        let watched = &spec["watchNamespaces"];
        let listed = watched["list"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let namespaces = || listed.chain([own]).map(str::to_owned).collect();
        Self {
            ingress_class: variable.unwrap_or(field),
            controller: Setting::Unknown,
            gateway_class: spec["gatewayClass"].as_str().map(str::to_owned),
            namespaces: matches!(watched["type"].as_str(), Some("own" | "list")).then(namespaces),
        }
    }

    fn of_controller(producer: &Value) -> Self {
        let containers = containers(&producer["spec"]["template"]);
        let setting = |flag, name| flag_of(&containers, flag).or_else(|| variable(&containers, name));
        let or = |default: &str| Setting::Named(default.to_owned());
        let namespaces = match setting(NAMESPACE_FLAG, NAMESPACE_VARIABLE) {
            Some(Setting::Named(listed)) if !listed.is_empty() => {
                Some(listed.split(',').map(|it| it.trim().to_owned()).collect())
            }
            _ => None,
        };
        Self {
            ingress_class: setting("--ingress-class", CLASS_VARIABLE).unwrap_or_else(|| or(DEFAULT_CLASS)),
            controller: setting("--gateway-api-controller-name", CONTROLLER_VARIABLE)
                .unwrap_or_else(|| or(DEFAULT_CONTROLLER)),
            gateway_class: None,
            namespaces,
        }
    }
}

fn containers(template: &Value) -> Vec<&Value> {
    template["spec"]["containers"].as_array().into_iter().flatten().collect()
}

/// A flag that may be given several times: a list adds up, of others the last counts.
fn flag_of(containers: &[&Value], flag: &str) -> Option<Setting> {
    let args = containers.iter().flat_map(|c| c["args"].as_array().into_iter().flatten());
    let given = args.filter_map(|arg| match arg.as_str()?.strip_prefix(flag)? {
        "" => Some(Setting::Unknown),
        rest => rest.strip_prefix('=').map(text),
    });
    given.reduce(|before, next| match (before, next) {
        (Setting::Named(before), Setting::Named(next)) if flag == NAMESPACE_FLAG => {
            Setting::Named(format!("{before},{next}"))
        }
        (Setting::Unknown, _) if flag == NAMESPACE_FLAG => Setting::Unknown,
        (_, next) => next,
    })
}

fn variable(containers: &[&Value], name: &str) -> Option<Setting> {
    let mut entries = containers.iter().flat_map(|c| c["env"].as_array().into_iter().flatten());
    match entries.find(|entry| entry["name"] == name) {
        Some(entry) => Some(entry["value"].as_str().map_or(Setting::Unknown, text)),
        None => {
            let refers = |c: &&Value| c["envFrom"].as_array().is_some_and(|from| !from.is_empty());
            containers.iter().any(refers).then_some(Setting::Unknown)
        }
    }
}

/// A text of the pod, unless the kubelet expands it.
fn text(text: &str) -> Setting {
    if text.contains("$(") { Setting::Unknown } else { Setting::Named(text.to_owned()) }
}
