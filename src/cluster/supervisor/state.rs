//! The states of a capability, and the snapshot of all of them that others read.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::capability::Mode;
use crate::cluster::crds::Absence;
pub use interlock_core::topology::Epoch;

/// A verb that the API server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVerb {
    /// `list`
    List,
    /// `watch`
    Watch,
}

impl ApiVerb {
    /// Its name in RBAC.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

/// A kind that a capability waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name of its definition, such as `instances.kudo.dev`.
    pub name: String,
    pub why: NotReadyReason,
}

/// Why a capability is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReadyReason {
    /// It is not served.
    Absent(Absence),
    /// Its definition is being deleted.
    Terminating,
    /// The kind exists; the capability is switched to [`Mode::Manual`] and was not running.
    Manual,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.why {
            NotReadyReason::Absent(absence) => write!(f, "CustomResourceDefinition {name} {absence}"),
            NotReadyReason::Terminating => write!(f, "CustomResourceDefinition {name} is being deleted"),
            NotReadyReason::Manual => {
                write!(f, "{name} is served, but the mode is manual: set the mode to auto to start")
            }
        }
    }
}

/// A kind that the process may not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedKind {
    /// Name of its definition, such as `instances.kudo.dev`.
    pub name: String,
    pub verb: ApiVerb,
}

/// The state of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilityPhase {
    /// Switched off.
    Disabled,
    /// Kinds are missing; never empty.
    Waiting(Vec<Missing>),
    /// A kind may not be read. Detected when a list or a watch starts: an open watch is not authorised
    /// again.
    Forbidden(RefusedKind),
    /// Its kinds are being listed.
    Starting(Epoch),
    /// All its kinds are synced.
    Running(Epoch),
    /// Its cache may be stale; the reason.
    Degraded(Epoch, String),
    /// A definition lacks fields that its controller writes, so that nothing is carried out; what lacks.
    Outdated(Epoch, String),
    /// It accepts no new work, and finishes the work in progress.
    Draining(Epoch),
    /// The definitions cannot be watched; running work continues.
    Unknown(Option<Epoch>),
}

impl CapabilityPhase {
    /// The epoch, while there is one.
    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Starting(epoch)
            | Self::Running(epoch)
            | Self::Degraded(epoch, _)
            | Self::Outdated(epoch, _)
            | Self::Draining(epoch)
            | Self::Unknown(Some(epoch)) => Some(*epoch),
            Self::Disabled | Self::Waiting(_) | Self::Forbidden(_) | Self::Unknown(None) => None,
        }
    }

    /// Value of the label in metrics; one of [`CapabilityPhase::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Waiting(_) => "Waiting",
            Self::Forbidden(_) => "Forbidden",
            Self::Starting(_) => "Starting",
            Self::Running(_) => "Running",
            Self::Degraded(..) | Self::Outdated(..) => "Degraded",
            Self::Draining(_) => "Draining",
            Self::Unknown(_) => "Unknown",
        }
    }

    /// Every name.
    pub const NAMES: [&'static str; 8] =
        ["Disabled", "Waiting", "Forbidden", "Starting", "Running", "Degraded", "Draining", "Unknown"];

    /// Reason of its condition.
    pub fn reason(&self) -> &'static str {
        let first = |missing: &[Missing]| missing.first().map(|m| m.why.clone());
        match self {
            Self::Disabled => "Disabled",
            Self::Waiting(missing) => match first(missing) {
                Some(NotReadyReason::Absent(Absence::NotEstablished(_))) => "NotEstablished",
                Some(NotReadyReason::Absent(Absence::NotServed { .. } | Absence::OtherScope)) => {
                    "VersionNotServed"
                }
                Some(NotReadyReason::Terminating) => "CRDTerminating",
                Some(NotReadyReason::Manual) => "Manual",
                Some(NotReadyReason::Absent(Absence::Missing)) | None => "CRDMissing",
            },
            Self::Forbidden(_) => "Forbidden",
            Self::Starting(_) => "Syncing",
            Self::Running(_) => "Running",
            Self::Degraded(..) => "SyncTimeout",
            Self::Outdated(..) => "DefinitionOutdated",
            Self::Draining(_) => "Draining",
            Self::Unknown(_) => "DiscoveryUnknown",
        }
    }

    /// Message of its condition: exact names and verbs, and the remedy.
    pub fn message(&self) -> String {
        match self {
            Self::Disabled => "switched off".to_owned(),
            Self::Waiting(missing) => missing.iter().map(Missing::to_string).collect::<Vec<_>>().join("; "),
            Self::Forbidden(RefusedKind { name, verb }) => format!(
                "this process may not {} {name}; grant it the verbs get, list and watch",
                verb.as_str()
            ),
            Self::Starting(_) => "its kinds are being listed".to_owned(),
            Self::Running(_) => String::new(),
            Self::Degraded(_, why) | Self::Outdated(_, why) => why.clone(),
            Self::Draining(_) => "the work in progress is being finished".to_owned(),
            Self::Unknown(_) => {
                "CustomResourceDefinitions cannot be watched, so running capabilities continue; this process \
                 needs the verbs list and watch on them"
                    .to_owned()
            }
        }
    }
}

