//! What becomes of a change of an object, by one guard.

use interlock_core::api::object::meta_str;
use serde_json::Value;

use crate::api::GuardAction;
use crate::busy::{BusyError, BusyRules, Found};
use crate::paths::{GuardedPaths, PathError};
use crate::preset::Preset;

/// A guard that is ready to decide.
#[derive(Debug)]
pub struct Guard {
    pub(crate) rules: BusyRules,
    pub(crate) paths: GuardedPaths,
    /// Whether what a controller owns is guarded too.
    pub(crate) includes_owned: bool,
    pub(crate) action: GuardAction,
}

/// What becomes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refused: the object is busy, and a guarded path differs.
    Deny,
    /// It is admitted with a warning, for the same reason.
    Warn,
    /// It is admitted.
    Allow,
}

impl Verdict {
    /// The word of the command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Allow => "allow",
        }
    }
}

/// Why a guard cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GuardError {
    /// A path.
    #[error("{0}")]
    Path(#[from] PathError),
    /// Conditions.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Busy(Vec<BusyError>),
}

/// The judgement on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The guarded paths in which it differs.
    pub changed: Vec<String>,
    /// Whether it is admitted as a controller owns the object, and only for that.
    pub is_owned: bool,
}

impl Guard {
    /// The guard that a preset makes.
    ///
    /// # Errors
    /// A path or an expression of the preset is wrong.
    pub fn of_preset(preset: &Preset) -> Result<Self, GuardError> {
        let rules = BusyRules::compile(&preset.busy).map_err(GuardError::Busy)?;
        let paths = GuardedPaths::read(&preset.paths, &preset.except)?;
        Ok(Self { rules, paths, includes_owned: false, action: GuardAction::Deny })
    }

    /// Why an object is busy. One that is being deleted is not: nothing holds it up.
    pub fn busy(&self, object: &Value) -> Found {
        if meta_str(object, "deletionTimestamp").is_none() {
            self.rules.found(object)
        } else {
            Found::default()
        }
    }

    /// What becomes of a change. What a controller owns is its controller's to change.
    pub fn judge(&self, old: &Value, new: &Value) -> Judgement {
        let changed: Vec<String> =
            self.paths.changed(old, new).into_iter().map(ToString::to_string).collect();
        let is_busy = !changed.is_empty() && !self.busy(old).busy.is_empty();
        let is_owned = is_busy && !self.includes_owned && has_controller(old);
        let is_held = is_busy && !is_owned;
        let verdict = match self.action {
            _ if !is_held => Verdict::Allow,
            GuardAction::Deny => Verdict::Deny,
            GuardAction::Warn => Verdict::Warn,
        };
        Judgement { verdict, changed, is_owned }
    }
}

fn has_controller(object: &Value) -> bool {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|own| own["controller"] == true)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn deployment(updated: u64, image: &str, extra: Value) -> Value {
        let mut object = json!({
            "metadata": {
                "name": "web", "generation": 2, "annotations": {"deployment.kubernetes.io/revision": "2"},
            },
            "spec": {"replicas": 3, "template": {"image": image}},
            "status": {
                "observedGeneration": 2, "replicas": 3, "updatedReplicas": updated,
                "conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}],
            },
        });
        for (name, value) in extra.as_object().unwrap() {
            object["metadata"][name] = value.clone();
        }
        object
    }

    /// A long annotation and a long list do not make the expressions of a preset too long.
    #[test]
    fn a_large_object_is_decided() {
        let guard = Guard::of_preset(crate::named("deployment").unwrap()).unwrap();
        let mut object = deployment(1, "a", json!({}));
        object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
            "x".repeat(200 << 10).into();
        object["spec"]["template"]["env"] = (0..1000).map(|n| json!({"name": n.to_string()})).collect();
        let found = guard.busy(&object);
        assert!(found.failures.is_empty() && !found.busy.is_empty(), "{found:?}");
    }

    #[rstest]
    #[case::in_mid_rollout(json!({}), "b", Verdict::Deny)]
    #[case::of_what_is_not_guarded(json!({}), "a", Verdict::Allow)]
    #[case::that_is_being_deleted(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), "b", Verdict::Allow)]
    #[case::of_a_controllers_own(json!({"ownerReferences": [{"controller": true}]}), "b", Verdict::Allow)]
    fn a_change_of_a_deployment(#[case] extra: Value, #[case] image: &str, #[case] verdict: Verdict) {
        let guard = Guard::of_preset(crate::named("deployment").unwrap()).unwrap();
        let old = deployment(1, "a", extra);
        let mut new = old.clone();
        new["spec"]["template"]["image"] = image.into();
        new["spec"]["replicas"] = 5.into();
        assert_eq!(guard.judge(&old, &new).verdict, verdict);
    }
}
