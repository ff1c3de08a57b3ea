//! The override of a flavor rule: an authorized user permits one change that a rule would deny.
//!
//! It is an annotation, `FROM->TO@CHANGE`, on the written object: the gateway, or the ConfigMap or
//! Secret that the flavor comes from. `CHANGE` identifies the object, its state before and its content
//! after the change, so the change that it permits uses an override up, and one that stays on the
//! object afterwards permits nothing. A policy checks with the API server's authorizer who may write it
//! (`interlock render policies`).

use std::fmt;

use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use thiserror::Error;

use super::Flavor;

/// One change of one object: twelve hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeId(String);

impl ChangeId {
    /// The id of a change of the object with that uid, from a state to a content.
    ///
    /// An object never returns to the state once it has been changed: it is `metadata.generation` for
    /// objects that have one, and `metadata.resourceVersion` for ConfigMaps and Secrets.
    pub fn of(uid: &str, state: &str, content: &SpecHash) -> Self {
        Self(SpecHash::of(&format!("{uid}\n{state}\n{content}")).short().to_owned())
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The change that an annotation permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    from: Flavor,
    to: Flavor,
    /// Absent if the annotation names no change: then it permits nothing.
    change: Option<ChangeId>,
}

/// An annotation that is no valid override.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("annotation {} is FROM->TO@CHANGE, with router flavors as FROM and TO", meta::ALLOW_FLAVOR)]
pub struct MalformedOverride;

impl Override {
    /// Reads the value of the annotation [`meta::ALLOW_FLAVOR`]; `None` where there is none.
    pub fn parse(annotation: Option<&str>) -> Option<Result<Self, MalformedOverride>> {
        Some(Self::read(annotation?.trim()).ok_or(MalformedOverride))
    }

    fn read(text: &str) -> Option<Self> {
        let (flavors, change) = match text.split_once('@') {
            Some((flavors, change)) => (flavors, Some(ChangeId(change.to_owned()))),
            None => (text, None),
        };
        let (from, to) = flavors.split_once("->")?;
        Some(Self { from: Flavor::named(from)?, to: Flavor::named(to)?, change })
    }

    /// Whether it permits that change between these flavors.
    pub fn permits(&self, from: Flavor, to: Flavor, change: &ChangeId) -> bool {
        self.from == from && self.to == to && self.change.as_ref() == Some(change)
    }

    /// The text that permits a change.
    pub fn text(from: Flavor, to: Flavor, change: &ChangeId) -> String {
        format!("{from}->{to}@{change}")
    }
}

/// The override that an object's annotation holds for the change under validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorOverride {
    said: Result<Override, MalformedOverride>,
    change: ChangeId,
    /// Why no policy checks the rights of its writer.
    unguarded: Option<String>,
}

impl FlavorOverride {
    /// Reads the annotation's value; computes the id of the `change` only if there is one.
    pub fn read(annotation: Option<&str>, change: impl FnOnce() -> ChangeId) -> Option<Self> {
        let said = Override::parse(annotation)?;
        Some(Self { said, change: change(), unguarded: None })
    }

    /// The same, but permitting nothing if the policy that checks its writer is not in force.
    #[must_use]
    pub fn guarded(self, guarded: Result<(), String>) -> Self {
        Self { unguarded: guarded.err(), ..self }
    }

