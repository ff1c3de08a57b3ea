//! Objects as the API server returns them, as events.

use serde_json::Value;

use super::{Changes, Event, Index, Subject};
use crate::node::{GATEWAY_GROUP, NodeKey, ObjectKind};
use crate::object::{self, DecodeError};
use crate::policy::PolicyId;
use crate::read::read_policy;
use crate::store::ObjectKey;

impl Index {
    /// Applies an object of the API server. One that does not decode is listed in [`Self::faults`], and its last
    /// decoded version stays in force.
    ///
    /// An error is an object that has no name, or a kind that the index does not know.
    pub fn observe(&mut self, value: &Value) -> Result<Changes, DecodeError> {
        let event = self.event(value)?;
        Ok(self.apply(event))
    }

    /// Applies the deletion of an object; only its identity matters.
    pub fn forget(&mut self, value: &Value) -> Result<Changes, DecodeError> {
        let event = self.deletion(value)?;
        Ok(self.apply(event))
    }

    /// What [`Self::observe`] would apply; [`Self::difference`] says what that would change.
    pub fn event(&self, value: &Value) -> Result<Event, DecodeError> {
        let subject = self.identify(value)?;
        let event = match &subject {
            Subject::Object(_) => object::decode(value).map(Event::Apply),
            Subject::Policy(id) => match self.kinds.get(&id.kind) {
                Some(kind) => read_policy(kind.as_ref(), value).map(Event::ApplyPolicy),
                None => return Err(unknown(value)),
            },
        };
        Ok(event.unwrap_or_else(|error| Event::Undecodable(subject, error.to_string())))
    }

    /// What [`Self::forget`] would apply.
    pub fn deletion(&self, value: &Value) -> Result<Event, DecodeError> {
        self.identify(value).map(Event::Delete)
    }

    /// What an object is, read from as little of it as possible.
    fn identify(&self, value: &Value) -> Result<Subject, DecodeError> {
        let (group, kind) = group_and_kind(value);
        let text =
            |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("/metadata/name").ok_or(DecodeError::NoName)?;
        let namespace = text("/metadata/namespace").unwrap_or("default");
        if let Some((own, _)) =
            self.kinds.iter().find(|(_, own)| own.group() == group && own.kubernetes_kind() == kind)
        {
            let id = PolicyId { kind: own.clone(), namespace: namespace.into(), name: name.into() };
            return Ok(Subject::Policy(id));
        }
        let key = match (group, kind) {
            ("", "Namespace") => ObjectKey::Namespace(name.into()),
            (GATEWAY_GROUP, "ReferenceGrant") => ObjectKey::Grant(namespace.into(), name.into()),
            _ => {
                let node = ObjectKind::find(group, kind).ok_or_else(|| unknown(value))?;
                ObjectKey::Node(NodeKey::new(node, namespace, name))
            }
        };
        Ok(Subject::Object(key))
    }
}

fn group_and_kind(value: &Value) -> (&str, &str) {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    (group, text("kind"))
}

fn unknown(value: &Value) -> DecodeError {
    let (group, kind) = group_and_kind(value);
    DecodeError::UnknownKind { group: group.to_owned(), kind: kind.to_owned() }
}
