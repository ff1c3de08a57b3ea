//! What rules read of the spec and the status of an Instance, borrowed from the review.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::review::Object;
use crate::api::json::{JsonError, Raw, Scanner, Seen};
use crate::api::kudo::{ExecutionStatus, PlanStatus};
use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::api::stamp::{Applied, SpecHash, Values, VersionRef};
use crate::api::text::Text;
use crate::plan::basis::Basis;
use crate::plan::lock::{self, Entry, Lock};

/// `spec.planExecution` as a write has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution<'a> {
    /// Whether anything is said at all: absent, null and `{}` say nothing.
    pub said: bool,
    /// Plan, empty when there is none.
    pub plan: Cow<'a, str>,
    /// Id, empty when there is none.
    pub uid: Cow<'a, str>,
    /// Status, empty when there is none.
    pub status: Cow<'a, str>,
}

impl<'a> Execution<'a> {
    fn read(s: &mut Scanner<'a>) -> Result<Self, JsonError> {
        let mut execution = Self::default();
        let mut seen = Seen::default();
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

impl Execution<'_> {
    /// Whether both name the same execution in the same status.
    pub fn same(&self, other: &Execution<'_>) -> bool {
        self.plan == other.plan && self.uid == other.uid && self.status == other.status
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.same(&Execution::default())
    }
}

/// The spec of an Instance.
#[derive(Clone, Debug, Default)]
pub struct Spec<'a> {
    /// What is carried out.
    pub applied: Applied<'a>,
    /// Canonical JSON of `applied` and its hash, once they were asked for.
    canonical: OnceCell<(String, SpecHash)>,
    /// What runs it.
    pub execution: Execution<'a>,
    /// Whether `spec` has a `parameters` map.
    pub has_parameters: bool,
}

impl<'a> Spec<'a> {
    /// Reads the spec of an object in a namespace.
    pub fn read(object: &Object<'a>, namespace: &'a str) -> Result<Self, JsonError> {
        let mut spec = Self::default();
        let Some(raw) = object.spec else { return Ok(spec) };
        let mut seen = Seen::default();
        raw.members(|name, s| match name.as_str() {
            "operatorVersion" => {
                seen.once(0, s)?;
                spec.applied.operator_version = read_reference(s)?;
                Ok(())
            }
            "parameters" => {
                seen.once(1, s)?;
                spec.applied.parameters = read_parameters(s)?;
                Ok(())
            }
            "planExecution" => {
                seen.once(2, s)?;
                spec.execution = Execution::read(s)?;
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

    /// Hash of what is carried out.
    pub fn hash(&self) -> &SpecHash {
        &self.both().1
    }

    /// Canonical JSON of what is carried out.
    pub fn canonical(&self) -> &str {
        &self.both().0
    }

    fn both(&self) -> &(String, SpecHash) {
        self.canonical.get_or_init(|| {
            let text = self.applied.canonical();
            let hash = SpecHash::of(&text);
            (text, hash)
        })
    }

    /// The OperatorVersion.
    pub fn version(&self) -> NamespacedName {
        let version = &self.applied.operator_version;
        NamespacedName::new(version.namespace.as_ref(), version.name.as_ref())
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.applied.parameters.insert(Cow::Owned(name.to_owned()), Cow::Owned(value.to_owned()));
        self.canonical.take();
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) {
        self.applied.parameters.remove(name);
        self.canonical.take();
    }
}

fn read_reference<'a>(s: &mut Scanner<'a>) -> Result<VersionRef<'a>, JsonError> {
    let mut reference = VersionRef::default();
    let mut seen = Seen::default();
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

fn read_parameters<'a>(s: &mut Scanner<'a>) -> Result<Values<'a>, JsonError> {
    // The API server writes them in order, so that the map is built at once.
    let mut pairs = Vec::new();
    s.optional_members(|name, s| {
        pairs.push((name.0, s.text()?.0));
        Ok(())
    })?;
    Ok(pairs.into_iter().collect())
}

/// The status of an Instance, as far as rules read it.
#[derive(Debug, Default)]
pub struct Status<'a> {
    entries: Vec<Recorded<'a>>,
    basis: Option<Raw<'a>>,
}

/// An entry of `planStatus`.
#[derive(Debug)]
struct Recorded<'a> {
    plan: Text<'a>,
    uid: Text<'a>,
    status: ExecutionStatus,
    raw: Raw<'a>,
}

#[derive(Deserialize)]
struct BasisHead<'a> {
    #[serde(borrow)]
    hash: Text<'a>,
    #[serde(default)]
    owed: BTreeMap<String, serde::de::IgnoredAny>,
}

/// What of the basis every decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Hash of what was carried out.
    pub hash: String,
    /// Whether plans are owed.
    pub owes: bool,
}

