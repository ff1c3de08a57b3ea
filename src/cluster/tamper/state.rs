//! The state of each guard object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::difference;
use super::object::{GuardId, GuardKind, Observation};

/// The state of a guard object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GuardState {
    /// Not read yet.
    #[default]
    Unknown,
    /// As installed.
    Intact,
    /// Changed or absent; reason and remedy, for people.
    Broken(String),
}

impl GuardState {
    /// Whether it is intact.
    pub fn holds(&self) -> bool {
        *self == Self::Intact
    }
}

/// A policy with its binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyState {
    /// The state of both.
    pub guard: GuardState,
    /// Uids and generations of both, where they exist: constant until one is deleted or edited.
    pub revision: String,
}

struct ObservedGuard {
    installed: Value,
    /// The outer `None` before the first read.
    found: Option<Option<Value>>,
    guard: GuardState,
    /// Whether an installation may go without it.
    optional: bool,
}

/// All guard objects and their states.
pub struct GuardStates(BTreeMap<GuardId, ObservedGuard>);

impl GuardStates {
    /// Nothing read yet; `installed` holds the expected objects.
    pub fn of(installed: Vec<Value>) -> Self {
        Self::with_optional(installed, Vec::new())
    }

    /// The same, with objects that an installation may go without: a policy and its binding are known as soon as one of
    /// them was seen, and missed from then on.
    pub fn with_optional(installed: Vec<Value>, optional: Vec<Value>) -> Self {
        let guards = |objects: Vec<Value>, optional| {
            objects.into_iter().filter_map(move |installed| {
                let id = GuardId::of(&installed)?;
                Some((id, ObservedGuard { installed, found: None, guard: GuardState::Unknown, optional }))
            })
        };
        Self(guards(installed, false).chain(guards(optional, true)).collect())
    }

    /// Takes in an observation; returns whether it is of one of ours.
    pub(super) fn observe(&mut self, seen: Observation) -> bool {
        let Some(check) = self.0.get_mut(&seen.id) else { return false };
        check.guard = compare(&seen.id, &check.installed, seen.object.as_ref());
        check.found = Some(seen.object);
        if check.optional {
            let of_name = |id: &GuardId| id.name == seen.id.name;
            let is_installed =
                self.0.iter().any(|(id, part)| of_name(id) && matches!(part.found, Some(Some(_))));
            for (id, part) in self.0.iter_mut().filter(|(id, _)| of_name(id)) {
                part.optional = !is_installed;
                part.guard = match &part.found {
                    Some(found) if is_installed => compare(id, &part.installed, found.as_ref()),
                    _ => GuardState::Unknown,
                };
            }
        }
        true
    }

    pub(super) fn names(&self, kind: GuardKind) -> BTreeSet<String> {
        self.0.keys().filter(|id| id.kind == kind).map(|id| id.name.clone()).collect()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&GuardId, &GuardState)> {
        self.0.iter().map(|(id, check)| (id, &check.guard))
    }

    /// The object as last read; the outer `None` before the first read.
    pub fn found(&self, id: &GuardId) -> Option<Option<&Value>> {
        self.0.get(id)?.found.as_ref().map(Option::as_ref)
    }

    /// The state of a policy and its binding, which share a name, with their revision.
    pub fn policy_state(&self, name: &str) -> PolicyState {
        let revisions = [GuardKind::Policy, GuardKind::Binding].map(|kind| {
            let found = self.found(&GuardId { kind, name: name.to_owned() }).flatten();
            let metadata = found.map(|object| &object["metadata"]);
            let uid = metadata.and_then(|metadata| metadata["uid"].as_str()).unwrap_or_default();
            let generation =
                metadata.and_then(|metadata| metadata["generation"].as_i64()).unwrap_or_default();
            format!("{uid}.{generation}")
        });
        PolicyState { guard: self.policy(name), revision: revisions.join("/") }
    }

    /// The state of a policy and its binding, which share a name.
    pub fn policy(&self, name: &str) -> GuardState {
        let guard = |kind| {
            let check = self.0.get(&GuardId { kind, name: name.to_owned() });
            check.map(|check| check.guard.clone()).unwrap_or_default()
        };
        match (guard(GuardKind::Policy), guard(GuardKind::Binding)) {
            (GuardState::Unknown, _) | (_, GuardState::Unknown) => GuardState::Unknown,
            (GuardState::Intact, binding) => binding,
            (broken, _) => broken,
        }
    }
}

