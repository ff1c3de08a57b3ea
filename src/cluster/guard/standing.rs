//! How each object that guards stands.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::difference;
use super::object::{Id, Kind, Seen};

/// How something that guards stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// As it was installed.
    Intact,
    /// Not; why and what to do, for people.
    Broken(String),
}

impl Guard {
    /// Whether it guards.
    pub fn holds(&self) -> bool {
        *self == Self::Intact
    }
}

/// A policy with its binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyState {
    /// How both stand.
    pub guard: Guard,
    /// Uids and generations of both, where they are there: the same as long as neither was deleted
    /// nor edited.
    pub revision: String,
}

struct Look {
    installed: Value,
    /// The outer `None` where nobody has looked.
    found: Option<Option<Value>>,
    guard: Guard,
}

/// All that guard.
pub struct Standing(BTreeMap<Id, Look>);

impl Standing {
    /// Nothing has been looked at yet of what was installed so.
    pub fn of(installed: Vec<Value>) -> Self {
        let looks = installed.into_iter().filter_map(|installed| {
            Some((Id::of(&installed)?, Look { installed, found: None, guard: Guard::Unknown }))
        });
        Self(looks.collect())
    }

    /// Something was seen; whether it is one of ours.
    pub(super) fn see(&mut self, seen: Seen) -> bool {
        let Some(look) = self.0.get_mut(&seen.id) else { return false };
        look.guard = judge(&seen.id, &look.installed, seen.object.as_ref());
        look.found = Some(seen.object);
        true
    }

    pub(super) fn names(&self, kind: Kind) -> BTreeSet<String> {
        self.0.keys().filter(|id| id.kind == kind).map(|id| id.name.clone()).collect()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&Id, &Guard)> {
        self.0.iter().map(|(id, look)| (id, &look.guard))
    }

    /// What is there; the outer `None` where nobody has looked.
    pub fn found(&self, id: &Id) -> Option<Option<&Value>> {
        self.0.get(id)?.found.as_ref().map(Option::as_ref)
    }

    /// A policy and its binding, which have one name, and what tells them from what was there before.
    pub fn policy_state(&self, name: &str) -> PolicyState {
        let revisions = [Kind::Policy, Kind::Binding].map(|kind| {
            let found = self.found(&Id { kind, name: name.to_owned() }).flatten();
            let metadata = found.map(|object| &object["metadata"]);
            let uid = metadata.and_then(|metadata| metadata["uid"].as_str()).unwrap_or_default();
            let generation =
                metadata.and_then(|metadata| metadata["generation"].as_i64()).unwrap_or_default();
            format!("{uid}.{generation}")
        });
        PolicyState { guard: self.policy(name), revision: revisions.join("/") }
    }

    /// A policy and its binding, which have one name.
    pub fn policy(&self, name: &str) -> Guard {
        let guard = |kind| {
            let look = self.0.get(&Id { kind, name: name.to_owned() });
            look.map(|look| look.guard.clone()).unwrap_or_default()
        };
        match (guard(Kind::Policy), guard(Kind::Binding)) {
            (Guard::Unknown, _) | (_, Guard::Unknown) => Guard::Unknown,
            (Guard::Intact, binding) => binding,
            (broken, _) => broken,
        }
    }
}

fn judge(id: &Id, installed: &Value, found: Option<&Value>) -> Guard {
    let problem = match found {
        None => format!("{id} is not there"),
        Some(found) => match difference(id.kind, installed, found) {
            None => return Guard::Intact,
            Some(field) => format!("{id} differs from what was installed in {field}"),
        },
    };
    let part = id.kind.part();
    Guard::Broken(format!(
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

    fn seen(kind: Kind, object: Option<Value>) -> Seen {
        Seen { id: Id { kind, name: "p".to_owned() }, object }
    }

    /// An absence that no watch told of is seen too.
    #[test]
    fn what_was_deleted_or_edited_has_another_revision() {
        let mut standing = Standing::of(vec![policy(), binding()]);
        let mut look = |uid: &str, generation: i64, label: &str| {
            for (kind, mut object) in [(Kind::Policy, policy()), (Kind::Binding, binding())] {
                object["metadata"]["uid"] = json!(uid);
                object["metadata"]["generation"] = json!(generation);
                object["metadata"]["labels"] = json!({"a": label});
                standing.see(seen(kind, Some(object)));
            }
            standing.policy_state("p")
        };
        let first = look("u1", 1, "x");
        assert_eq!(first, PolicyState { guard: Guard::Intact, revision: "u1.1/u1.1".to_owned() });
        assert_eq!(look("u1", 1, "y"), first, "a label is no change");
        assert_ne!(look("u1", 2, "y"), first, "edited");
        assert_ne!(look("u2", 1, "y"), first, "deleted and made again");
    }

    #[test]
    fn a_policy_guards_with_its_binding_only() {
        let mut standing = Standing::of(vec![policy(), binding()]);
        assert_eq!(standing.policy("p"), Guard::Unknown);
        assert!(standing.see(seen(Kind::Policy, Some(policy()))));
        assert_eq!(standing.policy("p"), Guard::Unknown, "nobody has looked at the binding");
        standing.see(seen(Kind::Binding, Some(binding())));
        assert_eq!(standing.policy("p"), Guard::Intact);
        standing.see(seen(Kind::Binding, None));
        let Guard::Broken(why) = standing.policy("p") else { panic!("it guards") };
        assert!(why.starts_with("ValidatingAdmissionPolicyBinding p is not there; apply what"), "{why}");
        standing.see(seen(Kind::Binding, Some(binding())));
        let mut open = policy();
        open["spec"]["failurePolicy"] = json!("Ignore");
        standing.see(seen(Kind::Policy, Some(open)));
        let Guard::Broken(why) = standing.policy("p") else { panic!("it guards") };
        let text = "ValidatingAdmissionPolicy p differs from what was installed in failurePolicy";
        assert!(
            why.starts_with(text) && why.contains("interlock render policies ... | kubectl apply"),
            "{why}"
        );
        assert!(!standing.see(Seen { id: Id { kind: Kind::Mutating, name: "p".to_owned() }, object: None }));
    }
}
