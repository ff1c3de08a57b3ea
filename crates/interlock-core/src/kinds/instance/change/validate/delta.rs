//! Difference between the previous and the new spec, and its text for people.

use std::borrow::Cow;

use crate::api::kudo::Parameter;
use crate::api::stamp::{Applied, VersionRef};
use crate::api::violation::{FieldReason, ViolationField};
use crate::kinds::instance::change::baseline::{Baseline, Difference};
use crate::package::Package;
use crate::package::params;
use crate::package::params::MASK;

/// Previous value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Was<'a> {
    /// Not set.
    Absent,
    /// This value.
    Value(Cow<'a, str>),
    /// Another value; only its hash is known.
    Unknown,
}

impl Was<'_> {
    pub(super) fn display(&self, parameter: Option<&Parameter>) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Value(value) => params::display(parameter, value).into_owned(),
            Self::Unknown => MASK.to_owned(),
        }
    }
}

/// Difference between the previous and the new spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta<'a> {
    /// Whether the OperatorVersion differs, in name or namespace; nothing else of the reference
    /// counts.
    pub upgrade: bool,
    /// Parameters that were added or whose value changed, with their previous values.
    pub changed: Vec<(&'a str, Was<'a>)>,
    /// Parameters that were removed, with their previous values.
    pub removed: Vec<(Cow<'a, str>, Was<'a>)>,
}

impl<'a> Delta<'a> {
    /// From one spec to another.
    pub fn between(old: &'a Applied<'_>, new: &'a Applied<'_>) -> Self {
        let upgrade = old.operator_version != new.operator_version;
        let mut delta = Self { upgrade, ..Self::default() };
        let value = |text: &'a str| Was::Value(Cow::Borrowed(text));
        let mut before = old.parameters.iter().peekable();
        for (key, after) in &new.parameters {
            // Most parameters are in both specs.
            let mut same = before.next_if(|(other, _)| *other == key);
            while same.is_none()
                && let Some((gone, was)) = before.next_if(|(other, _)| *other < key)
            {
                delta.removed.push((Cow::Borrowed(gone.as_ref()), value(was)));
                same = before.next_if(|(other, _)| *other == key);
            }
            match same {
                Some((_, was)) if was == after => {}
                Some((_, was)) => delta.changed.push((key, value(was))),
                None => delta.changed.push((key, Was::Absent)),
            }
        }
        delta.removed.extend(before.map(|(gone, was)| (Cow::Borrowed(gone.as_ref()), value(was))));
        delta
    }

    /// From a baseline, which has only hashes, to a spec; `None` where it has not even those.
    pub fn since(basis: &Baseline, new: &'a Applied<'_>) -> Option<Self> {
        let (upgrade, changed, removed) = match basis.difference(new) {
            Difference::None => return Some(Self::default()),
            Difference::Somewhere => return None,
            Difference::Parts { operator_version, changed, removed } => (operator_version, changed, removed),
        };
        let known = basis.detail.as_ref().map(|d| &d.parameters);
        let was = |key: &str| match known.is_some_and(|k| k.contains_key(key)) {
            true => Was::Unknown,
            false => Was::Absent,
        };
        Some(Self {
            upgrade,
            changed: new
                .parameters
                .keys()
                .filter(|key| changed.contains(key.as_ref()))
                .map(|key| (key.as_ref(), was(key)))
                .collect(),
            removed: removed.into_iter().map(|key| (Cow::Owned(key), Was::Unknown)).collect(),
        })
    }

    /// Names of all parameters that differ.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(|(key, _)| *key).chain(self.removed.iter().map(|(key, _)| key.as_ref()))
    }

    /// The fields that differ, for people.
    pub fn fields(
        &self,
        new: &Applied<'_>,
        old: Option<&VersionRef<'_>>,
        package: Option<&Package>,
    ) -> Vec<ViolationField> {
        let mut fields = Vec::new();
        if self.upgrade {
            let before = old.map_or("?", |v| v.name.as_ref());
            let after = &new.operator_version.name;
            fields.push(ViolationField::new(
                "spec.operatorVersion",
                FieldReason::Forbidden,
                format!("{before:?} -> {after:?}"),
            ));
        }
        let definition = |key: &str| package.and_then(|p| p.parameter(key));
        for (key, was) in &self.changed {
            let value = new.parameters.get(key).map(AsRef::as_ref).unwrap_or_default();
            fields.push(ViolationField::parameter(
                key,
                FieldReason::Forbidden,
                arrow(definition(key), was, Some(value)),
            ));
        }
        for (key, was) in &self.removed {
            fields.push(ViolationField::parameter(
                key,
                FieldReason::Forbidden,
                arrow(definition(key), was, None),
            ));
        }
        fields
    }
}

/// `before -> after`, for people.
pub(super) fn arrow(parameter: Option<&Parameter>, was: &Was<'_>, value: Option<&str>) -> String {
    let before = match was {
        Was::Absent => "(not set)".to_owned(),
        known => format!("'{}'", known.display(parameter)),
    };
    let after = value.map_or("(removed)".to_owned(), |v| format!("'{}'", params::display(parameter, v)));
    format!("{before} -> {after}")
}