fn compare(id: &GuardId, installed: &Value, found: Option<&Value>) -> GuardState {
    let problem = match found {
        None => format!("{id} does not exist"),
        Some(found) => match difference(id.kind, installed, found) {
            None => return GuardState::Intact,
            Some(field) => format!("{id} differs from the installed object in {field}"),
        },
    };
    let part = id.kind.part();
    GuardState::Broken(format!(
        "{problem}; apply what `interlock render {part}` prints with the flags of this installation: \
         interlock render {part} ... | kubectl apply -f -"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Value {
        json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail"}})
    }

    fn binding() -> Value {
        json!({"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"}, "spec": {"policyName": "p"}})
    }

    fn seen(kind: GuardKind, object: Option<Value>) -> Observation {
        Observation { id: GuardId { kind, name: "p".to_owned() }, object }
    }

    /// A deletion that the watch missed shows in the new uid.
    #[test]
    fn what_was_deleted_or_edited_has_another_revision() {
        let mut states = GuardStates::of(vec![policy(), binding()]);
        let mut check = |uid: &str, generation: i64, label: &str| {
            for (kind, mut object) in [(GuardKind::Policy, policy()), (GuardKind::Binding, binding())] {
                object["metadata"]["uid"] = json!(uid);
                object["metadata"]["generation"] = json!(generation);
                object["metadata"]["labels"] = json!({"a": label});
                states.observe(seen(kind, Some(object)));
            }
            states.policy_state("p")
        };
        let first = check("u1", 1, "x");
        assert_eq!(first, PolicyState { guard: GuardState::Intact, revision: "u1.1/u1.1".to_owned() });
        assert_eq!(check("u1", 1, "y"), first, "a label is no change");
        assert_ne!(check("u1", 2, "y"), first, "edited");
        assert_ne!(check("u2", 1, "y"), first, "deleted and made again");
    }

    #[test]
    fn a_policy_guards_with_its_binding_only() {
        let mut states = GuardStates::of(vec![policy(), binding()]);
        assert_eq!(states.policy("p"), GuardState::Unknown);
        assert!(states.observe(seen(GuardKind::Policy, Some(policy()))));
        assert_eq!(states.policy("p"), GuardState::Unknown, "nobody has looked at the binding");
        states.observe(seen(GuardKind::Binding, Some(binding())));
        assert_eq!(states.policy("p"), GuardState::Intact);
        states.observe(seen(GuardKind::Binding, None));
        let GuardState::Broken(why) = states.policy("p") else { panic!("it guards") };
        assert!(why.starts_with("ValidatingAdmissionPolicyBinding p does not exist; apply what"), "{why}");
        states.observe(seen(GuardKind::Binding, Some(binding())));
        let mut open = policy();
        open["spec"]["failurePolicy"] = json!("Ignore");
        states.observe(seen(GuardKind::Policy, Some(open)));
        let GuardState::Broken(why) = states.policy("p") else { panic!("it guards") };
        let text = "ValidatingAdmissionPolicy p differs from the installed object in failurePolicy";
        assert!(
            why.starts_with(text) && why.contains("interlock render policies ... | kubectl apply"),
            "{why}"
        );
        assert!(!states.observe(Observation {
            id: GuardId { kind: GuardKind::Mutating, name: "p".to_owned() },
            object: None
        }));
    }

    #[test]
    fn an_optional_policy_is_missed_once_it_was_there() {
        let mut states = GuardStates::with_optional(Vec::new(), vec![policy(), binding()]);
        states.observe(seen(GuardKind::Binding, None));
        states.observe(seen(GuardKind::Policy, None));
        assert_eq!(states.policy("p"), GuardState::Unknown, "it was never installed");
        // Its binding alone is missing.
        states.observe(seen(GuardKind::Policy, Some(policy())));
        let GuardState::Broken(why) = states.policy("p") else { panic!("it guards") };
        assert!(why.starts_with("ValidatingAdmissionPolicyBinding p does not exist"), "{why}");
        states.observe(seen(GuardKind::Binding, Some(binding())));
        assert_eq!(states.policy("p"), GuardState::Intact);
        states.observe(seen(GuardKind::Binding, None));
        states.observe(seen(GuardKind::Policy, None));
        assert!(matches!(states.policy("p"), GuardState::Broken(_)), "both were deleted");
    }
}
