//! UPDATE: what may change, which plan it runs, and what is put back.

use std::borrow::Cow;
use std::sync::Arc;

use super::asked::{Asked, asked};
use super::desired::{Desired, Execution, Stamp, has_finalizer};
use super::{Ask, Stop, refusals};
use crate::admission::door::Freeze;
use crate::admission::facts::{Head, Spec, Status};
use crate::admission::request::Change;
use crate::admission::stamp::{self, Making, Room};
use crate::admission::verdict::{Field, FieldReason, Refusal, Verdict};
use crate::admission::{Patience, VerdictKind};
use crate::api::meta::plan::CLEANUP;
use crate::api::rule::Rule;
use crate::api::stamp::{Applied, Envelope};
use crate::plan::judge::{self, Delta, Packages};
use crate::plan::lock::Lock;
use crate::plan::objection::Objection;
use crate::plan::package::Package;
use crate::plan::uid::plan_uid;

/// An UPDATE with its specs and its old status read.
struct Update<'a, 'r> {
    ask: &'r Ask<'a>,
    change: Change<'a>,
    instance: String,
    new: Spec<'a>,
    old: Spec<'a>,
    status: Status<'a>,
    /// Whether what is carried out differs.
    changed: bool,
}

/// What an update that is allowed leads to.
struct Effect {
    /// The plan that is scheduled.
    plan: Option<String>,
    /// Whether the spec is stamped.
    stamped: bool,
    /// Parameters that an upgrade drops.
    dropped: Vec<String>,
    /// The spec without them.
    spec: Option<Applied<'static>>,
    /// Whether planExecution stays as it is written, where no plan is scheduled.
    as_written: bool,
}

impl Effect {
    fn nothing() -> Self {
        Self { plan: None, stamped: false, dropped: Vec::new(), spec: None, as_written: false }
    }

    fn run(plan: impl Into<String>) -> Self {
        Self { plan: Some(plan.into()), stamped: true, ..Self::nothing() }
    }
}

impl<'a> Ask<'a> {
    /// Decides on an UPDATE.
    pub(super) fn update(&self, change: Change<'a>) -> Result<Verdict, Stop> {
        let Change { object, old } = change;
        let same_spec = object.spec.map(|s| s.get()) == old.spec.map(|s| s.get());
        let finalizer_lost = has_finalizer(old) && !has_finalizer(object);
        if same_spec && !finalizer_lost {
            return self.metadata_only(change);
        }
        let status = Status::read(old).map_err(|error| refusals::unreadable("status", &error))?;
        let (new, before) = (self.spec(object)?, self.spec(old)?);
        let changed = new.applied != before.applied;
        let instance = self.instance(old);
        Update { ask: self, change, instance, new, old: before, status, changed }.decide()
    }

    /// The spec is what it was, byte for byte: only the stamp may have to be put back.
    fn metadata_only(&self, change: Change<'a>) -> Result<Verdict, Stop> {
        let before = change.old.metadata.annotations.stamp.as_deref();
        let own = &change.object.metadata.annotations;
        if own.stamp.as_deref() == before && stamp::holds(own.others, before, own.history) {
            return Ok(Verdict::allow());
        }
        let desired = Desired {
            execution: None,
            finalizer: false,
            stamp: Stamp::Kept(before),
            defaults: Vec::new(),
            dropped: Vec::new(),
        };
        let mut verdict = desired.settle(self, change.object, &Spec::default())?;
        warn_stamp(&mut verdict, change);
        Ok(verdict)
    }
}

/// A user's own stamp is undone; one that was merely left out is put back silently.
fn warn_stamp(verdict: &mut Verdict, change: Change<'_>) {
    let written = &change.object.metadata.annotations.stamp;
    if verdict.kind() == VerdictKind::Patched
        && written.is_some()
        && *written != change.old.metadata.annotations.stamp
    {
        verdict.warn(
            Rule::StampMismatch,
            "annotation interlock.dev/last-applied-spec is Interlock's own; the change of it was undone",
        );
    }
}

