//! Stored objects, by path.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Path of the Instance.
pub const INSTANCE: &str = "/apis/kudo.dev/v1beta1/namespaces/ns/instances/db";
/// Path of the ControllerRevisions, which keep inventories.
pub const REVISIONS: &str = "/apis/apps/v1/namespaces/ns/controllerrevisions";
/// Path of the ConfigMaps.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/ns/configmaps";

/// Objects, shared with the states that have them too.
#[derive(Clone, Default, PartialEq)]
pub struct Objects(pub BTreeMap<String, Arc<Value>>);

impl Objects {
    pub fn instance(&self) -> Option<&Arc<Value>> {
        self.0.get(INSTANCE)
    }

    pub fn config_maps(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.0.iter().filter(|(path, _)| path.starts_with(CONFIG_MAPS)).map(|(_, object)| object)
    }

    /// The data of a ConfigMap.
    pub fn data(&self, name: &str) -> Option<&Value> {
        self.0.get(&format!("{CONFIG_MAPS}/{name}")).map(|object| &object["data"])
    }
}
