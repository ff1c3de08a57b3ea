//! What an Instance needs next: one step of the protocol between spec, stamp, basis and runs.
//!
//! Pure, and asked again after every write. First, whatever the lock says, running entries that
//! `planExecution` does not name are put right; then a deletion; then what is scheduled; then
//! drift. No case is silent: each ends in a variant of [`Next`].

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::basis::{Basis, Difference};
use super::drift;
use super::lock::Entry;
use super::package::Package;
use super::uid;
use super::verb::{self, Asked, Course, Runs, Verb};
use crate::api::kudo::{ExecutionStatus, PlanStatus};
use crate::api::meta::plan::{CLEANUP, DEPLOY};
use crate::api::stamp::{Applied, SpecHash, VersionRef};

/// How often `cleanup` is tried before the finalizer is taken off all the same.
pub const CLEANUP_ATTEMPTS: usize = 3;

/// The stamp as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// Its hash.
    pub hash: &'a SpecHash,
    /// Its spec, wherever it was kept; `None` when it cannot be had.
    pub spec: Option<&'a Applied<'a>>,
}

/// A deletion that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    /// When it was asked for.
    pub since: Timestamp,
    /// Whether the namespace goes as well.
    pub namespace_terminating: bool,
    /// How many cleanup runs have failed since.
    pub failures: usize,
    /// Whether the definition of Instances is being deleted and waits for this one longer than
    /// it should.
    pub overdue: bool,
}

/// Why admission would have refused what it never saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Rule id.
    pub rule: String,
    /// The refusal's text.
    pub message: String,
}

/// What is known of an Instance.
pub struct Facts<'a> {
    /// Its spec without `planExecution`.
    pub spec: &'a Applied<'a>,
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// `status.planStatus`.
    pub entries: &'a BTreeMap<String, PlanStatus>,
    /// The durable basis.
    pub basis: Option<&'a Basis>,
    /// The stamp.
    pub stamp: Option<Stamp<'a>>,
    /// Whether the object has room for a stamp; where it has none, the spec itself is run.
    pub stampable: bool,
    /// Whether our finalizer is on.
    pub finalizer: bool,
    /// Whether all that a creation through admission adds is there: `deploy` scheduled, the
    /// finalizer where the package has `cleanup`, defaults of immutable parameters.
    pub created_whole: bool,
    /// The deletion, when there is one.
    pub deletion: Option<Deletion>,
    /// What somebody asks of a run, where that can be carried out.
    pub asked: Option<&'a Asked>,
    /// Looks a package up.
    pub package: &'a dyn Fn(&VersionRef<'_>) -> Option<Arc<Package>>,
    /// What admission would say to the spec that is there, compared with the basis.
    pub refusal: &'a dyn Fn() -> Option<Refusal>,
}

/// Which spec a run is carried out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The one in the stamp.
    Stamp,
    /// The one on the object; the stamp is set to it.
    Spec,
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The run of this plan ends, begun or not.
    Abort {
        /// Plan.
        plan: String,
    },
    /// The plan is scheduled, under the uid of that retry.
    Retry {
        /// Plan.
        plan: String,
    },
    /// The finished execution is taken out of `planExecution`, and the spec goes back to what
    /// last was carried out in full.
    Revert,
    /// The run was aborted, and the spec does not go back: somebody edited it since, and the newer
    /// edit holds. The request is taken away.
    Overtaken,
    /// The request is taken away: it was carried out, or cannot be (then why).
    Forget(Option<String>),
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is to be done.
    Idle,
    /// These running entries end as FATAL_ERROR, each with its message.
    End(BTreeMap<String, String>),
    /// `planExecution` names this running execution again.
    PutBack {
        /// Plan.
        plan: String,
        /// Id of the execution.
        uid: String,
    },
    /// `planExecution` is set to this plan with a fresh uid.
    Schedule {
        /// Plan.
        plan: String,
        /// Spec that it runs on.
        source: Source,
    },
    /// Finalizer, defaults of immutable parameters, `deploy`, stamp: as a creation through
    /// admission would have done.
    Create,
    /// The scheduled plan starts.
    Start {
        /// Spec that it runs on.
        source: Source,
    },
    /// The scheduled plan starts where the run failed that it retries.
    Retry {
        /// Spec that it runs on.
        source: Source,
    },
    /// The running plan goes on.
    Continue {
        /// Spec that it runs on.
        source: Source,
    },
    /// The finished execution is taken out of `planExecution`.
    Clear,
    /// A request leads to this.
    Answer(Answer),
    /// The trigger is dropped: there is no spec that it could run on.
    Drop,
    /// Basis and stamp are set to the spec, without a rollout.
    Adopt,
    /// The stamp is set to the spec, which is that of the basis.
    Restamp,
    /// The difference is reported, neither carried out nor reverted.
    Report(Refusal),
    /// The OperatorVersion of the spec to run is not there.
    Await(String),
    /// The finalizer comes off.
    Release {
        /// Text of the Warning Event, when it comes off without a cleanup.
        warning: Option<String>,
    },
    /// `cleanup` failed and is scheduled again after a back-off.
    RetryCleanup {
        /// How many runs have failed.
        failures: usize,
    },
}

