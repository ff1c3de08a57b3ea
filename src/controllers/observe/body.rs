//! An object that a package made, kept as text: a tenth of what the parsed one takes.

use std::sync::Arc;

use serde_json::Value;

/// One object.
#[derive(Debug)]
pub struct Body(Box<[u8]>);

impl Body {
    /// Of an object.
    pub fn of(object: &Value) -> Self {
        // A JSON value always serialises.
        Self(serde_json::to_vec(object).unwrap_or_default().into_boxed_slice())
    }

    /// The object again.
    pub fn open(&self) -> Option<Arc<Value>> {
        serde_json::from_slice(&self.0).ok().map(Arc::new)
    }
}