    /// Whether it permits the change between these flavors; if not, the remedy.
    pub fn permits(&self, from: Flavor, to: Flavor) -> Result<(), String> {
        let write = format!("\"{}\" for this change", Override::text(from, to, &self.change));
        match &self.said {
            Ok(said) if said.permits(from, to, &self.change) => match &self.unguarded {
                None => Ok(()),
                Some(why) => Err(format!("annotation {} counts for nothing now: {why}", meta::ALLOW_FLAVOR)),
            },
            Ok(Override { change: None, .. }) => {
                Err(format!("annotation {} names no change; write {write}", meta::ALLOW_FLAVOR))
            }
            Ok(_) => Err(format!("annotation {} is for another change; write {write}", meta::ALLOW_FLAVOR)),
            Err(malformed) => Err(format!("{malformed}; write {write}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Flavor::{Expressions as EX, Traditional as T, TraditionalCompatible as TC};
    use super::*;

    fn change() -> ChangeId {
        ChangeId::of("uid-1", "7", &SpecHash::of("{}"))
    }

    #[rstest]
    #[case::none(None, T, EX, None)]
    #[case::exact(Some("traditional->expressions@CHANGE"), T, EX, Some(Ok(())))]
    #[case::spaces(Some(" traditional->expressions@CHANGE\n"), T, EX, Some(Ok(())))]
    #[case::other_way(
        Some("expressions->traditional@CHANGE"),
        T,
        EX,
        Some(Err("is for another change; write \"traditional->expressions@CHANGE\" for this change"))
    )]
    #[case::other_target(
        Some("traditional->traditional_compatible@CHANGE"),
        T,
        EX,
        Some(Err("is for another change"))
    )]
    #[case::other_change(
        Some("traditional->expressions@000000000000"),
        T,
        EX,
        Some(Err("is for another change"))
    )]
    #[case::no_change(
        Some("traditional->expressions"),
        T,
        EX,
        Some(Err("names no change; write \"traditional->expressions@CHANGE\""))
    )]
    #[case::empty_change(Some("traditional->expressions@"), T, EX, Some(Err("is for another change")))]
    #[case::no_flavor(
        Some("traditional->atc@CHANGE"),
        T,
        EX,
        Some(Err(
            "is FROM->TO@CHANGE, with router flavors as FROM and TO; write \"traditional->expressions@CHANGE\""
        ))
    )]
    #[case::any(Some("*"), TC, EX, Some(Err("is FROM->TO@CHANGE")))]
    #[case::empty(Some(""), TC, EX, Some(Err("is FROM->TO@CHANGE")))]
    fn only_the_exact_text_permits(
        #[case] text: Option<&str>,
        #[case] from: Flavor,
        #[case] to: Flavor,
        #[case] permitted: Option<Result<(), &str>>,
    ) {
        let written = |text: &str| text.replace("CHANGE", &change().to_string());
        let allowance = FlavorOverride::read(text.map(written).as_deref(), change);
        match (allowance.map(|allowance| allowance.permits(from, to)), permitted) {
            (None, None) | (Some(Ok(())), Some(Ok(()))) => {}
            (Some(Err(said)), Some(Err(part))) => {
                let said = said.replace(&change().to_string(), "CHANGE").replace("FROM->TO@CHANGE", "FORM");
                assert!(said.contains(&part.replace("FROM->TO@CHANGE", "FORM")), "{said}");
            }
            (said, wanted) => panic!("{said:?}, not {wanted:?}"),
        }
    }

    #[test]
    fn without_its_policy_it_permits_nothing() {
        let exact = Override::text(T, EX, &change());
        let allowance = FlavorOverride::read(Some(&exact), change).unwrap();
        let broken = allowance.clone().guarded(Err("policy p is not there".to_owned()));
        assert_eq!(allowance.guarded(Ok(())).permits(T, EX), Ok(()));
        let said = broken.permits(T, EX).unwrap_err();
        assert!(said.ends_with("counts for nothing now: policy p is not there"), "{said}");
    }

    #[rstest]
    #[case::uid("uid-2", "7", "{}")]
    #[case::state("uid-1", "8", "{}")]
    #[case::content("uid-1", "7", "{\"a\":1}")]
    #[case::no_mixing("uid-1\n7", "", "{}")]
    fn another_change_has_another_name(#[case] uid: &str, #[case] state: &str, #[case] content: &str) {
        assert_ne!(ChangeId::of(uid, state, &SpecHash::of(content)), change());
    }
}