/// The next step for an Instance.
pub fn next(facts: &Facts<'_>) -> Next {
    if let Some(deletion) = &facts.deletion {
        return deleting(facts, deletion);
    }
    if let Some(answer) = answer(facts) {
        return Next::Answer(answer);
    }
    let running: Vec<(&String, &PlanStatus)> =
        facts.entries.iter().filter(|(_, e)| e.status.is_running()).collect();
    match running.as_slice() {
        [] if !facts.plan.is_empty() => scheduled(facts),
        [] => settled(facts),
        [(plan, entry)] => running_one(facts, plan, entry),
        several => keep_one(facts, several),
    }
}

/// The entries as the lock sees them.
fn entries<'a>(facts: &Facts<'a>) -> Vec<Entry<'a>> {
    facts.entries.iter().map(|(plan, e)| Entry { plan, uid: &e.uid, status: &e.status }).collect()
}

/// What a request leads to, where it does not wait for the steps below.
fn answer(facts: &Facts<'_>) -> Option<Answer> {
    let asked = facts.asked?;
    match verb::course(asked, Runs { plan: facts.plan, uid: facts.uid, entries: &entries(facts) }) {
        Course::Abort(plan) => Some(Answer::Abort { plan: plan.to_owned() }),
        // A finished run that is still named is cleared first.
        Course::Retry(_) if !facts.plan.is_empty() => None,
        Course::Retry(plan) => Some(match runnable(facts) {
            true => Answer::Retry { plan: plan.to_owned() },
            false => Answer::Forget(Some("the spec that it would run on is lost".to_owned())),
        }),
        Course::Clear | Course::Marked => None,
        // The write that goes back takes the request along.
        Course::Done if asked.request.verb == (Verb::Abort { revert: true }) && failed(facts, asked) => {
            Some(Answer::Overtaken)
        }
        Course::Done => Some(Answer::Forget(None)),
        Course::Dropped(objection) => Some(Answer::Forget(Some(objection.to_string()))),
    }
}

/// Whether the run that a request is about ended in failure.
fn failed(facts: &Facts<'_>, asked: &Asked) -> bool {
    let mut entries = facts.entries.values();
    entries.any(|entry| entry.uid == asked.request.run && entry.status == ExecutionStatus::FatalError)
}

/// Whether there is a spec that somebody accepted.
fn runnable(facts: &Facts<'_>) -> bool {
    let stamped = facts.stamp.is_some_and(|stamp| stamp.spec.is_some());
    stamped || facts.basis.is_none_or(|basis| basis.hash == facts.spec.hash())
}