impl<'a> Update<'a, '_> {
    fn decide(&self) -> Result<Verdict, Stop> {
        let lock = self.status.lock(&self.old.execution);
        let asked =
            asked(&self.new.execution, &self.old, self.ask.subject(Some(self.change), self.change.object));
        let deleting = self.change.old.metadata.deletion_timestamp.is_some()
            || self.change.object.metadata.deletion_timestamp.is_some();
        let effect = match (&lock, asked) {
            (_, Asked::Status) => return Err(self.status_written(lock.as_ref()).into()),
            (_, Asked::Stray) => return Err(self.stray().into()),
            _ if deleting => self.deleting(lock.as_ref(), asked)?,
            (Some(lock), _) => self.locked(lock, asked)?,
            (None, _) => self.unlocked(asked)?,
        };
        self.settle(effect, asked, lock.as_ref())
    }

    /// The object as it must be.
    fn settle(&self, effect: Effect, asked: Asked<'_>, lock: Option<&Lock<'_>>) -> Result<Verdict, Stop> {
        let spec = effect.spec.as_ref().unwrap_or(&self.new.applied);
        let computed = effect.spec.as_ref().map(Applied::hash);
        let hash = computed.as_ref().unwrap_or_else(|| self.new.hash());
        let before = &self.old.execution;
        let uid = effect.plan.as_ref().map(|plan| {
            plan_uid(self.ask.subject(Some(self.change), self.change.object), plan, hash).to_string()
        });
        let execution = match (&effect.plan, uid) {
            (Some(plan), Some(uid)) => Some(Execution {
                plan: Cow::Owned(plan.clone()),
                uid: Cow::Owned(uid),
                status: Cow::Borrowed("NEVER_RUN"),
            }),
            _ if effect.as_written => None,
            _ => Some(Execution {
                plan: before.plan.as_ref().into(),
                uid: before.uid.as_ref().into(),
                status: before.status.as_ref().into(),
            }),
        };
        let metadata = &self.change.old.metadata;
        let old_stamp = metadata.annotations.stamp.as_deref();
        let envelope = old_stamp.filter(|_| effect.stamped).and_then(Envelope::parse);
        // A direct trigger runs on what is stamped already.
        let kept = !effect.stamped || envelope.as_ref().is_some_and(|envelope| envelope.hash == *hash);
        let stamp = if kept {
            Stamp::Kept(old_stamp)
        } else {
            // What runs no plan leaves what was carried out in full as it was.
            let basis = effect.plan.is_some().then(|| self.status.basis_head()).flatten();
            let previous = stamp::previous(envelope, basis.as_ref(), hash);
            let own = &self.change.object.metadata.annotations;
            Stamp::Made(stamp::make(
                Making { hash, spec, previous, uid: metadata.uid.as_deref() },
                Room { annotations: own.others, object: self.ask.request.size },
            ))
        };
        let restored = lock.is_some() && has_finalizer(self.change.old);
        let lost = restored && !has_finalizer(self.change.object);
        let desired = Desired {
            execution,
            finalizer: restored,
            stamp,
            defaults: Vec::new(),
            dropped: effect.dropped.clone(),
        };
        let mut verdict = desired.settle(self.ask, self.change.object, &self.new)?;
        if asked != Asked::Stale {
            warn_stamp(&mut verdict, self.change);
        }
        if lost {
            verdict.warn(
                Rule::FinalizerKept,
                "finalizer kudo.dev.instance.cleanup is kept while a plan is scheduled or runs",
            );
        }
        if !effect.dropped.is_empty() {
            verdict.warn(
                Rule::ParameterUnknown,
                format!(
                    "dropped, as the new OperatorVersion does not define them: {}",
                    effect.dropped.join(", ")
                ),
            );
        }
        verdict.plan = effect.plan.or_else(|| lock.map(|l| l.plan.to_owned()));
        Ok(verdict)
    }

    /// `failed to update Instance <ns>/<name>: `
    fn failed(&self, sentence: &str) -> String {
        format!("failed to update Instance {}: {sentence}", self.instance)
    }

    fn object(&self, objection: Objection) -> Stop {
        refusals::from_objection(objection, &self.instance).into()
    }

    /// The OperatorVersions of the change; an old one that is gone is judged without.
    fn packages(&self) -> Result<(Arc<Package>, Option<Arc<Package>>), Stop> {
        let new = self.ask.package(&self.new, &self.instance)?;
        if self.new.applied.operator_version == self.old.applied.operator_version {
            return Ok((Arc::clone(&new), Some(new)));
        }
        let key = self.old.version();
        match (self.ask.context.view.operator_version(&key), self.ask.context.patience) {
            (None, Patience::Wait) if !key.name.is_empty() => Err(Stop::Wait(key)),
            (old, _) => Ok((new, old)),
        }
    }

    fn foreign(&self) -> Result<(), Stop> {
        let own = self.ask.request.namespace;
        let version = self.new.version();
        let moved = self.new.applied.operator_version != self.old.applied.operator_version;
        if moved && !version.name.is_empty() && version.namespace != own {
            return Err(refusals::version_namespace(&self.instance, &version, own).into());
        }
        Ok(())
    }

    fn delta_fields(&self, package: Option<&Package>) -> Vec<Field> {
        let delta = Delta::between(&self.old.applied, &self.new.applied);
        delta.fields(&self.new.applied, Some(&self.old.applied.operator_version), package)
    }

    fn status_written(&self, lock: Option<&Lock<'_>>) -> Refusal {
        let (before, after) = (&self.old.execution.status, &self.new.execution.status);
        let refusal = Refusal::invalid(
            Rule::PlanStatus,
            self.failed("planExecution.status is written by Interlock only"),
            vec![refusals::execution_field("status", before, after)],
        );
        match lock {
            Some(lock) => refusals::locked(refusal, lock, &self.status, &self.instance),
            None => {
                refusal.next("leave planExecution.status out; to trigger a plan set planExecution.planName")
            }
        }
    }

    fn stray(&self) -> Refusal {
        Refusal::invalid(
            Rule::PlanOverride,
            self.failed("planExecution.planName is missing"),
            vec![Field::new(
                "spec.planExecution.planName",
                FieldReason::Required,
                "is needed beside a uid or a status",
            )],
        )
        .next("leave planExecution out, or name the plan to run")
    }
}