/// The published state of one capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityStatus {
    pub name: &'static str,
    pub state: CapabilityPhase,
    pub mode: Mode,
    /// Since when it has been in this state.
    pub since: Timestamp,
    /// How admission answers for the kinds of the capability meanwhile.
    pub answer: UnavailableAnswer,
    /// Every kind it reads, required ones first.
    pub kinds: Vec<KindStatus>,
}

/// How admission answers for the kinds of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnavailableAnswer {
    /// All rules apply.
    Judge,
    /// Rules on the object alone apply; rules that need other objects only warn, and add this warning.
    InObjectOnly(String),
    /// 503: the API server tries again inside its own timeout, perhaps at another replica.
    NotYet,
    /// Allow all, with this warning.
    Allow(String),
}

impl UnavailableAnswer {
    /// The answer for a capability that has been in a state for `waited`.
    pub fn of(name: &str, state: &CapabilityPhase, waited: Duration) -> Self {
        let unchecked = || format!("Interlock does not check this now: {name}: {}", state.message());
        match state {
            CapabilityPhase::Running(_)
            | CapabilityPhase::Outdated(..)
            | CapabilityPhase::Draining(_)
            | CapabilityPhase::Unknown(Some(_)) => Self::Judge,
            CapabilityPhase::Disabled | CapabilityPhase::Waiting(_) => Self::Allow(unchecked()),
            CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(None) if waited < ANSWER_DEADLINE => {
                Self::NotYet
            }
            CapabilityPhase::Starting(_)
            | CapabilityPhase::Unknown(None)
            | CapabilityPhase::Forbidden(_)
            | CapabilityPhase::Degraded(..) => Self::InObjectOnly(format!(
                "Interlock checks this without other objects: {name}: {}",
                state.message()
            )),
        }
    }
}

/// How long admission answers 503 while a capability starts.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(8);

/// The published state of one kind of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindStatus {
    /// Name of its definition, such as `instances.kudo.dev`.
    pub name: String,
    /// Whether the capability needs it to run.
    pub required: bool,
    /// Whether its definition is being deleted.
    pub terminating: bool,
    pub watch_state: WatchState,
}

/// The watch state of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// It cannot be used.
    Absent(Absence),
    /// It is being listed for the first time.
    Listing,
    /// Every object of it is cached.
    Synced,
    /// The process may not read it.
    Forbidden(ApiVerb),
    /// It has failed for another reason, for longer than a short interruption.
    Broken(String),
}

impl WatchState {
    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent(_) => "Absent",
            Self::Listing => "Listing",
            Self::Synced => "Synced",
            Self::Forbidden(_) => "Forbidden",
            Self::Broken(_) => "Broken",
        }
    }
}

impl fmt::Display for WatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(absence) => absence.fmt(f),
            Self::Listing => f.write_str("is being listed"),
            Self::Synced => f.write_str("is watched"),
            Self::Forbidden(verb) => write!(f, "may not be read by this process (verb {})", verb.as_str()),
            Self::Broken(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

/// All capabilities, in the order of their declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySnapshot {
    /// One entry each.
    pub capabilities: Vec<CapabilityStatus>,
}

impl CapabilitySnapshot {
    pub fn get(&self, name: &str) -> Option<&CapabilityStatus> {
        self.capabilities.iter().find(|status| status.name == name)
    }
}