fn keep_one(facts: &Facts<'_>, running: &[(&String, &PlanStatus)]) -> Next {
    let named = running.iter().find(|(plan, e)| names(facts, plan, e));
    let kept =
        named.or_else(|| running.iter().max_by_key(|(_, e)| e.last_updated_timestamp.as_ref().map(|t| t.0)));
    let message = |kept: &str| format!("ended: plan {kept} is the one that runs; two cannot run at once");
    Next::End(
        running
            .iter()
            .filter(|(plan, _)| kept.is_some_and(|(k, _)| k != plan))
            .map(|(plan, _)| ((*plan).clone(), message(kept.map_or("", |(k, _)| k.as_str()))))
            .collect(),
    )
}

fn names(facts: &Facts<'_>, plan: &str, entry: &PlanStatus) -> bool {
    facts.plan == plan && facts.uid == entry.uid && !entry.uid.is_empty()
}

fn running_one(facts: &Facts<'_>, plan: &str, entry: &PlanStatus) -> Next {
    if facts.plan == plan && facts.uid != entry.uid && uid::is_version_5(facts.uid) {
        // The same plan, scheduled anew: by us below, or by admission with `--freeze=same-plan`.
        return Next::Start { source: start_source(facts) };
    }
    let anew = || Next::Schedule { plan: plan.to_owned(), source: Source::Spec };
    let Some(basis) = facts.basis else {
        // A run of KUDO's in progress: stamped and taken from its first step.
        return anew();
    };
    let stamp_holds = facts.stamp.is_some_and(|s| s.hash == &basis.hash && s.spec.is_some());
    if names(facts, plan, entry) {
        if stamp_holds {
            return Next::Continue { source: Source::Stamp };
        }
        if facts.spec.hash() == basis.hash {
            return Next::Continue { source: Source::Spec };
        }
    } else if stamp_holds {
        return Next::PutBack { plan: plan.to_owned(), uid: entry.uid.clone() };
    }
    // The spec that the run started with is lost.
    match (facts.refusal)() {
        None => anew(),
        Some(refusal) => Next::End(BTreeMap::from([(
            plan.to_owned(),
            format!(
                "ended: the spec it started with is lost, and the spec that is there is refused: {}",
                refusal.message
            ),
        )])),
    }
}

fn start_source(facts: &Facts<'_>) -> Source {
    match facts.stamp {
        Some(Stamp { spec: Some(_), .. }) => Source::Stamp,
        _ => Source::Spec,
    }
}

fn has_run(facts: &Facts<'_>) -> bool {
    facts.entries.values().any(|e| !matches!(e.status, ExecutionStatus::NeverRun))
}

/// A plan is scheduled, or its execution has ended.
fn scheduled(facts: &Facts<'_>) -> Next {
    if let Some(entry) = facts.entries.get(facts.plan)
        && names(facts, facts.plan, entry)
        && entry.status.is_terminal()
    {
        let back = facts.asked.is_some_and(|asked| {
            asked.request.verb == (Verb::Abort { revert: true }) && asked.request.run == entry.uid
        });
        return if back && entry.status == ExecutionStatus::FatalError {
            Next::Answer(Answer::Revert)
        } else {
            Next::Clear
        };
    }
    match facts.basis {
        None if !has_run(facts) => created(facts),
        Some(basis) if facts.uid.is_empty() => match facts.stamp {
            // Triggered past admission: an execution without a uid could never be told to end.
            Some(Stamp { spec: Some(_), .. }) => {
                Next::Schedule { plan: facts.plan.to_owned(), source: Source::Stamp }
            }
            _ if facts.spec.hash() == basis.hash => {
                Next::Schedule { plan: facts.plan.to_owned(), source: Source::Spec }
            }
            _ => Next::Drop,
        },
        None if facts.uid.is_empty() => {
            Next::Schedule { plan: facts.plan.to_owned(), source: start_source(facts) }
        }
        None => match facts.stamp {
            Some(Stamp { spec: Some(_), .. }) => start(facts, Source::Stamp),
            _ => Next::Schedule { plan: facts.plan.to_owned(), source: Source::Spec },
        },
        Some(basis) => match facts.stamp {
            Some(Stamp { spec: Some(_), .. }) => start(facts, Source::Stamp),
            _ if facts.spec.hash() == basis.hash || !facts.stampable => start(facts, Source::Spec),
            _ => Next::Drop,
        },
    }
}