/// Locked: nothing that a plan carries out changes, except as the freeze mode says.
impl Update<'_, '_> {
    fn locked(&self, lock: &Lock<'_>, asked: Asked<'_>) -> Result<Effect, Stop> {
        let refuse = |rule, sentence: String, fields| {
            let refusal = Refusal::invalid(rule, self.failed(&sentence), fields);
            Err(Stop::from(refusals::locked(refusal, lock, &self.status, &self.instance)))
        };
        let before = &self.old.execution;
        match asked {
            Asked::Clear => {
                return refuse(
                    Rule::PlanCancel,
                    format!(
                        "cancelling currently scheduled (or running) plan '{}' is not supported",
                        lock.plan
                    ),
                    vec![refusals::execution_field("planName", &before.plan, "")],
                );
            }
            Asked::Trigger(plan) if plan != lock.plan => {
                return refuse(
                    Rule::PlanOverride,
                    format!(
                        "overriding currently scheduled (or running) plan '{}' with '{plan}' is not supported",
                        lock.plan
                    ),
                    vec![refusals::execution_field("planName", &before.plan, plan)],
                );
            }
            _ => {}
        }
        if self.ask.context.config.freeze == Freeze::SamePlan {
            return self.same_plan(lock, asked);
        }
        if self.changed {
            return Err(self.frozen(lock).into());
        }
        match asked {
            Asked::Trigger(plan) => refuse(
                Rule::PlanOverride,
                format!("restarting currently scheduled (or running) plan '{plan}' is not supported"),
                vec![refusals::execution_field("uid", &before.uid, &self.new.execution.uid)],
            ),
            _ => Ok(Effect::nothing()),
        }
    }

