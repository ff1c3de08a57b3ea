//! `metav1.Condition`, and setting one without touching what has not changed.

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::display::printable;

/// Truth value of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known now.
    Unknown,
}

impl ConditionStatus {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A desired condition; [`set`] fills in the transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCondition {
    /// Type, one of [`crate::api::meta::condition`].
    pub type_: &'static str,
    /// Truth value.
    pub status: ConditionStatus,
    /// CamelCase, never empty.
    pub reason: String,
    /// For people, or JSON where the type says so; at most 32,768 bytes.
    pub message: String,
}

/// A change of the conditions of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionChange {
    /// Sets it.
    Set(WantedCondition),
    /// Removes it.
    Remove(&'static str),
}

impl ConditionChange {
    /// Sets a condition.
    pub fn set(
        type_: &'static str,
        status: ConditionStatus,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self::Set(WantedCondition { type_, status, reason: reason.to_owned(), message: message.into() })
    }
}

/// Makes changes.
pub fn apply(
    conditions: &mut Vec<Condition>,
    changes: Vec<ConditionChange>,
    generation: Option<i64>,
    now: &Time,
) {
    for change in changes {
        match change {
            ConditionChange::Set(wanted) => set(conditions, wanted, generation, now),
            ConditionChange::Remove(type_) => conditions.retain(|condition| condition.type_ != type_),
        }
    }
}

/// Finds a condition by type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition of that type is `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

/// Longest message of a condition in the schema.
const LONGEST: usize = 32_768;

/// A message as kubectl may print it.
fn message(text: &str) -> String {
    let mut shown = printable(text).into_owned();
    shown.truncate(shown.floor_char_boundary(LONGEST));
    shown
}

/// Sets a condition; `lastTransitionTime` moves only when the status does.
pub fn set(conditions: &mut Vec<Condition>, wanted: WantedCondition, generation: Option<i64>, now: &Time) {
    let status = wanted.status.as_str();
    let message = message(&wanted.message);
    match conditions.iter_mut().find(|c| c.type_ == wanted.type_) {
        Some(found) => {
            if found.status != status {
                found.status = status.to_owned();
                found.last_transition_time = now.clone();
            }
            found.reason = wanted.reason;
            found.message = message;
            found.observed_generation = generation;
        }
        None => conditions.push(Condition {
            type_: wanted.type_.to_owned(),
            status: status.to_owned(),
            reason: wanted.reason,
            message,
            observed_generation: generation,
            last_transition_time: now.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kubectl prints a message as it is.
    #[test]
    fn no_message_steers_the_terminal() {
        let wanted = |message: String| WantedCondition {
            type_: "Ready",
            status: ConditionStatus::False,
            reason: "R".to_owned(),
            message,
        };
        let now = Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
        let mut all = Vec::new();
        set(&mut all, wanted("step \u{1b}[2J\u{202e}".to_owned()), None, &now);
        assert_eq!(all[0].message, "step \\u001b[2J\\u202e");
        set(&mut all, wanted("\u{202e}".repeat(32_768)), None, &now);
        assert_eq!(all[0].message.len(), LONGEST);
    }
}
