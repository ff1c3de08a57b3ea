//! The status of an Interlock object: the state of every capability, and the honoured parts of the spec.
//! Pure; the time is an argument.

use interlock_core::api::condition::ConditionStatus;
use interlock_core::api::interlock::{DEFAULT, Interlock, InterlockStatus, SettingProblem};
use interlock_core::api::meta;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::stalled;
use super::wanted::{ACCEPTED, RULES_APPLIED, Wanted, found, wanted};
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{
    CapabilityPhase, CapabilitySnapshot, CapabilityStatus as Standing, KindStatus, Mode, WatchState,
};

/// Summary.
const READY: &str = "Ready";

/// On an object that is being deleted: what continues without it.
const DELETING: &str = "Deleting";

/// What applies without an honoured object.
pub const DEFAULTS: &str = "every rule denies again, every capability is auto, and packages act as the service account \
                            that the process was started with";

/// How long a transient state lasts before it is reported: a restart, above all of the process, changes no
/// condition.
const PASSES_WITHIN: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

/// Managed Instances, whatever the settings are.
#[derive(Clone, Copy, Debug)]
pub struct Managed {
    pub instances: usize,
    /// Those of them that need reconciling.
    pub to_reconcile: usize,
}

/// Whether it is being deleted, and another's finalizer blocks that.
pub fn is_deleting(object: &Interlock) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

pub struct StatusInput<'a> {
    /// The state of every capability.
    pub snapshot: &'a CapabilitySnapshot,
    /// Capabilities that the settings configure.
    pub settable: &'a [&'a str],
    /// Interlock is not ready without these.
    pub essential: &'a [&'a str],
    /// The capability whose objects carry our finalizer.
    pub finalizes: &'a str,
    /// How many such objects there are, where that is known.
    pub instances: usize,
    /// The problems of the spec.
    pub problems: &'a [SettingProblem],
    /// Why the binding does not follow, if it does not.
    pub lagging: Option<&'a str>,
    /// What continues after a deletion of the object.
    pub managed: Managed,
    pub now: Timestamp,
}

/// A status, and when to compute it again.
#[derive(Debug, PartialEq)]
pub struct StatusUpdate {
    /// The wanted status.
    pub status: InterlockStatus,
    /// When a transient state becomes reportable.
    pub again: Option<Timestamp>,
}

pub fn ignored(object: &Interlock, now: Timestamp) -> InterlockStatus {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let text = format!(
        "only the Interlock named {DEFAULT} is honoured: move what {name} sets to it, and delete {name}"
    );
    let mut conditions: Vec<Wanted> = [READY, ACCEPTED]
        .map(|type_| wanted(type_, ConditionStatus::False, "NotHonoured", text.as_str()))
        .into();
    conditions.extend(stalled::condition(object, &conditions, None, now).0);
    with(object, conditions, now)
}

pub fn honoured(object: &Interlock, told: &StatusInput<'_>) -> StatusUpdate {
    let mut again = None;
    let mut conditions = if is_deleting(object) {
        vec![not_any_more(), applied(told.lagging), deleting(told.managed)]
    } else {
        vec![accepted(told.problems), applied(told.lagging)]
    };
    let mut unready: Vec<Unready> = told
        .essential
        .iter()
        .filter(|name| told.snapshot.get(name).is_none())
        .map(|name| Unready {
            status: ConditionStatus::Unknown,
            reason: CapabilityPhase::Unknown(None).reason().to_owned(),
            message: format!("{}: it has not been looked at yet", type_of(name)),
            ends_by_itself: true,
        })
        .collect();
    let standings = told.snapshot.capabilities.iter();
    for standing in standings.filter(|standing| told.settable.contains(&standing.name)) {
        let type_ = type_of(standing.name);
        let until = standing.since + PASSES_WITHIN;
        let before = found(object, &type_);
        let one = match before {
            Some(before) if passes(standing) && told.now < until => {
                again = Some(again.map_or(until, |again: Timestamp| again.min(until)));
                as_before(before)
            }
            _ => capability(&type_, standing, before, told),
        };
        let counts = told.essential.contains(&standing.name) && standing.mode != Mode::Off;
        if counts && one.status != ConditionStatus::True {
            unready.push(Unready {
                status: one.status,
                reason: one.reason.clone(),
                message: format!("{type_}: {}", one.message),
                ends_by_itself: stalled::ends_by_itself(&standing.state),
            });
        }
        conditions.push(one);
    }
    let ready = ready(&unready);
    if !is_deleting(object) {
        let passes = unready.iter().all(|one| one.ends_by_itself);
        let not_ready = (!unready.is_empty()).then_some((&ready, passes));
        let (settled, until) = stalled::condition(object, &conditions, not_ready, told.now);
        conditions.extend(settled);
        again = [again, until].into_iter().flatten().min();
    }
    conditions.insert(0, ready);
    StatusUpdate { status: with(object, conditions, told.now), again }
}

