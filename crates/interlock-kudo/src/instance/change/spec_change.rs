//! A change of a spec: the parts that differ, and their text for people.

use std::borrow::Cow;

use interlock_core::api::stamp::{Applied, VersionRef};
use interlock_core::api::violation::{FieldReason, ViolationField};

use super::baseline::{Baseline, ShortHash};
use crate::api::Parameter;
use crate::package::Package;
use crate::package::params;
use crate::package::params::MASK;

/// Previous value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviousValue<'a> {
    /// Not set.
    Absent,
    Value(Cow<'a, str>),
    /// Another value; only its hash is known.
    Unknown,
}

impl PreviousValue<'_> {
    /// For people; hides one that may be a password.
    pub fn display(&self, parameter: Option<&Parameter>) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Value(value) => params::display(parameter, value).into_owned(),
            Self::Unknown => MASK.to_owned(),
        }
    }
}

/// The parts that differ between the previous and the new spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecChange<'a> {
    /// Whether the OperatorVersion differs, in name or namespace; nothing else of the reference
    /// counts.
    pub upgrade: bool,
    /// Parameters that were added or whose value changed, with their previous values.
    pub changed: Vec<(&'a str, PreviousValue<'a>)>,
    /// Parameters that were removed, with their previous values.
    pub removed: Vec<(Cow<'a, str>, PreviousValue<'a>)>,
}

impl<'a> SpecChange<'a> {
    /// From one spec to another.
    pub fn between(old: &'a Applied<'_>, new: &'a Applied<'_>) -> Self {
        let upgrade = old.operator_version != new.operator_version;
        let mut change = Self { upgrade, ..Self::default() };
        let value = |text: &'a str| PreviousValue::Value(Cow::Borrowed(text));
        let mut before = old.parameters.iter().peekable();
        for (key, after) in &new.parameters {
            // Most parameters are in both specs.
            let mut same = before.next_if(|(other, _)| *other == key);
            while same.is_none()
                && let Some((gone, was)) = before.next_if(|(other, _)| *other < key)
            {
                change.removed.push((Cow::Borrowed(gone.as_ref()), value(was)));
                same = before.next_if(|(other, _)| *other == key);
            }
            match same {
                Some((_, was)) if was == after => {}
                Some((_, was)) => change.changed.push((key, value(was))),
                None => change.changed.push((key, PreviousValue::Absent)),
            }
        }
        change.removed.extend(before.map(|(gone, was)| (Cow::Borrowed(gone.as_ref()), value(was))));
        change
    }

    /// From a baseline, which has only hashes, to a spec; `None` where the spec differs and the
    /// baseline has no hashes of its parts.
    pub fn since(baseline: &Baseline, new: &'a Applied<'_>) -> Option<Self> {
        if baseline.hash == new.hash() {
            return Some(Self::default());
        }
        let detail = baseline.detail.as_ref()?;
        let mut change = Self { upgrade: !baseline.is_of_version(&new.operator_version), ..Self::default() };
        for (key, value) in &new.parameters {
            match detail.parameters.get(key.as_ref()) {
                Some(before) if *before == ShortHash::of(value) => {}
                Some(_) => change.changed.push((key, PreviousValue::Unknown)),
                None => change.changed.push((key, PreviousValue::Absent)),
            }
        }
        let removed = detail.parameters.keys().filter(|key| !new.parameters.contains_key(key));
        change.removed.extend(removed.map(|key| (Cow::Owned(key.clone()), PreviousValue::Unknown)));
        Some(change)
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

/// `before -> after`, for people; empty where values are not shown.
pub fn arrow(parameter: Option<&Parameter>, was: &PreviousValue<'_>, value: Option<&str>) -> String {
    if !parameter.is_some_and(params::shown) {
        return String::new();
    }
    let before = match was {
        PreviousValue::Absent => "(not set)".to_owned(),
        known => format!("'{}'", known.display(parameter)),
    };
    let after = value.map_or("(removed)".to_owned(), |v| format!("'{}'", params::display(parameter, v)));
    format!("{before} -> {after}")
}