    /// The refusal of a change of the spec: KUDO's sentence where it has one for this change.
    fn frozen(&self, lock: &Lock<'_>) -> Refusal {
        let view = self.ask.context.view;
        let package = view.operator_version(&self.new.version());
        let old = view.operator_version(&self.old.version());
        let delta = Delta::between(&self.old.applied, &self.new.applied);
        let triggered = package
            .as_deref()
            .and_then(|new| judge::triggered(&delta, Packages { new, old: old.as_deref() }).ok().flatten());
        let sentence = match triggered {
            Some(plan) if plan != lock.plan => format!(
                "plan '{}' is scheduled (or running) and an update would trigger a different plan '{plan}'",
                lock.plan
            ),
            _ if delta.upgrade => format!(
                "upgrade to new OperatorVersion {} while a plan '{}' is scheduled (or running) is not allowed",
                judge::go_reference(&self.new.applied.operator_version.name, None),
                lock.plan
            ),
            _ => format!("the spec is frozen while plan '{}' is scheduled (or running)", lock.plan),
        };
        let fields = self.delta_fields(package.as_deref());
        let refusal = Refusal::invalid(Rule::PlanRunning, self.failed(&sentence), fields);
        refusals::locked(refusal, lock, &self.status, &self.instance)
    }

    /// `--freeze=same-plan`: a change that triggers the running plan restarts it, and so does a
    /// changed or emptied uid.
    fn same_plan(&self, lock: &Lock<'_>, asked: Asked<'_>) -> Result<Effect, Stop> {
        if !self.changed {
            return Ok(match asked {
                Asked::Trigger(plan) => Effect::run(plan),
                _ => Effect::nothing(),
            });
        }
        self.foreign()?;
        let (new, old) = self.packages()?;
        let delta = Delta::between(&self.old.applied, &self.new.applied);
        let packages = Packages { new: &new, old: old.as_deref() };
        if delta.upgrade {
            return Err(self.frozen(lock).into());
        }
        judge::values(&delta, &self.new.applied, packages).map_err(|o| self.object(o))?;
        match judge::triggered(&delta, packages).map_err(|o| self.object(o))? {
            Some(plan) if plan == lock.plan => Ok(Effect::run(plan)),
            Some(_) => Err(self.frozen(lock).into()),
            // Nothing to carry out: the run goes on, and the stamp with it.
            None => Ok(Effect::nothing()),
        }
    }

    /// The Instance is being deleted: its spec stays, and `cleanup` is the controller's.
    fn deleting(&self, lock: Option<&Lock<'_>>, asked: Asked<'_>) -> Result<Effect, Stop> {
        let same_plan = self.ask.context.config.freeze == Freeze::SamePlan;
        let refuse = |rule, sentence: &str, fields| {
            let refusal = Refusal::invalid(rule, self.failed(sentence), fields)
                .why("the Instance is being deleted")
                .next("let the deletion end, then create the Instance anew");
            Err(Stop::from(refusal))
        };
        let before = &self.old.execution;
        if self.changed {
            let package = self.ask.context.view.operator_version(&self.new.version());
            return refuse(
                Rule::InstanceDeleting,
                "parameter update and/or upgrade is not allowed when an instance is being deleted",
                self.delta_fields(package.as_deref()),
            );
        }
        let cleaning = lock.is_some_and(|lock| lock.plan == CLEANUP);
        match asked {
            Asked::Trigger(plan) if plan != CLEANUP && cleaning => refuse(
                Rule::InstanceDeleting,
                "'cleanup' plan can not be cancelled or overridden by another plan since the instance is being deleted",
                vec![refusals::execution_field("planName", &before.plan, plan)],
            ),
            Asked::Clear if cleaning => refuse(
                Rule::InstanceDeleting,
                "'cleanup' plan can not be cancelled or overridden by another plan since the instance is being deleted",
                vec![refusals::execution_field("planName", &before.plan, "")],
            ),
            Asked::Clear => match lock {
                Some(lock) => self.locked(lock, asked),
                None => Ok(Effect { as_written: true, ..Effect::nothing() }),
            },
            Asked::Trigger(CLEANUP) if same_plan => {
                self.exists(CLEANUP)?;
                Ok(Effect { stamped: false, ..Effect::run(CLEANUP) })
            }
            Asked::Trigger(CLEANUP) => {
                let field = refusals::execution_field("planName", &before.plan, CLEANUP);
                Err(self.object(judge::cleanup(vec![field]).next("wait: Interlock schedules it by itself")))
            }
            Asked::Trigger(plan) => refuse(
                Rule::InstanceDeleting,
                "only 'cleanup' plan can be scheduled when an instance is being deleted",
                vec![refusals::execution_field("planName", &before.plan, plan)],
            ),
            _ => Ok(Effect::nothing()),
        }
    }
}

