//! A reconciler as a pure function of what was read: it names what it must see, then the effects that it
//! wants, until it waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::object::ObjectKey;
use crate::effect::Effect;

/// The reconciler of a kind.
#[derive(Debug)]
pub struct Reconciler {
    /// Name in metrics and logs; one word.
    pub name: &'static str,
    /// Decides the next step. It is called again with what it asked to see, and after its effects.
    pub reconcile: fn(&ReconcileInput<'_>) -> ReconcileStep,
}

/// What a reconciler decides on.
#[derive(Debug)]
pub struct ReconcileInput<'a> {
    /// The object, as just read.
    pub object: &'a Value,
    /// The other objects that it asked to see in this reconcile; `None` for one that does not exist.
    pub found: &'a BTreeMap<ObjectKey, Option<Arc<Value>>>,
    /// The time.
    pub now: Timestamp,
}

/// What a reconciler wants.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileStep {
    /// To see these objects.
    Read(Vec<ObjectKey>),
    /// To have these effects, one after the other.
    Write(Vec<Effect>),
    /// Nothing until an event of the object, or until this time has passed.
    Await(Option<Duration>),
}