/// A required capability that does not run.
struct Unready {
    status: ConditionStatus,
    reason: String,
    message: String,
    ends_by_itself: bool,
}

fn ready(unready: &[Unready]) -> Wanted {
    let worst = unready.iter().find(|one| one.status == ConditionStatus::False).or(unready.first());
    let Some(worst) = worst else {
        return wanted(READY, ConditionStatus::True, "Running", "everything that is required runs");
    };
    let texts: Vec<&str> = unready.iter().map(|one| one.message.as_str()).collect();
    wanted(READY, worst.status, &worst.reason, texts.join("; "))
}

fn accepted(problems: &[SettingProblem]) -> Wanted {
    if problems.is_empty() {
        return wanted(ACCEPTED, ConditionStatus::True, "Accepted", "all of the spec is honoured");
    }
    let texts: Vec<String> = problems.iter().map(|p| format!("{}: {}", p.field, p.problem)).collect();
    let text = format!("the rest is honoured, but not {}", texts.join("; "));
    wanted(ACCEPTED, ConditionStatus::False, "Invalid", text)
}

fn not_any_more() -> Wanted {
    let text = format!("the object is being deleted, and its spec does not count any more: {DEFAULTS}");
    wanted(ACCEPTED, ConditionStatus::False, DELETING, text)
}

fn deleting(managed: Managed) -> Wanted {
    let Managed { instances, to_reconcile } = managed;
    let text = format!(
        "{instances} Instances are still managed, of which {to_reconcile} have something to do, and go on with the defaults: \
         {DEFAULTS}"
    );
    wanted(
        DELETING,
        ConditionStatus::True,
        if instances > 0 { "StillManaged" } else { "NothingManaged" },
        text,
    )
}

fn applied(lagging: Option<&str>) -> Wanted {
    match lagging {
        None => {
            wanted(RULES_APPLIED, ConditionStatus::True, "Applied", "webhook and policies follow the rules")
        }
        Some(why) => wanted(RULES_APPLIED, ConditionStatus::False, "PolicyNotWritten", why),
    }
}

/// `InstancesReady` for `instances`.
fn type_of(capability: &str) -> String {
    let (first, rest) = capability.split_at_checked(1).unwrap_or(("", capability));
    format!("{}{rest}{READY}", first.to_ascii_uppercase())
}

/// Whether a state is transient: a capability without required kinds runs while it still lists.
fn passes(standing: &Standing) -> bool {
    let lists = || optional(standing).any(|kind| kind.watch_state == WatchState::Listing);
    match standing.state {
        CapabilityPhase::Starting(_) | CapabilityPhase::Draining(_) | CapabilityPhase::Unknown(_) => true,
        CapabilityPhase::Running(_) => lists(),
        _ => false,
    }
}

fn optional(standing: &Standing) -> impl Iterator<Item = &KindStatus> {
    standing.kinds.iter().filter(|kind| !kind.required)
}