/// Unlocked: a change of the spec runs the plan that it triggers, a plan that is named runs.
impl Update<'_, '_> {
    fn unlocked(&self, asked: Asked<'_>) -> Result<Effect, Stop> {
        if let Asked::Trigger(plan) = asked {
            return self.trigger(plan);
        }
        let as_written = asked == Asked::Clear || asked == Asked::Same;
        let effect = if self.changed { self.edit()? } else { Effect::nothing() };
        Ok(Effect { as_written, ..effect })
    }

    /// The basis, where the old spec is not what it says was carried out.
    fn drifted(&self) -> Option<Head> {
        self.status.basis_head().filter(|head| head.hash != self.old.hash().as_str())
    }

    /// Whether a plan of the OperatorVersion exists.
    fn exists(&self, plan: &str) -> Result<Arc<Package>, Stop> {
        let package = self.ask.package(&self.new, &self.instance)?;
        if package.plan(plan).is_some() {
            return Ok(package);
        }
        let names: Vec<&str> = package.plan_names().filter(|name| *name != CLEANUP).collect();
        let objection = Objection::new(
            Rule::PlanUnknown,
            format!("plan {plan} does not exist"),
            vec![Field::new(
                "spec.planExecution.planName",
                FieldReason::NotFound,
                format!("OperatorVersion {} has the plans [{}]", package.key.name, names.join(" ")),
            )],
        )
        .next("name one of these plans");
        Err(self.object(objection))
    }

    /// A plan is triggered directly.
    fn trigger(&self, plan: &str) -> Result<Effect, Stop> {
        let field = || vec![refusals::execution_field("planName", &self.old.execution.plan, plan)];
        if self.changed {
            return Err(self.trigger_and_edit(plan));
        }
        let package = self.exists(plan)?;
        if plan == CLEANUP {
            return Err(self.object(judge::cleanup(field())));
        }
        judge::valid(&package, &self.new.applied.parameters)
            .map_err(|o| self.object(o.prelude(crate::plan::objection::Prelude::Validate)))?;
        if self.drifted().is_none() {
            return Ok(Effect::run(plan));
        }
        if self.change.old.metadata.annotations.stamp.as_deref().and_then(Envelope::parse).is_none() {
            let refusal = Refusal::invalid(
                Rule::SpecDrift,
                self.failed("an edit that was never admitted has to be judged before another plan runs"),
                field(),
            )
            .why("the spec differs from what was last carried out, and that is not known any more")
            .next("wait until condition SpecDrift is False, or undo the edit that it names");
            return Err(refusal.into());
        }
        // It runs on the stamp, and the edit that nobody saw is judged after it.
        Ok(Effect { stamped: false, ..Effect::run(plan) })
    }

