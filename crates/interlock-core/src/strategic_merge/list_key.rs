//! Lists whose elements have a key: the API server merges these element by element
//! (`x-kubernetes-list-map-keys` of its OpenAPI), and every other list as a whole.

use serde_json::{Map, Value};

/// A member of the key, with what it is where an element leaves it out.
pub(super) type Member = (&'static str, Option<&'static str>);

/// The key of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListKey(&'static [Member]);

const NAME: ListKey = ListKey(&[("name", None)]);
const CONTAINER_PORT: ListKey = ListKey(&[("containerPort", None), ("protocol", Some("TCP"))]);
const SERVICE_PORT: ListKey = ListKey(&[("port", None), ("protocol", Some("TCP"))]);

/// The keyed lists of Deployments and Services, by the field that holds them.
const KEYS: [(&str, ListKey); 17] = [
    ("containers", NAME),
    ("initContainers", NAME),
    ("ephemeralContainers", NAME),
    ("env", NAME),
    ("volumes", NAME),
    ("imagePullSecrets", NAME),
    ("resourceClaims", NAME),
    ("claims", NAME),
    ("schedulingGates", NAME),
    ("volumeMounts", ListKey(&[("mountPath", None)])),
    ("volumeDevices", ListKey(&[("devicePath", None)])),
    ("hostAliases", ListKey(&[("ip", None)])),
    ("topologySpreadConstraints", ListKey(&[("topologyKey", None), ("whenUnsatisfiable", None)])),
    ("ownerReferences", ListKey(&[("uid", None)])),
    ("conditions", ListKey(&[("type", None)])),
    ("ports", CONTAINER_PORT),
    ("ports", SERVICE_PORT),
];

impl ListKey {
    /// Of these members.
    pub(super) fn new(members: &'static [Member]) -> Self {
        Self(members)
    }

    /// A member of a key. The API server sets the protocol of a port that names none.
    pub(super) fn member(name: &'static str) -> Member {
        (name, (name == "protocol").then_some("TCP"))
    }

    /// The key of a list in a pod template.
    pub fn of_pod_template(field: &str) -> Option<Self> {
        KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
    }

    /// The key that all these elements of a field have.
    pub fn of(field: &str, elements: &[Value]) -> Option<Self> {
        KEYS.iter()
            .filter(|(name, _)| *name == field)
            .map(|(_, key)| *key)
            .find(|key| elements.iter().all(|element| key.value(element).is_some()))
    }

    /// The first member of the key that an element lacks.
    pub fn missing(self, element: &Map<String, Value>) -> Option<&'static str> {
        self.0.iter().find(|member| part(element, member).is_none()).map(|(name, _)| *name)
    }

    /// The key of an element, as text for people; equal for elements with an equal key.
    pub fn value(self, element: &Value) -> Option<String> {
        self.of_element(element.as_object()?)
    }

    /// The same, of an element that is an object.
    pub fn of_element(self, element: &Map<String, Value>) -> Option<String> {
        let parts: Option<Vec<String>> = self
            .0
            .iter()
            .map(|member| part(element, member).map(|value| format!("{}={value}", member.0)))
            .collect();
        parts.map(|parts| parts.join(","))
    }

    /// Sets the members that an element leaves out and that have a default.
    pub fn complete(self, element: &mut Map<String, Value>) {
        for (name, default) in self.0 {
            if let Some(default) = default
                && element.get(*name).is_none_or(is_unset)
            {
                element.insert((*name).to_owned(), Value::from(*default));
            }
        }
    }
}

fn part(element: &Map<String, Value>, (name, default): &Member) -> Option<String> {
    match element.get(*name).filter(|value| !is_unset(value)) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        None => default.map(str::to_owned),
        Some(_) => None,
    }
}

fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::by_name("containers", json!([{"name": "proxy"}]), Some("name=proxy"))]
    #[case::of_a_container("ports", json!([{"containerPort": 8000}]), Some("containerPort=8000,protocol=TCP"))]
    #[case::of_a_service("ports", json!([{"port": 53, "protocol": "UDP"}]), Some("port=53,protocol=UDP"))]
    #[case::null_is_absent("ports", json!([{"port": 53, "protocol": null}]), Some("port=53,protocol=TCP"))]
    #[case::two_members("topologySpreadConstraints", json!([{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        Some("topologyKey=zone,whenUnsatisfiable=DoNotSchedule"))]
    #[case::no_key("containers", json!([{"image": "x"}]), None)]
    #[case::a_key_of_another_type("containers", json!([{"name": ["proxy"]}]), None)]
    #[case::no_object("containers", json!(["proxy"]), None)]
    #[case::a_whole_list("tolerations", json!([{"name": "x"}]), None)]
    fn keys(#[case] field: &str, #[case] list: Value, #[case] key: Option<&str>) {
        let elements = list.as_array().unwrap();
        let found = ListKey::of(field, elements).and_then(|key| key.value(&elements[0]));
        assert_eq!(found.as_deref(), key);
    }
}