fn start(facts: &Facts<'_>, source: Source) -> Next {
    let spec = match (source, facts.stamp) {
        (Source::Stamp, Some(Stamp { spec: Some(spec), .. })) => spec,
        _ => facts.spec,
    };
    match (facts.package)(&spec.operator_version) {
        Some(package) if goes_on(facts, spec, &package) => Next::Retry { source },
        Some(_) => Next::Start { source },
        None => absent(&spec.operator_version),
    }
}

/// A retry goes on at the failed step only if the failed run is the newest, and was on the same
/// spec and package; else, and without a retry, a run starts at its first step.
fn goes_on(facts: &Facts<'_>, spec: &Applied<'_>, package: &Package) -> bool {
    let Some(asked) =
        facts.asked.filter(|asked| asked.request.verb == Verb::Retry && asked.retry == facts.uid)
    else {
        return false;
    };
    let failed = asked.request.run.as_str();
    let basis = facts.basis.filter(|basis| basis.hash == spec.hash());
    let newest = basis.and_then(|basis| basis.run.as_ref());
    newest.is_some_and(|run| run.uid == failed && run.package == package.hash)
        && facts.entries.get(facts.plan).is_some_and(|entry| entry.uid == failed)
}

fn absent(version: &VersionRef<'_>) -> Next {
    Next::Await(format!("{}/{}", version.namespace, version.name))
}

/// No basis and no run: created through admission, or unseen, or copied.
fn created(facts: &Facts<'_>) -> Next {
    if (facts.package)(&facts.spec.operator_version).is_none() {
        return absent(&facts.spec.operator_version);
    }
    let stamped = facts.stamp.map_or(!facts.stampable, |s| *s.hash == facts.spec.hash());
    if facts.plan == DEPLOY && !facts.uid.is_empty() && stamped && facts.created_whole {
        return Next::Start { source: Source::Spec };
    }
    if facts.plan == DEPLOY && facts.created_whole && facts.stamp.is_some_and(|s| s.spec.is_some()) {
        // Accepted, then edited unseen before the run began: it runs on what was accepted.
        return start(facts, Source::Stamp);
    }
    match (facts.refusal)() {
        Some(refusal) => Next::Report(refusal),
        None => Next::Create,
    }
}

/// Nothing is scheduled and nothing runs: drift is judged.
fn settled(facts: &Facts<'_>) -> Next {
    let Some(basis) = facts.basis else {
        return if has_run(facts) { Next::Adopt } else { created(facts) };
    };
    let queue = drift::queue(basis);
    if basis.difference(facts.spec) == Difference::None {
        return match (facts.stamp, queue.into_iter().next()) {
            (Some(stamp), None) if *stamp.hash == basis.hash => Next::Idle,
            (None, None) if !facts.stampable => Next::Idle,
            (_, None) => Next::Restamp,
            (_, Some(plan)) => Next::Schedule { plan, source: Source::Spec },
        };
    }
    match carried_out(facts, basis, queue.clone()) {
        Ok(next) => next,
        // What was accepted before is still carried out, on what was accepted.
        Err(refusal) => match (queue.into_iter().next(), facts.stamp) {
            (Some(plan), Some(Stamp { hash, spec: Some(_) })) if *hash == basis.hash => {
                Next::Schedule { plan, source: Source::Stamp }
            }
            _ => Next::Report(refusal),
        },
    }
}

fn carried_out(facts: &Facts<'_>, basis: &Basis, queue: Vec<String>) -> Result<Next, Refusal> {
    if let Some(refusal) = (facts.refusal)() {
        return Err(refusal);
    }
    let Some(package) = (facts.package)(&facts.spec.operator_version) else {
        return Ok(absent(&facts.spec.operator_version));
    };
    let plans = drift::triggered(basis, facts.spec, &package)
        .map_err(|error| Refusal { rule: "trigger".to_owned(), message: error.to_string() })?;
    let all = drift::in_order(plans.into_iter().chain(queue));
    Ok(match all.into_iter().next() {
        Some(plan) => Next::Schedule { plan, source: Source::Spec },
        None => Next::Adopt,
    })
}

