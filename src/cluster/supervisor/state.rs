//! The states of a capability, and the snapshot of all of them that others read.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::capability::Mode;
use crate::cluster::crds::Absence;
pub use interlock_core::topology::Epoch;

/// A verb that the API server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `list`
    List,
    /// `watch`
    Watch,
}

impl Verb {
    /// The word of the API.
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
    /// What is wrong with it.
    pub why: Lack,
}

/// Why a capability cannot use a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It is not served.
    Absent(Absence),
    /// Its definition is being deleted.
    Leaving,
    /// It is there; the capability is switched to [`Mode::Manual`] and was not running.
    Manual,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.why {
            Lack::Absent(absence) => write!(f, "CustomResourceDefinition {name} {absence}"),
            Lack::Leaving => write!(f, "CustomResourceDefinition {name} is being deleted"),
            Lack::Manual => write!(f, "{name} is there, but the mode is manual: set it to auto to start"),
        }
    }
}

/// A kind that may not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of its definition, such as `instances.kudo.dev`.
    pub name: String,
    /// What was refused.
    pub verb: Verb,
}

/// Where a capability stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Switched off.
    Disabled,
    /// Kinds are missing; never empty.
    Waiting(Vec<Missing>),
    /// A kind may not be read. Seen when a list or a watch is started: an open watch is not
    /// authorised again.
    Forbidden(Refused),
    /// Its kinds are being listed.
    Starting(Epoch),
    /// All that it decides with is known.
    Running(Epoch),
    /// What it decides with may be out of date, and why.
    Degraded(Epoch, String),
    /// It takes no new work, and what it began is ended.
    Draining(Epoch),
    /// The definitions cannot be watched; what ran goes on.
    Unknown(Option<Epoch>),
}

impl State {
    /// The epoch, while there is one.
    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Starting(epoch)
            | Self::Running(epoch)
            | Self::Degraded(epoch, _)
            | Self::Draining(epoch)
            | Self::Unknown(Some(epoch)) => Some(*epoch),
            Self::Disabled | Self::Waiting(_) | Self::Forbidden(_) | Self::Unknown(None) => None,
        }
    }

    /// Value of the label in metrics; one of [`State::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Waiting(_) => "Waiting",
            Self::Forbidden(_) => "Forbidden",
            Self::Starting(_) => "Starting",
            Self::Running(_) => "Running",
            Self::Degraded(..) => "Degraded",
            Self::Draining(_) => "Draining",
            Self::Unknown(_) => "Unknown",
        }
    }

    /// Every name.
    pub const NAMES: [&'static str; 8] =
        ["Disabled", "Waiting", "Forbidden", "Starting", "Running", "Degraded", "Draining", "Unknown"];

    /// Reason of a condition that says this.
    pub fn reason(&self) -> &'static str {
        let first = |missing: &[Missing]| missing.first().map(|m| m.why.clone());
        match self {
            Self::Disabled => "Disabled",
            Self::Waiting(missing) => match first(missing) {
                Some(Lack::Absent(Absence::NotEstablished(_))) => "NotEstablished",
                Some(Lack::Absent(Absence::NotServed { .. } | Absence::OtherScope)) => "VersionNotServed",
                Some(Lack::Leaving) => "CRDTerminating",
                Some(Lack::Manual) => "Manual",
                Some(Lack::Absent(Absence::Missing)) | None => "CRDMissing",
            },
            Self::Forbidden(_) => "Forbidden",
            Self::Starting(_) => "Syncing",
            Self::Running(_) => "Running",
            Self::Degraded(..) => "SyncTimeout",
            Self::Draining(_) => "Draining",
            Self::Unknown(_) => "DiscoveryUnknown",
        }
    }

    /// What a condition says to people: exact names and verbs, and what to do.
    pub fn message(&self) -> String {
        match self {
            Self::Disabled => "switched off".to_owned(),
            Self::Waiting(missing) => missing.iter().map(Missing::to_string).collect::<Vec<_>>().join("; "),
            Self::Forbidden(Refused { name, verb }) => format!(
                "this process may not {} {name}; grant it the verbs get, list and watch",
                verb.as_str()
            ),
            Self::Starting(_) => "its kinds are being listed".to_owned(),
            Self::Running(_) => String::new(),
            Self::Degraded(_, why) => why.clone(),
            Self::Draining(_) => "what it began is being ended".to_owned(),
            Self::Unknown(_) => {
                "CustomResourceDefinitions cannot be watched, so what is there stays as it is; this process \
                 needs the verbs list and watch on them"
                    .to_owned()
            }
        }
    }
}

/// One capability, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub state: State,
    /// What its users want.
    pub mode: Mode,
    /// Since when it has stood there.
    pub since: Timestamp,
    /// What admission answers meanwhile about the kinds of the capability.
    pub answer: Answer,
    /// Every kind it reads, required ones first.
    pub kinds: Vec<KindStatus>,
}

/// What admission does about the kinds of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All rules decide.
    Judge,
    /// Rules decide that look at the object alone; those that look at others only warn, with
    /// this among the warnings.
    InObjectOnly(String),
    /// 503: the API server tries again inside its own timeout, perhaps at another replica.
    NotYet,
    /// Everything is allowed, with this warning.
    Allow(String),
}

impl Answer {
    /// The answer of a state in which a capability has stood for `waited`.
    pub fn of(name: &str, state: &State, waited: Duration) -> Self {
        let unchecked = || format!("Interlock does not check this now: {name}: {}", state.message());
        match state {
            State::Running(_) | State::Draining(_) | State::Unknown(Some(_)) => Self::Judge,
            State::Disabled | State::Waiting(_) => Self::Allow(unchecked()),
            State::Starting(_) | State::Unknown(None) if waited < ANSWER_DEADLINE => Self::NotYet,
            State::Starting(_) | State::Unknown(None) | State::Forbidden(_) | State::Degraded(..) => {
                Self::InObjectOnly(format!(
                    "Interlock checks this without other objects: {name}: {}",
                    state.message()
                ))
            }
        }
    }
}

/// How long admission answers "not yet" while a capability starts.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(8);

/// One kind of a capability, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindStatus {
    /// Name of its definition, such as `instances.kudo.dev`.
    pub name: String,
    /// Whether the capability needs it to run.
    pub required: bool,
    /// Whether its definition is being deleted.
    pub leaving: bool,
    /// How it is seen.
    pub sight: Sight,
}

/// How a kind is seen now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It cannot be used.
    Absent(Absence),
    /// It is being listed for the first time.
    Listing,
    /// Every object of it is known.
    Synced,
    /// It may not be read.
    Forbidden(Verb),
    /// It cannot be read for another reason, for longer than a hiccup.
    Broken(String),
}

impl Sight {
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

impl fmt::Display for Sight {
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
pub struct Snapshot {
    /// One entry each.
    pub capabilities: Vec<Status>,
}

impl Snapshot {
    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Status> {
        self.capabilities.iter().find(|status| status.name == name)
    }
}
