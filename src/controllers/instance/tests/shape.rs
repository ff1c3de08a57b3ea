//! What distinguishes an object from another: versions and generations left out, texts whose meaning depends on other
//! objects kept apart.

use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_core::api::meta;
use interlock_kudo::instance::change::uid;
use serde_json::Value;

/// Members that tell no states apart.
const PASSING: [&str; 5] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    meta::HISTORY,
    "kudo.dev/last-plan-execution-uid",
];

/// What distinguishes an object, and what it names.
pub struct Shape {
    pub hash: u64,
    pub named: Vec<Named>,
}

/// A text whose meaning depends on what else is there.
pub enum Named {
    /// Which uid it is tells no states apart, but where else it stands does.
    Uid(Box<str>),
    /// The hash of a spec.
    Spec(Box<str>),
}

impl Shape {
    pub fn of(object: &Value) -> Self {
        let mut shape = Shaping::default();
        let observed = object["metadata"]["generation"] == object["status"]["observedGeneration"];
        observed.hash(&mut shape.hasher);
        shape.value(object);
        Self { hash: shape.hasher.finish(), named: shape.named }
    }
}

#[derive(Default)]
struct Shaping {
    hasher: DefaultHasher,
    named: Vec<Named>,
}

impl Shaping {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                    name.hash(&mut self.hasher);
                    self.value(member);
                }
                0_u8.hash(&mut self.hasher);
            }
            Value::Array(items) => {
                items.len().hash(&mut self.hasher);
                items.iter().for_each(|item| self.value(item));
            }
            Value::String(text) => self.text(text),
            scalar => scalar.hash(&mut self.hasher),
        }
    }

    fn text(&mut self, text: &str) {
        if uid::is_version_5(text) {
            return self.named.push(Named::Uid(text.into()));
        }
        if text.starts_with('{')
            && let Ok(json @ Value::Object(_)) = serde_json::from_str::<Value>(text)
        {
            return self.value(&json);
        }
        if text.starts_with("sha256:") {
            self.named.push(Named::Spec(text.into()));
        }
        text.hash(&mut self.hasher);
    }
}
