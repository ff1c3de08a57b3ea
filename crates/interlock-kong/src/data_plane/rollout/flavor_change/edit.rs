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

#[cfg(test)]
mod tests {
    use json_patch::PatchOperation;
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::data_plane::flavor::Flavor::{Expressions as EX, TraditionalCompatible as TC};
    use crate::data_plane::flavor::sources::GivenSources;
    use crate::data_plane::rollout::flavor_change::edit::{FlavorEditError, edit};

    const FLAVOR: &str = "KONG_ROUTER_FLAVOR";

    fn plane(containers: Value) -> Value {
        json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"name": "edge", "namespace": "kong", "resourceVersion": "7"},
            "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": containers}}}},
        })
    }

    fn proxy(env: Value) -> Value {
        let mut container = json!({"name": "proxy", "image": "kong:3.9"});
        if !env.is_null() {
            container["env"] = env;
        }
        container
    }

    fn sources() -> GivenSources {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "router", "namespace": "kong"},
            "data": {"flavor": "traditional_compatible", FLAVOR: "traditional_compatible"}});
        GivenSources::of([&map], "kong")
    }

    fn patched(object: &Value, operations: Vec<PatchOperation>) -> Value {
        let mut object = object.clone();
        json_patch::patch(&mut object, &operations).unwrap();
        object
    }

    fn flavor(value: &str) -> Value {
        json!({"name": FLAVOR, "value": value})
    }

    #[rstest]
    #[case::none(json!([proxy(json!(null))]), json!([proxy(json!([flavor("expressions")]))]))]
    #[case::empty(json!([proxy(json!([]))]), json!([proxy(json!([flavor("expressions")]))]))]
    #[case::others_are_kept(
        json!([{"name": "sidecar", "env": [flavor("x")]}, proxy(json!([{"name": "A", "value": "b"}, flavor("traditional"), {"name": "C", "value": "d"}]))]),
        json!([{"name": "sidecar", "env": [flavor("x")]}, proxy(json!([{"name": "A", "value": "b"}, flavor("expressions"), {"name": "C", "value": "d"}]))])
    )]
    #[case::the_last_one_counts(
        json!([proxy(json!([flavor("x"), flavor("traditional")]))]),
        json!([proxy(json!([flavor("x"), flavor("expressions")]))])
    )]
    fn a_hop_writes_the_flavor_alone(#[case] before: Value, #[case] after: Value) {
        let object = plane(before);
        let operations = edit(&object, TC, EX, &sources()).unwrap();
        assert_eq!(patched(&object, operations.clone()), plane(after));
        let mut moved = object;
        moved["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"name": "new"}));
        assert!(json_patch::patch(&mut moved, &operations).is_err(), "a container is at another place");
    }

    #[rstest]
    #[case::config_map(
        json!([{"name": FLAVOR, "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]),
        json!(null),
        "ConfigMap kong/router key \"flavor\""
    )]
    #[case::absent_secret(
        json!([{"name": FLAVOR, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]),
        json!(null),
        "Secret kong/s key \"k\""
    )]
    #[case::field(
        json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        json!(null),
        "valueFrom.fieldRef"
    )]
    #[case::env_from(json!(null), json!([{"configMapRef": {"name": "router"}}]), "envFrom of ConfigMap kong/router key \"KONG_ROUTER_FLAVOR\"")]
    #[case::by_reference(
        json!([{"name": "F", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}, {"name": FLAVOR, "value": "$(F)"}]),
        json!(null),
        "ConfigMap kong/router key \"flavor\""
    )]
    fn what_comes_from_elsewhere_is_not_written(
        #[case] env: Value,
        #[case] env_from: Value,
        #[case] from: &str,
    ) {
        let mut container = proxy(env);
        if !env_from.is_null() {
            container["envFrom"] = env_from;
        }
        let object = plane(json!([container]));
        let error = edit(&object, TC, EX, &sources()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("KONG_ROUTER_FLAVOR of container \"proxy\" comes from {from}, ")),
            "{text}"
        );
        // The remedy writes the value that is live: after it the same hop can be written.
        let FlavorEditError::Elsewhere { patch, .. } = &error else { panic!("{error}") };
        let remedied = patched(&object, patch.clone());
        assert!(edit(&remedied, TC, EX, &sources()).is_ok());
        let remedy = error.remedy("edge", "kong");
        assert!(remedy.contains("`kubectl patch dataplane edge -n kong --type=json -p '[{"), "{remedy}");
        assert!(
            remedy.contains(r#"{"name":"KONG_ROUTER_FLAVOR","value":"traditional_compatible"}"#),
            "{remedy}"
        );
    }

    #[rstest]
    #[case::none(json!([{"name": "kong"}]))]
    #[case::two(json!([proxy(json!(null)), proxy(json!(null))]))]
    #[case::nonsense(json!("x"))]
    fn without_one_proxy_nothing_is_written(#[case] containers: Value) {
        assert_eq!(edit(&plane(containers), TC, EX, &sources()), Err(FlavorEditError::NoProxy));
    }
}
