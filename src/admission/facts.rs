//! What rules read of the spec and the status of an Instance, borrowed from the review.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::review::Object;
use crate::api::kudo::{ExecutionStatus, InstanceStatus};
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
    /// Hash of `applied`, once it was asked for.
    hash: std::cell::OnceCell<SpecHash>,
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
            hash: std::cell::OnceCell::new(),
            execution: read.plan_execution.into(),
            present: true,
            has_parameters,
        })
    }

    /// Hash of what is carried out.
    pub fn hash(&self) -> &SpecHash {
        self.hash.get_or_init(|| self.applied.hash())
    }

    /// The OperatorVersion.
    pub fn version(&self) -> NamespacedName {
        let version = &self.applied.operator_version;
        NamespacedName::new(version.namespace.as_ref(), version.name.as_ref())
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.applied.parameters.insert(Cow::Owned(name.to_owned()), Cow::Owned(value.to_owned()));
        self.hash.take();
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) {
        self.applied.parameters.remove(name);
        self.hash.take();
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusIn<'a> {
    #[serde(borrow, default)]
    plan_status: Option<BTreeMap<Text<'a>, EntryIn<'a>>>,
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
    entries: Vec<(Text<'a>, Text<'a>, ExecutionStatus)>,
    basis: Option<Cow<'a, str>>,
    raw: Option<&'a RawValue>,
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
        let entries = read
            .plan_status
            .into_iter()
            .flatten()
            .map(|(plan, entry)| {
                let status = ExecutionStatus::from(entry.status.as_deref().unwrap_or_default());
                (plan, entry.uid.unwrap_or_default(), status)
            })
            .collect();
        let stamped = |c: &&ConditionIn<'a>| c.type_.as_deref() == Some(meta::condition::SPEC_STAMPED);
        let message = read.conditions.iter().flatten().find(stamped).and_then(|c| c.message);
        let basis = message.map(|raw| serde_json::from_str::<Text<'a>>(raw.get())).transpose()?.map(|t| t.0);
        Ok(Self { entries, basis, raw: Some(raw) })
    }

    /// The lock that this status and an execution hold.
    pub fn lock<'s>(&'s self, execution: &'s Execution<'_>) -> Option<Lock<'s>> {
        let entries = self.entries.iter().map(|(plan, uid, status)| Entry { plan, uid, status });
        lock::lock(&execution.plan, &execution.uid, entries)
    }

    /// Hash of the basis and whether plans are owed.
    pub fn basis_head(&self) -> Option<Head> {
        let head: BasisHead<'_> = serde_json::from_str(self.basis.as_deref()?).ok()?;
        Some(Head { hash: head.hash.as_str().to_owned(), owes: !head.owed.is_empty() })
    }

    /// The basis.
    pub fn basis(&self) -> Option<Basis> {
        Basis::parse(self.basis.as_deref()?)
    }

    /// Whether a plan has been run, or is being run.
    pub fn has_run(&self, plan: &str) -> bool {
        self.entries
            .iter()
            .any(|(name, _, status)| name.as_str() == plan && *status != ExecutionStatus::NeverRun)
    }

    /// The whole status, for texts.
    pub fn whole(&self) -> Option<InstanceStatus> {
        serde_json::from_str(self.raw?.get()).ok()
    }
}
