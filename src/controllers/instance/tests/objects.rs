//! Stored objects, by path.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::shape::Shape;

/// Path of the Instance.
pub const INSTANCE: &str = "/apis/kudo.dev/v1beta1/namespaces/ns/instances/db";
/// Path of the OperatorVersion that comes later.
pub const LATER_VERSION: &str = "/apis/kudo.dev/v1beta1/namespaces/ns/operatorversions/db-2.0.0";
/// Path of the ControllerRevisions, which keep inventories.
pub const REVISIONS: &str = "/apis/apps/v1/namespaces/ns/controllerrevisions";
/// Path of the ConfigMaps.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/ns/configmaps";

/// A stored object, and what distinguishes it, which is hashed once.
#[derive(Clone)]
pub struct Stored {
    pub object: Arc<Value>,
    pub shape: Arc<Shape>,
}

/// Objects, shared with the states that have them too.
#[derive(Clone, Default)]
pub struct Objects(Arc<BTreeMap<String, Stored>>);

impl Objects {
    /// Where they are kept.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub fn get(&self, path: &str) -> Option<&Arc<Value>> {
        self.0.get(path).map(|stored| &stored.object)
    }

    pub fn all(&self) -> impl Iterator<Item = (&String, &Stored)> {
        self.0.iter()
    }

    pub fn instance(&self) -> Option<&Arc<Value>> {
        self.get(INSTANCE)
    }

    pub fn config_maps(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.0.iter().filter(|(path, _)| path.starts_with(CONFIG_MAPS)).map(|(_, stored)| &stored.object)
    }

    /// The data of a ConfigMap.
    pub fn data(&self, name: &str) -> Option<&Value> {
        self.get(&format!("{CONFIG_MAPS}/{name}")).map(|object| &object["data"])
    }

    pub fn insert(&mut self, path: &str, object: Arc<Value>) {
        let shape = Arc::new(Shape::of(&object));
        Arc::make_mut(&mut self.0).insert(path.to_owned(), Stored { object, shape });
    }

    pub fn remove(&mut self, path: &str) {
        Arc::make_mut(&mut self.0).remove(path);
    }

    pub fn clear(&mut self) {
        self.0 = Arc::default();
    }
}