/// The Instance is being deleted: what runs ends, then `cleanup`, then the finalizer comes off.
fn deleting(facts: &Facts<'_>, deletion: &Deletion) -> Next {
    let ended: BTreeMap<String, String> = facts
        .entries
        .iter()
        .filter(|(plan, e)| e.status.is_running() && plan.as_str() != CLEANUP)
        .map(|(plan, _)| (plan.clone(), "ended: the Instance is being deleted".to_owned()))
        .collect();
    if !ended.is_empty() {
        return Next::End(ended);
    }
    if !facts.finalizer {
        return Next::Idle;
    }
    let source = start_source(facts);
    let spec = match (source, facts.stamp) {
        (Source::Stamp, Some(Stamp { spec: Some(spec), .. })) => spec,
        _ => facts.spec,
    };
    let release = |why: String| Next::Release { warning: Some(why) };
    if deletion.overdue {
        return release(
            "cleanup was not finished: the CustomResourceDefinition of Instances is being deleted and waited \
             too long for it; what the package made may remain"
                .to_owned(),
        );
    }
    if deletion.namespace_terminating {
        return release("cleanup was not run: the namespace is being terminated".to_owned());
    }
    let version = &spec.operator_version;
    match (facts.package)(version) {
        None => release(format!(
            "cleanup was not run: OperatorVersion {}/{} is gone",
            version.namespace, version.name
        )),
        Some(package) if package.plan(CLEANUP).is_none() => {
            release(format!("cleanup was not run: OperatorVersion {} has no such plan", package.key))
        }
        Some(_) => cleanup(facts, deletion, source),
    }
}

fn cleanup(facts: &Facts<'_>, deletion: &Deletion, source: Source) -> Next {
    let schedule = Next::Schedule { plan: CLEANUP.to_owned(), source };
    if let Some(next) = cleanup_asked(facts) {
        return next;
    }
    let Some(entry) = facts.entries.get(CLEANUP) else {
        return if facts.plan == CLEANUP && !facts.uid.is_empty() {
            Next::Start { source }
        } else {
            schedule
        };
    };
    let named = names(facts, CLEANUP, entry);
    if !named && facts.plan == CLEANUP && !facts.uid.is_empty() {
        return Next::Start { source };
    }
    if entry.status.is_running() {
        return match named {
            true => Next::Continue { source },
            false => Next::PutBack { plan: CLEANUP.to_owned(), uid: entry.uid.clone() },
        };
    }
    let since = entry.last_updated_timestamp.as_ref().is_some_and(|t| t.0 >= deletion.since);
    match entry.status {
        ExecutionStatus::Complete if since => Next::Release { warning: None },
        ExecutionStatus::FatalError if since && deletion.failures >= CLEANUP_ATTEMPTS => Next::Release {
            warning: Some(format!(
                "cleanup failed {} times; the finalizer was taken off, what the package made may remain",
                deletion.failures
            )),
        },
        ExecutionStatus::FatalError if since => Next::RetryCleanup { failures: deletion.failures },
        _ => schedule,
    }
}

/// An aborted cleanup is not tried again.
fn cleanup_asked(facts: &Facts<'_>) -> Option<Next> {
    let asked = facts.asked.filter(|asked| matches!(asked.request.verb, Verb::Abort { .. }))?;
    match verb::course(asked, Runs { plan: facts.plan, uid: facts.uid, entries: &entries(facts) }) {
        Course::Abort(CLEANUP) => Some(Next::Answer(Answer::Abort { plan: CLEANUP.to_owned() })),
        Course::Clear | Course::Done
            if facts.entries.get(CLEANUP).is_some_and(|entry| {
                entry.uid == asked.request.run && entry.status == ExecutionStatus::FatalError
            }) =>
        {
            let why = asked.told();
            Some(Next::Release {
                warning: Some(format!("cleanup was aborted {why}; what the package made may remain")),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