    fn trigger_and_edit(&self, plan: &str) -> Stop {
        let upgrade = self.new.applied.operator_version != self.old.applied.operator_version;
        let view = self.ask.context.view;
        let package = view.operator_version(&self.new.version());
        let sentence = if upgrade {
            let name = &self.new.applied.operator_version.name;
            format!(
                "upgrade to new OperatorVersion {} and triggering new plan '{plan}' is not allowed",
                judge::go_reference(name, None)
            )
        } else {
            format!(
                "triggering one plan '{}' directly and through parameter update '{plan}' is not allowed",
                self.old.execution.plan
            )
        };
        let mut fields = vec![refusals::execution_field("planName", &self.old.execution.plan, plan)];
        fields.extend(self.delta_fields(package.as_deref()));
        Refusal::invalid(Rule::PlanAndEdit, self.failed(&sentence), fields)
            .why("a change of the spec runs its own plan")
            .next(
                "change the spec first, and trigger the plan when that run has ended; or the other way round",
            )
            .into()
    }

    /// The spec changes.
    fn edit(&self) -> Result<Effect, Stop> {
        self.foreign()?;
        let (new, old) = self.packages()?;
        let packages = Packages { new: &new, old: old.as_deref() };
        if let Some(basis) = self.drifted() {
            return self.edit_drifted(&basis, packages);
        }
        let delta = Delta::between(&self.old.applied, &self.new.applied);
        if delta.upgrade && !self.goes_back() {
            judge::path(&self.old.applied.operator_version, packages).map_err(|o| self.object(o))?;
        }
        let (dropped, spec) = self.without_dropped(&delta, packages);
        let applied = spec.as_ref().unwrap_or(&self.new.applied);
        judge::values(&delta, applied, packages).map_err(|o| self.object(o))?;
        let plan = judge::plan(&delta, packages).map_err(|o| self.object(o))?;
        Ok(Effect { plan, stamped: true, dropped, spec, as_written: false })
    }

    fn without_dropped(
        &self,
        delta: &Delta<'_>,
        packages: Packages<'_>,
    ) -> (Vec<String>, Option<Applied<'static>>) {
        let dropped: Vec<String> = judge::dropped(packages, &self.new.applied.parameters, delta)
            .into_iter()
            .map(str::to_owned)
            .collect();
        if dropped.is_empty() {
            return (dropped, None);
        }
        let mut spec = self.new.clone();
        dropped.iter().for_each(|name| spec.remove(name));
        (dropped, Some(spec.applied.into_owned()))
    }

    /// Whether the change goes back to what last was carried out in full.
    fn goes_back(&self) -> bool {
        let stamp = self.change.old.metadata.annotations.stamp.as_deref().and_then(Envelope::parse);
        let Some(previous) = stamp.and_then(|stamp| stamp.previous) else { return false };
        let same_version = |spec: &Applied<'_>| spec.operator_version == self.new.applied.operator_version;
        previous.hash == *self.new.hash() || previous.kept.inline().is_some_and(same_version)
    }

    /// The old spec holds an edit that admission never saw: the change is judged against the
    /// basis, and left to the reconciler, which would else carry the unseen edit out with it.
    fn edit_drifted(&self, head: &Head, packages: Packages<'_>) -> Result<Effect, Stop> {
        let mended = head.hash == self.new.hash().as_str();
        let own = Delta::between(&self.old.applied, &self.new.applied);
        if mended {
            return Ok(Effect::nothing());
        }
        judge::triggered(&own, packages).map_err(|o| self.object(o))?;
        let Some(basis) = self.status.basis() else { return Ok(Effect::nothing()) };
        let envelope = self.change.old.metadata.annotations.stamp.as_deref().and_then(Envelope::parse);
        let stamp = envelope.as_ref().and_then(|e| e.kept.inline());
        judge::unseen(&basis, stamp, &self.new.applied, packages).map_err(|objection| {
            let refusal = refusals::from_objection(objection, &self.instance).why(
                "the spec already holds an edit that was never admitted; this change is judged together with it",
            );
            Stop::from(refusal)
        })?;
        Ok(Effect::nothing())
    }
}