fn capability(
    type_: &str,
    standing: &Standing,
    before: Option<&Condition>,
    told: &StatusInput<'_>,
) -> Wanted {
    let state = &standing.state;
    let status = match state {
        CapabilityPhase::Running(_) => ConditionStatus::True,
        CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(_) => ConditionStatus::Unknown,
        CapabilityPhase::Disabled
        | CapabilityPhase::Waiting(_)
        | CapabilityPhase::Forbidden(_)
        | CapabilityPhase::Degraded(..)
        | CapabilityPhase::Outdated(..)
        | CapabilityPhase::Draining(_) => ConditionStatus::False,
    };
    let message = match state {
        CapabilityPhase::Running(_) => running(standing),
        CapabilityPhase::Disabled => switched_off(standing, before, told),
        other => other.message(),
    };
    wanted(type_, status, state.reason(), message)
}

/// The consequence of switching a capability off. Its objects are not read then, so the message keeps the
/// last known count.
fn switched_off(standing: &Standing, before: Option<&Condition>, told: &StatusInput<'_>) -> String {
    let off = format!("spec.capabilities.{}.mode is off", standing.name);
    if standing.name != told.finalizes {
        return off;
    }
    let known =
        standing.kinds.iter().filter(|kind| kind.required).all(|kind| kind.watch_state == WatchState::Synced);
    let held = |which: &str| {
        format!(
            "{off}; {which} with the finalizer {} stay when they are deleted, until it is auto again or their \
             definition is deleted",
            meta::FINALIZER
        )
    };
    match before.filter(|before| before.reason == CapabilityPhase::Disabled.reason()) {
        _ if known => held(&format!("of {} Instances those", told.instances)),
        Some(before) => before.message.clone(),
        None => held("Instances"),
    }
}

/// What a running capability lacks: the watch state of each optional kind that is not synced.
fn running(standing: &Standing) -> String {
    let (mut missing, mut rest) = (Vec::new(), Vec::new());
    for KindStatus { name, watch_state, .. } in optional(standing) {
        match watch_state {
            WatchState::Synced => {}
            WatchState::Absent(Absence::Missing) => missing.push(name.as_str()),
            WatchState::Forbidden(verb) => {
                rest.push(format!("this process may not {} {name}", verb.as_str()))
            }
            WatchState::Absent(_) | WatchState::Listing | WatchState::Broken(_) => {
                rest.push(format!("{name} {watch_state}"))
            }
        }
    }
    let mut texts = vec!["it runs".to_owned()];
    texts.extend(rest);
    if !missing.is_empty() {
        texts.push(format!("not served, and not needed: {}", missing.join(", ")));
    }
    texts.join("; ")
}

fn as_before(condition: &Condition) -> Wanted {
    let status = match condition.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    wanted(&condition.type_, status, &condition.reason, condition.message.as_str())
}

/// The status with these conditions, and with the present ones of others.
fn with(object: &Interlock, conditions: Vec<Wanted>, now: Timestamp) -> InterlockStatus {
    let generation = object.metadata.generation;
    let before = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let mut all: Vec<Condition> = conditions
        .into_iter()
        .map(|wanted| {
            let status = wanted.status.as_str();
            let same = before.iter().find(|c| c.type_ == wanted.type_ && c.status == status);
            Condition {
                last_transition_time: same.map_or(Time(now), |c| c.last_transition_time.clone()),
                type_: wanted.type_,
                status: status.to_owned(),
                reason: wanted.reason,
                message: wanted.message,
                observed_generation: generation,
            }
        })
        .collect();
    let others: Vec<Condition> = before
        .iter()
        .filter(|c| !is_ours(&c.type_) && all.iter().all(|o| o.type_ != c.type_))
        .cloned()
        .collect();
    all.extend(others);
    InterlockStatus { observed_generation: generation, conditions: all }
}

/// Whether we may remove a condition that is no longer wanted.
fn is_ours(type_: &str) -> bool {
    [READY, ACCEPTED, RULES_APPLIED, DELETING, stalled::RECONCILING, stalled::STALLED].contains(&type_)
        || type_.ends_with(READY)
}