impl<'a> Status<'a> {
    /// Reads the status of an object.
    pub fn read(object: &Object<'a>) -> Result<Self, JsonError> {
        let mut status = Self::default();
        let Some(raw) = object.status else { return Ok(status) };
        let mut seen = Seen::default();
        raw.members(|name, s| match name.as_str() {
            "planStatus" => {
                seen.once(0, s)?;
                s.optional_members(|plan, s| {
                    status.entries.extend(Recorded::read(plan, s)?);
                    Ok(())
                })
                .map(drop)
            }
            "conditions" => {
                seen.once(1, s)?;
                status.basis = read_basis(s)?;
                Ok(())
            }
            _ => s.value().map(drop),
        })?;
        Ok(status)
    }

    /// The lock that this status and an execution hold.
    pub fn lock<'s>(&'s self, execution: &'s Execution<'_>) -> Option<Lock<'s>> {
        lock::lock(&execution.plan, &execution.uid, self.entries())
    }

    /// The entries of `planStatus`.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries.iter().map(|e| Entry { plan: &e.plan, uid: &e.uid, status: &e.status })
    }

    /// Hash of the basis and whether plans are owed.
    pub fn basis_head(&self) -> Option<Head> {
        let raw = self.basis?.get();
        quick_head(raw).or_else(|| {
            let text = self.basis?.text().ok()?;
            let head: BasisHead<'_> = serde_json::from_str(&text).ok()?;
            Some(Head { hash: head.hash.as_str().to_owned(), owes: !head.owed.is_empty() })
        })
    }

    /// The basis.
    pub fn basis(&self) -> Option<Basis> {
        Basis::parse(&self.basis?.text().ok()?)
    }

    /// The record of a plan, for texts.
    pub fn record(&self, plan: &str) -> Option<PlanStatus> {
        let entry = self.entries.iter().find(|e| e.plan.as_str() == plan)?;
        serde_json::from_str(entry.raw.get()).ok()
    }
}

impl<'a> Recorded<'a> {
    fn read(plan: Text<'a>, s: &mut Scanner<'a>) -> Result<Option<Self>, JsonError> {
        let Some(raw) = s.optional_value()? else { return Ok(None) };
        let (mut uid, mut status) = (None, None);
        let mut seen = Seen::default();
        raw.members(|name, s| match name.as_str() {
            "uid" => seen.once(0, s).and_then(|()| s.optional_text()).map(|text| uid = text),
            "status" => seen.once(1, s).and_then(|()| s.optional_text()).map(|text| status = text),
            _ => s.value().map(drop),
        })?;
        let status = ExecutionStatus::from(status.as_deref().unwrap_or_default());
        Ok(Some(Self { plan, uid: uid.unwrap_or_default(), status, raw }))
    }
}

/// The message of the condition that holds the basis.
fn read_basis<'a>(s: &mut Scanner<'a>) -> Result<Option<Raw<'a>>, JsonError> {
    let mut basis = None;
    if s.null()? {
        return Ok(None);
    }
    s.elements(|s| {
        let (mut type_, mut message) = (None, None);
        s.members(|name, s| match name.as_str() {
            "type" => s.optional_text().map(|text| type_ = text),
            "message" => s.optional_value().map(|raw| message = raw),
            _ => s.value().map(drop),
        })?;
        if type_.as_deref() == Some(meta::condition::SPEC_STAMPED) {
            basis = basis.or(message);
        }
        Ok(())
    })?;
    Ok(basis)
}

/// The head of a basis out of the JSON of its text, where that is written as [`Basis::message`]
/// writes it: the hash first, `owed` last and only where plans are owed. A quote inside of a name
/// would carry two more backslashes, so no name reads like a key.
fn quick_head(json: &str) -> Option<Head> {
    let rest = json.strip_prefix(r#""{\"hash\":\""#)?;
    let (hash, rest) = rest.split_once(r#"\",\""#)?;
    let known = rest.starts_with(r#"detail\":{"#) && !hash.contains('\\');
    known.then(|| Head { hash: hash.to_owned(), owes: rest.contains(r#",\"owed\":{"#) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::basis::Owed;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// The quick way says what the whole parse says, whatever parameters are called.
        #[test]
        fn the_head_of_a_basis(
            names in prop::collection::vec("[a-z\"\\\\{:,]{0,6}|owed|\",\"owed\":\\{", 0..5), owes: bool, bare: bool,
        ) {
            let spec = Applied {
                operator_version: VersionRef { name: "a".into(), namespace: "b".into() },
                parameters: names.iter().map(|n| (n.clone().into(), n.clone().into())).collect(),
            };
            let owed = owes.then(|| ("deploy".to_owned(), Owed::Failed)).into_iter().collect::<BTreeMap<_, _>>();
            let mut basis = Basis::new(&spec, owed);
            if bare {
                basis.detail = None;
            }
            let json = serde_json::to_string(&basis.message()).unwrap();
            if let Some(head) = quick_head(&json) {
                prop_assert_eq!(head.hash, basis.hash.as_str());
                prop_assert_eq!(head.owes, owes);
            } else {
                prop_assert!(bare);
            }
        }
    }
}
