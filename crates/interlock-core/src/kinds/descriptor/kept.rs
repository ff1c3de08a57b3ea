//! What is kept of the objects of a kind for reconcilers, beside the rows of the topology.

use serde_json::{Map, Value};

/// The parts of an object that reconcilers read.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// JSON pointers of the members beside `metadata`; empty = all of them.
    pub fields: &'static [&'static str],
    /// Whether `metadata.managedFields` is one of them: a quarter of an object.
    pub managed_fields: bool,
}

impl Kept {
    /// Everything but `metadata.managedFields`.
    pub const WHOLE: Self = Self { fields: &[], managed_fields: false };

    /// An object as it is kept.
    pub fn project(&self, object: &Value) -> Value {
        if self.fields.is_empty() {
            return object.clone();
        }
        let mut kept = Map::new();
        for member in ["apiVersion", "kind", "metadata"] {
            kept.insert(member.to_owned(), object[member].clone());
        }
        let mut kept = Value::Object(kept);
        for pointer in self.fields {
            if let Some(found) = object.pointer(pointer) {
                set(&mut kept, pointer, found.clone());
            }
        }
        kept
    }
}

/// Sets what a pointer of member names refers to.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let place = pointer.split('/').skip(1).fold(object, |place, name| &mut place[name]);
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_named_fields_are_kept() {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"hostNetwork": true, "containers": [{"name": "c"}]},
            "status": {"podIP": "10.0.0.1", "phase": "Running", "containerStatuses": []},
        });
        let kept =
            Kept { fields: &["/spec/hostNetwork", "/status/podIP", "/status/none"], managed_fields: false };
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"hostNetwork": true}, "status": {"podIP": "10.0.0.1"},
        });
        assert_eq!(kept.project(&object), expected);
        assert_eq!(Kept::WHOLE.project(&object), object);
    }
}
