//! What the API server refused of the children of a DataPlane, and of their pods, as its conditions say it.

use interlock_core::api::display::display;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::Effect;
use interlock_core::reconcile::RefusedWrite;
use interlock_core::rejection::{MAX_MESSAGE, Rejection};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::condition;

/// Reason and message of what only a person can mend.
pub type Stall = (&'static str, String);

/// How long a write is retried before the DataPlane is stalled, where it may succeed by itself.
const RETRIED: SignedDuration = SignedDuration::from_mins(2);

/// A child whose write the API server refused.
#[derive(Clone, Debug)]
pub struct RefusedChild {
    /// `Deployment dataplane-edge-blue`.
    name: String,
    /// `is not applied`.
    what: &'static str,
    is_live: bool,
    /// What the API server answered.
    pub rejection: Rejection,
    since: Timestamp,
}

impl RefusedChild {
    pub fn of(key: &ObjectKey, refused: &RefusedWrite, is_live: bool) -> Self {
        let name = format!("{} {}", key.gvk.kind, key.name);
        let what = match refused.effect {
            Effect::Delete { .. } => "is not deleted",
            Effect::Create { .. } => "is not created",
            Effect::Patch { .. } => "is not changed",
            _ => "is not applied",
        };
        Self { name, what, is_live, rejection: Rejection::of(&refused.failure), since: refused.since }
    }

    /// Whether the write will hardly succeed by itself.
    pub fn stalls(&self, now: Timestamp) -> bool {
        self.rejection.kind.needs_person() || now.duration_since(self.since) >= RETRIED
    }

    /// What was refused, for people.
    pub fn message(&self) -> String {
        format!("{} {}: {}", self.name, self.what, self.rejection.message)
    }
}

/// Reason and message of `Stalled` for refused children: of the first, with how many more there are.
pub fn stall(refused: &[RefusedChild], now: Timestamp) -> Option<Stall> {
    reason_and_message(refused.iter().filter(|child| child.stalls(now)))
}

/// The same of the live side, for `Ready`, from the first try on.
pub fn of_live(refused: &[RefusedChild]) -> Option<Stall> {
    reason_and_message(refused.iter().filter(|child| child.is_live))
}

fn reason_and_message<'r>(mut refused: impl Iterator<Item = &'r RefusedChild>) -> Option<Stall> {
    let first = refused.next()?;
    let others: Vec<&str> = refused.map(|child| child.name.as_str()).collect();
    let more = match others.as_slice() {
        [] => String::new(),
        others => format!("; nor is {}", others.join(", ")),
    };
    Some((first.rejection.kind.reason(), format!("{}{more}", first.message())))
}

/// The text of the condition `ReplicaFailure` of a Deployment: its ReplicaSet could not create or delete pods.
pub fn replica_failure(deployment: &Value) -> Option<String> {
    let found =
        condition(&deployment["status"], "ReplicaFailure").filter(|found| found["status"] == "True")?;
    Some(display(found["message"].as_str().unwrap_or_default(), MAX_MESSAGE))
}
