//! What comes in through a door and what goes out, as the server sees it.

use crate::api::object::NamespacedName;
use crate::api::text::Text;

/// The webhook paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// `/mutate`: schedules and stamps.
    Mutate,
    /// `/validate`: decides on the final object.
    Validate,
    /// `/admit-kudo-dev-v1beta1-instance`: both at once, as KUDO's one webhook did.
    Kudo,
}

impl Door {
    /// Every door.
    pub const ALL: [Self; 3] = [Self::Mutate, Self::Validate, Self::Kudo];

    /// Path of the URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
            Self::Kudo => "/admit-kudo-dev-v1beta1-instance",
        }
    }

    /// Whether a patch may be answered.
    pub fn patches(self) -> bool {
        self != Self::Validate
    }

    /// Name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Kudo => "kudo",
        }
    }
}

/// Whether the caller can still wait for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheWait {
    /// It can: an OperatorVersion that the cache does not show is worth waiting for.
    Wait,
    /// It cannot: decide with what is there.
    Exhausted,
}

/// What admission says.
#[derive(Clone, Debug)]
pub enum AdmissionAnswer<'a> {
    /// The answer.
    Done(Reply<'a>),
    /// Ask again when the cache has changed: an OperatorVersion is not in it.
    Wait(Awaited),
}

/// What a review waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The OperatorVersion.
    pub operator_version: NamespacedName,
    /// Namespace of the review; that of the OperatorVersion may be another one.
    pub namespace: String,
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.operator_version.fmt(f)
    }
}

/// An answer and what there is to tell about it.
#[derive(Clone, Debug)]
pub struct Reply<'a> {
    /// The AdmissionReview, as JSON.
    pub body: Vec<u8>,
    /// For logs and metrics.
    pub record: DecisionRecord<'a>,
}

/// What logs and metrics tell about one decision, borrowed from the body of its review.
#[derive(Clone, Debug)]
pub struct DecisionRecord<'a> {
    /// `request.uid`.
    pub uid: Text<'a>,
    /// `request.operation`.
    pub operation: Text<'a>,
    /// Group of the object's kind.
    pub group: Text<'a>,
    /// Kind of the object.
    pub kind: Text<'a>,
    /// Namespace of the object.
    pub namespace: Text<'a>,
    /// Name of the object; with `generateName` it has none yet.
    pub name: Text<'a>,
    /// Who asked.
    pub user: Text<'a>,
    /// Ids of the rules that spoke.
    pub rules: Vec<&'static str>,
    /// Ids of those that would have refused, where the settings let that pass.
    pub admitted: Vec<&'static str>,
    /// What was decided.
    pub verdict: VerdictKind,
    /// The plan that the decision is about.
    pub plan: Option<String>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

impl DecisionRecord<'_> {
    /// The same, apart from the body.
    pub fn into_owned(self) -> DecisionRecord<'static> {
        DecisionRecord {
            uid: self.uid.into_owned(),
            operation: self.operation.into_owned(),
            group: self.group.into_owned(),
            kind: self.kind.into_owned(),
            namespace: self.namespace.into_owned(),
            name: self.name.into_owned(),
            user: self.user.into_owned(),
            ..self
        }
    }
}

/// A verdict without its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerdictKind {
    /// Nothing to say.
    Allowed,
    /// Allowed, with changes.
    Patched,
    /// Refused.
    Denied,
    /// Not ours to judge.
    Skipped,
}

impl VerdictKind {
    /// The word in metrics, logs and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Patched => "patched",
            Self::Denied => "denied",
            Self::Skipped => "skipped",
        }
    }
}

/// The body is not a review that can be answered: HTTP 400.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadReview(pub String);

/// What does not change while the process runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bookkeeping user: the only identity that admission skips.
    pub controller_user: String,
    /// What a locked Instance permits.
    pub freeze: Freeze,
}

/// What a locked Instance permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freeze {
    /// No change of spec by anyone.
    #[default]
    Strict,
    /// As KUDO: a change that triggers the running plan restarts it.
    SamePlan,
}
