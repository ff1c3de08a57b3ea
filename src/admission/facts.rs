//! What rules read of the spec and the status of an Instance, borrowed from the review.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::review::Object;
use crate::api::kudo::{ExecutionStatus, PlanStatus};
use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::api::stamp::{Applied, SpecHash, Values, VersionRef, values};
use crate::api::text::Text;
use crate::plan::basis::Basis;
use crate::plan::lock::{self, Entry, Lock};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecIn<'a> {
    #[serde(borrow, default)]
    operator_version: Option<ReferenceIn<'a>>,
    #[serde(borrow, default, deserialize_with = "values")]
    parameters: Values<'a>,
    #[serde(borrow, default)]
    plan_execution: Option<ExecutionIn<'a>>,
}

#[derive(Default, Deserialize)]
struct ReferenceIn<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    namespace: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecutionIn<'a> {
    #[serde(borrow, default)]
    plan_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    uid: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
}

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

impl<'a> From<Option<ExecutionIn<'a>>> for Execution<'a> {
    fn from(read: Option<ExecutionIn<'a>>) -> Self {
        let read = read.unwrap_or_default();
        let said = read.plan_name.is_some() || read.uid.is_some() || read.status.is_some();
        let text = |text: Option<Text<'a>>| text.map_or(Cow::Borrowed(""), |t| t.0);
        Self { said, plan: text(read.plan_name), uid: text(read.uid), status: text(read.status) }
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
    /// Whether the object has a `spec` at all.
    pub present: bool,
    /// Whether `spec` has a `parameters` map.
    pub has_parameters: bool,
}

impl<'a> Spec<'a> {
    /// Reads the spec of an object in a namespace.
    pub fn read(object: &Object<'a>, namespace: &'a str) -> Result<Self, serde_json::Error> {
        let Some(raw) = object.spec else { return Ok(Self::default()) };
        if !raw.get().starts_with('{') {
            return Err(serde_json::Error::custom("it is not an object"));
        }
        let read: SpecIn<'a> = serde_json::from_str(raw.get())?;
        let reference = read.operator_version.unwrap_or_default();
        let own = || Cow::Borrowed(namespace);
        let applied = Applied {
            operator_version: VersionRef {
                name: reference.name.map_or(Cow::Borrowed(""), |name| name.0),
                namespace: reference.namespace.map(|ns| ns.0).filter(|ns| !ns.is_empty()).unwrap_or_else(own),
            },
            parameters: read.parameters,
        };
        let has_parameters = !applied.parameters.is_empty();
        Ok(Self {
            applied,
            canonical: OnceCell::new(),
            execution: read.plan_execution.into(),
            present: true,
            has_parameters,
        })
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusIn<'a> {
    #[serde(borrow, default)]
    plan_status: Option<BTreeMap<Text<'a>, &'a RawValue>>,
    #[serde(borrow, default)]
    conditions: Option<Vec<ConditionIn<'a>>>,
}

#[derive(Default, Deserialize)]
struct EntryIn<'a> {
    #[serde(borrow, default)]
    uid: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ConditionIn<'a> {
    #[serde(borrow, default, rename = "type")]
    type_: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

/// The status of an Instance, as far as rules read it.
#[derive(Debug, Default)]
pub struct Status<'a> {
    entries: Vec<Recorded<'a>>,
    basis: Option<&'a RawValue>,
}

/// An entry of `planStatus`.
#[derive(Debug)]
struct Recorded<'a> {
    plan: Text<'a>,
    uid: Text<'a>,
    status: ExecutionStatus,
    raw: &'a RawValue,
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
    pub fn read(object: &Object<'a>) -> Result<Self, serde_json::Error> {
        let Some(raw) = object.status else { return Ok(Self::default()) };
        let read: StatusIn<'a> = serde_json::from_str(raw.get())?;
        let entries = read.plan_status.into_iter().flatten().map(|(plan, raw)| Recorded::read(plan, raw));
        let entries = entries.collect::<Result<_, _>>()?;
        let stamped = |c: &&ConditionIn<'a>| c.type_.as_deref() == Some(meta::condition::SPEC_STAMPED);
        let basis = read.conditions.iter().flatten().find(stamped).and_then(|c| c.message);
        Ok(Self { entries, basis })
    }

    /// The lock that this status and an execution hold.
    pub fn lock<'s>(&'s self, execution: &'s Execution<'_>) -> Option<Lock<'s>> {
        let entries = self.entries.iter().map(|e| Entry { plan: &e.plan, uid: &e.uid, status: &e.status });
        lock::lock(&execution.plan, &execution.uid, entries)
    }

    /// Hash of the basis and whether plans are owed.
    pub fn basis_head(&self) -> Option<Head> {
        let raw = self.basis?.get();
        quick_head(raw).or_else(|| {
            let text: Text<'_> = serde_json::from_str(raw).ok()?;
            let head: BasisHead<'_> = serde_json::from_str(&text).ok()?;
            Some(Head { hash: head.hash.as_str().to_owned(), owes: !head.owed.is_empty() })
        })
    }

    /// The basis.
    pub fn basis(&self) -> Option<Basis> {
        Basis::parse(&serde_json::from_str::<Text<'_>>(self.basis?.get()).ok()?)
    }

    /// The record of a plan, for texts.
    pub fn record(&self, plan: &str) -> Option<PlanStatus> {
        let entry = self.entries.iter().find(|e| e.plan.as_str() == plan)?;
        serde_json::from_str(entry.raw.get()).ok()
    }
}

impl<'a> Recorded<'a> {
    fn read(plan: Text<'a>, raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        let entry: Option<EntryIn<'a>> = serde_json::from_str(raw.get())?;
        let entry = entry.unwrap_or_default();
        let status = ExecutionStatus::from(entry.status.as_deref().unwrap_or_default());
        Ok(Self { plan, uid: entry.uid.unwrap_or_default(), status, raw })
    }
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
