//! The spec of an Instance, borrowed from the review.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use interlock_core::admission::review::ReviewObject;
use interlock_core::admission::string_map::StringMap;
use interlock_core::api::json::{JsonError, Scanner, SeenMembers};
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::{Applied, SpecHash, VersionRef};

/// `spec.planExecution` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenExecution<'a> {
    /// Whether it is set at all: absent, null and `{}` count as unset.
    pub said: bool,
    /// Plan, empty when there is none.
    pub plan: Cow<'a, str>,
    /// Id, empty when there is none.
    pub uid: Cow<'a, str>,
    /// Status, empty when there is none.
    pub status: Cow<'a, str>,
}

impl<'a> WrittenExecution<'a> {
    fn read(s: &mut Scanner<'a>) -> Result<Self, JsonError> {
        let mut execution = Self::default();
        let mut seen = SeenMembers::default();
        let mut said = false;
        s.optional_members(|name, s| {
            let (number, place) = match name.as_str() {
                "planName" => (0, &mut execution.plan),
                "uid" => (1, &mut execution.uid),
                "status" => (2, &mut execution.status),
                _ => return s.value().map(drop),
            };
            seen.once(number, s)?;
            if let Some(text) = s.optional_text()? {
                said = true;
                *place = text.0;
            }
            Ok(())
        })?;
        Ok(Self { said, ..execution })
    }
}

impl WrittenExecution<'_> {
    /// Whether both name the same execution in the same status.
    pub fn same(&self, other: &WrittenExecution<'_>) -> bool {
        self.plan == other.plan && self.uid == other.uid && self.status == other.status
    }

    pub fn is_empty(&self) -> bool {
        self.same(&WrittenExecution::default())
    }
}

/// The spec of an Instance.
#[derive(Clone, Debug, Default)]
pub struct SpecView<'a> {
    /// The part that plans carry out.
    pub applied: Applied<'a>,
    /// The original text of its parameters, if that is canonical JSON and they are unchanged.
    written: Option<&'a str>,
    /// Canonical JSON of `applied` and its hash, computed on first use.
    canonical: OnceCell<(String, SpecHash)>,
    /// The requested or running plan.
    pub execution: WrittenExecution<'a>,
    /// Whether `spec` has a `parameters` map.
    pub has_parameters: bool,
}

impl<'a> SpecView<'a> {
    /// Reads the spec of an object in a namespace.
    pub fn read(object: &ReviewObject<'a>, namespace: &'a str) -> Result<Self, JsonError> {
        let mut spec = Self::default();
        let Some(raw) = object.spec else { return Ok(spec) };
        let mut seen = SeenMembers::default();
        raw.members(|name, s| match name.as_str() {
            "operatorVersion" => {
                seen.once(0, s)?;
                spec.applied.operator_version = read_reference(s)?;
                Ok(())
            }
            "parameters" => {
                seen.once(1, s)?;
                let known = object.parameters.as_ref().filter(|read| s.known(read.text()));
                (spec.applied.parameters, spec.written) = match known {
                    Some(read) => (read.values.clone(), read.canonical()),
                    None => {
                        let read = StringMap::read(s, None)?;
                        let written = read.canonical();
                        (read.values, written)
                    }
                };
                Ok(())
            }
            "planExecution" => {
                seen.once(2, s)?;
                spec.execution = WrittenExecution::read(s)?;
                Ok(())
            }
            _ => s.value().map(drop),
        })?;
        let version = &mut spec.applied.operator_version;
        if version.namespace.is_empty() {
            version.namespace = Cow::Borrowed(namespace);
        }
        spec.has_parameters = !spec.applied.parameters.is_empty();
        Ok(spec)
    }

    /// Whether plans would carry out the same.
    pub fn same(&self, other: &SpecView<'_>) -> bool {
        let parameters = match (self.written, other.written) {
            (Some(own), Some(other)) => own == other,
            _ => self.applied.parameters == other.applied.parameters,
        };
        parameters && self.applied.operator_version == other.applied.operator_version
    }

    /// Hash of the part that plans carry out.
    pub fn hash(&self) -> &SpecHash {
        &self.both().1
    }

    /// Canonical JSON of the part that plans carry out.
    pub fn canonical(&self) -> &str {
        &self.both().0
    }

    fn both(&self) -> &(String, SpecHash) {
        self.canonical.get_or_init(|| {
            let text = match self.written {
                Some(parameters) => self.applied.operator_version.canonical_with(parameters),
                None => self.applied.canonical(),
            };
            let hash = SpecHash::of(&text);
            (text, hash)
        })
    }

    /// The OperatorVersion.
    pub fn version(&self) -> NamespacedName {
        let version = &self.applied.operator_version;
        NamespacedName::new(version.namespace.as_ref(), version.name.as_ref())
    }

    /// Sets the values of parameters.
    pub fn set(&mut self, values: &[(String, String)]) {
        if !values.is_empty() {
            let owned = values.iter().map(|(name, value)| (name.clone().into(), value.clone().into()));
            self.applied.parameters.extend(owned);
            self.changed();
        }
    }

    /// Removes parameters.
    pub fn remove(&mut self, names: &[String]) {
        if !names.is_empty() {
            let gone: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            self.applied.parameters.retain(|name| !gone.contains(name));
            self.changed();
        }
    }

    fn changed(&mut self) {
        self.written = None;
        self.canonical.take();
    }
}

fn read_reference<'a>(s: &mut Scanner<'a>) -> Result<VersionRef<'a>, JsonError> {
    let mut reference = VersionRef::default();
    let mut seen = SeenMembers::default();
    s.optional_members(|name, s| {
        let (number, place) = match name.as_str() {
            "name" => (0, &mut reference.name),
            "namespace" => (1, &mut reference.namespace),
            _ => return s.value().map(drop),
        };
        seen.once(number, s)?;
        if let Some(text) = s.optional_text()? {
            *place = text.0;
        }
        Ok(())
    })?;
    Ok(reference)
}
