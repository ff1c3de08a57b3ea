//! The webhook endpoints, their inputs and outputs, as the server sees them.

use crate::api::docs::DocsUrl;
use crate::api::object::NamespacedName;
use crate::api::text::Text;

/// The webhook paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookEndpoint {
    /// `/mutate`: schedules plans and sets the last-applied annotation.
    Mutate,
    /// `/validate`: decides on the final object.
    Validate,
    /// `/guarded-sources`: of a gateway whose author may update the flavor sources, lists them in its annotation.
    Sources,
    /// `/admit-kudo-dev-v1beta1-instance`: both at once, as KUDO's single webhook did.
    Kudo,
}

impl WebhookEndpoint {
    /// Every endpoint.
    pub const ALL: [Self; 4] = [Self::Mutate, Self::Validate, Self::Sources, Self::Kudo];

    /// Path of the URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
            Self::Sources => "/guarded-sources",
            Self::Kudo => "/admit-kudo-dev-v1beta1-instance",
        }
    }

    /// Whether the response may contain a patch.
    pub fn patches(self) -> bool {
        self != Self::Validate
    }

    /// Name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Sources => "guarded-sources",
            Self::Kudo => "kudo",
        }
    }
}

/// Whether the caller can still wait for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheWait {
    /// It can: wait for an OperatorVersion that the cache lacks.
    Wait,
    /// It cannot: decide with the current cache.
    Exhausted,
}

/// The outcome of an admission call.
#[derive(Clone, Debug)]
pub enum AdmissionAnswer<'a> {
    /// The response.
    Done(Reply<'a>),
    /// The cache lacks an OperatorVersion: try again when it has changed.
    Wait(Awaited),
}

/// The object that a review waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The OperatorVersion.
    pub operator_version: NamespacedName,
    /// Namespace of the review; the OperatorVersion may be in another one.
    pub namespace: String,
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.operator_version.fmt(f)
    }
}

/// A response and its record.
#[derive(Clone, Debug)]
pub struct Reply<'a> {
    /// The AdmissionReview, as JSON.
    pub body: Vec<u8>,
    /// For logs and metrics.
    pub record: DecisionRecord<'a>,
}

/// A decision for logs and metrics, borrowed from the body of its review.
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
    /// Name of the object; still empty with `generateName`.
    pub name: Text<'a>,
    /// The requesting user.
    pub user: Text<'a>,
    /// Ids of the rules that denied or warned.
    pub rules: Vec<&'static str>,
    /// Ids of the rules whose denials the settings admit.
    pub admitted: Vec<&'static str>,
    /// The decision.
    pub verdict: DecisionKind,
    /// The plan that the decision is about.
    pub plan: Option<String>,
    /// Whether the request is a dry run.
    pub dry_run: bool,
}

impl DecisionRecord<'_> {
    /// The same, independent of the body.
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

/// A decision without its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionKind {
    /// Allowed unchanged.
    Allowed,
    /// Allowed, with changes.
    Patched,
    /// Denied.
    Denied,
    /// Not subject to the rules.
    Skipped,
}

impl DecisionKind {
    /// The value in metrics, logs and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Patched => "patched",
            Self::Denied => "denied",
            Self::Skipped => "skipped",
        }
    }
}

/// The body is no review that admission can answer: HTTP 400.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadReview(pub String);

/// Settings that are constant while the process runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bookkeeping user: the only identity that admission skips.
    pub controller_user: String,
    /// Permitted changes of a locked Instance.
    pub freeze: Freeze,
    /// Where the pages can be read that denials refer to.
    pub docs: Option<DocsUrl>,
}

/// Permitted changes of a locked Instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freeze {
    /// No user may change the spec.
    #[default]
    Strict,
    /// As KUDO: a change that triggers the running plan restarts it.
    SamePlan,
}
