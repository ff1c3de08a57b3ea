//! Instances as sentences: each call adds a fact.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::condition::Time;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::{Applied, SpecHash, VersionRef};
use jiff::Timestamp;

use crate::api::{
    ExecutionStatus, HeldObject, OperatorVersionSpec, Pause, PhaseStatus, PlanStatus, RunRequests, StepStatus,
};
use crate::instance::change::baseline::{Baseline, PendingPlan};
use crate::instance::change::next::{
    Deletion, DriftRefusal, FoundStamp, InstanceFacts, Next, ReferenceAccess, RequestAnswer, SpecSource, next,
};
use crate::instance::change::plan_request::PendingRequest;
use crate::package::Package;

/// An Instance in the making; every method adds one fact and reads as a sentence.
#[derive(Clone)]
pub(super) struct World {
    spec: Applied<'static>,
    stamp: Option<(SpecHash, Option<Applied<'static>>)>,
    baseline: Option<Baseline>,
    plan: String,
    uid: String,
    entries: BTreeMap<String, PlanStatus>,
    pub(super) whole: bool,
    finalizer: bool,
    pub(super) stampable: bool,
    deletion: Option<Deletion>,
    refusal: Option<DriftRefusal>,
    stamp_refusal: Option<DriftRefusal>,
    reference: ReferenceAccess,
    packages: BTreeMap<String, Arc<Package>>,
    requested: Option<PendingRequest>,
    requests: Option<RunRequests>,
}

pub(super) const V5: &str = "74738ff5-5367-5958-9aee-98fffdcd1876";
pub(super) const V4: &str = "9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab";

fn spec(version: &str, parameters: &[(&str, &str)]) -> Applied<'static> {
    Applied {
        operator_version: VersionRef { name: version.to_owned().into(), namespace: "ns".into() },
        parameters: parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into()))
            .collect(),
    }
}

fn package(name: &str, plans: &[&str]) -> Arc<Package> {
    let parameter =
        |name: &str, trigger: Option<&str>| serde_json::json!({ "name": name, "trigger": trigger });
    let spec: OperatorVersionSpec = serde_json::from_value(serde_json::json!({
        "plans": plans.iter().map(|p| ((*p).to_owned(), serde_json::json!({}))).collect::<serde_json::Map<_, _>>(),
        "parameters": [
            parameter("A", Some("backup")), parameter("B", Some("audit")), parameter("D", Some("deploy")),
            parameter("PLAIN", None),
        ],
    }))
    .unwrap();
    Arc::new(Package::new(NamespacedName::new("ns", name), spec))
}

const PLANS: [&str; 6] = ["audit", "backup", "cleanup", "deploy", "update", "upgrade"];

impl World {
    /// Idle, stamped, carried out: nothing to do.
    pub(super) fn settled() -> Self {
        let spec = spec("v1", &[("A", "1"), ("B", "1")]);
        Self {
            stamp: Some((spec.hash(), Some(spec.clone()))),
            baseline: Some(Baseline::new(&spec, BTreeMap::new())),
            spec,
            plan: String::new(),
            uid: String::new(),
            entries: BTreeMap::new(),
            whole: true,
            finalizer: true,
            stampable: true,
            deletion: None,
            refusal: None,
            stamp_refusal: None,
            reference: ReferenceAccess::Allowed,
            requested: None,
            requests: None,
            packages: [package("v1", &PLANS), package("v2", &PLANS)]
                .into_iter()
                .map(|p| (p.key.name.clone(), p))
                .collect(),
        }
        .ran("deploy", "d0", ExecutionStatus::Complete)
    }

    pub(super) fn fresh() -> Self {
        let mut world = Self::settled().no_baseline();
        world.entries.clear();
        world
    }

    pub(super) fn entry(mut self, plan: &str, uid: &str, status: ExecutionStatus, at: i64) -> Self {
        let time = Some(Time(Timestamp::from_second(at).unwrap()));
        let entry = PlanStatus {
            name: plan.to_owned(),
            uid: uid.to_owned(),
            status,
            last_updated_timestamp: time,
            ..PlanStatus::default()
        };
        self.entries.insert(plan.to_owned(), entry);
        self
    }

    /// An entry has this message, and one phase with these steps and their messages.
    pub(super) fn steps(
        mut self,
        plan: &str,
        message: &str,
        steps: &[(&str, ExecutionStatus, Option<&str>)],
    ) -> Self {
        let step = |(name, status, message): &(&str, ExecutionStatus, Option<&str>)| StepStatus {
            name: (*name).to_owned(),
            status: status.clone(),
            message: message.map(str::to_owned),
        };
        let steps = Some(steps.iter().map(step).collect());
        let entry = self.entries.get_mut(plan).unwrap();
        entry.message = Some(message.to_owned());
        entry.phases = Some(vec![PhaseStatus { name: "p".to_owned(), steps, ..PhaseStatus::default() }]);
        self
    }

    pub(super) fn ran(self, plan: &str, uid: &str, status: ExecutionStatus) -> Self {
        self.entry(plan, uid, status, 1000)
    }

    pub(super) fn running(self, plan: &str, uid: &str) -> Self {
        self.entry(plan, uid, ExecutionStatus::InProgress, 1000)
    }

    pub(super) fn scheduled(mut self, plan: &str, uid: &str) -> Self {
        (self.plan, self.uid) = (plan.to_owned(), uid.to_owned());
        self
    }

    pub(super) fn edited(mut self, parameters: &[(&str, &str)]) -> Self {
        self.spec = spec(&self.spec.operator_version.name.clone(), parameters);
        self
    }

    pub(super) fn on_version(mut self, version: &str) -> Self {
        self.spec.operator_version.name = version.to_owned().into();
        self
    }

    pub(super) fn stamped_as_spec(mut self) -> Self {
        self.stamp = Some((self.spec.hash(), Some(self.spec.clone())));
        self
    }

    pub(super) fn stamp_lost(mut self) -> Self {
        self.stamp = None;
        self
    }

    pub(super) fn stamp_text_only(mut self) -> Self {
        self.stamp = self.stamp.map(|(hash, _)| (hash, None));
        self
    }

    pub(super) fn no_baseline(mut self) -> Self {
        self.baseline = None;
        self
    }

    pub(super) fn bare_hash(mut self) -> Self {
        self.baseline = self.baseline.map(|b| Baseline { detail: None, ..b });
        self
    }

    pub(super) fn with_pending(mut self, pending: &[(&str, PendingPlan)]) -> Self {
        let pending = pending.iter().map(|(plan, state)| ((*plan).to_owned(), *state)).collect();
        self.baseline = self.baseline.map(|b| Baseline { pending, ..b });
        self
    }

    pub(super) fn refused(mut self) -> Self {
        self.refusal = Some(refusal());
        self
    }

    /// The rules of admission refuse the last-applied spec.
    pub(super) fn stamp_refused(mut self) -> Self {
        self.stamp_refusal = Some(refusal());
        self
    }

    /// The last-applied spec differs from the spec.
    pub(super) fn stamped_with(mut self, parameters: &[(&str, &str)]) -> Self {
        let spec = spec("v1", parameters);
        self.stamp = Some((spec.hash(), Some(spec)));
        self
    }

    /// This spec was carried out in full before the baseline.
    pub(super) fn carried_out_before(mut self, parameters: &[(&str, &str)]) -> Self {
        let before = Baseline::new(&spec("v1", parameters), BTreeMap::new());
        self.baseline = self.baseline.map(|baseline| baseline.after(Some(&before)));
        self
    }

    /// Packages of the namespace may not use the OperatorVersion.
    pub(super) fn reference_refused(mut self) -> Self {
        self.reference = ReferenceAccess::Refused(refusal());
        self
    }

    /// The permission has not been checked lately.
    pub(super) fn reference_unknown(mut self) -> Self {
        self.reference = ReferenceAccess::Unknown;
        self
    }

    /// The Instance was deleted long ago.
    pub(super) fn long_deleted(mut self) -> Self {
        self.deletion = self.deletion.map(|deletion| Deletion { patient: false, ..deletion });
        self
    }

    pub(super) fn half_created(mut self) -> Self {
        self.whole = false;
        self
    }

    pub(super) fn without_package(mut self) -> Self {
        self.packages.clear();
        self
    }

    pub(super) fn packages_without(mut self, plan: &str) -> Self {
        let plans: Vec<_> = PLANS.into_iter().filter(|p| *p != plan).collect();
        self.packages = ["v1", "v2"].into_iter().map(|v| (v.to_owned(), package(v, &plans))).collect();
        self
    }

    pub(super) fn deleted(mut self, terminating: bool, failures: usize) -> Self {
        let namespace_terminating = terminating;
        self.deletion = Some(Deletion { namespace_terminating, failures, overdue: false, patient: true });
        self
    }

    pub(super) fn without_room(mut self) -> Self {
        self.stampable = false;
        self.stamp_lost()
    }

    pub(super) fn without_finalizer(mut self) -> Self {
        self.finalizer = false;
        self
    }

    /// A user makes a request; the run that it starts has the uid [`V5`].
    pub(super) fn requested(mut self, request: &str) -> Self {
        let of = crate::instance::change::uid::Retry { namespace: "ns", name: "i" };
        let pending = PendingRequest::read(request, "because", "alice", of).unwrap();
        self.requested = Some(PendingRequest { new_run: V5.to_owned(), ..pending });
        self
    }

    /// Objects that no Instance made ended the run.
    pub(super) fn held(mut self, run: &str) -> Self {
        let object =
            HeldObject { kind: "ConfigMap".to_owned(), name: "a".to_owned(), ..HeldObject::default() };
        self.requests =
            Some(RunRequests { run: run.to_owned(), held_by: [object].into(), ..RunRequests::default() });
        self
    }

    /// The run is paused, by the request of this nonce.
    pub(super) fn paused(mut self, run: &str, nonce: &str) -> Self {
        let pause = Pause { since: Timestamp::UNIX_EPOCH, by: "alice".to_owned(), reason: "wait".to_owned() };
        self.requests = Some(RunRequests {
            run: run.to_owned(),
            answered: Some(nonce.to_owned()),
            paused: Some(pause),
            ..RunRequests::default()
        });
        self
    }

    /// The run goes on, by the request of this nonce.
    pub(super) fn resumed(self, run: &str, nonce: &str) -> Self {
        let mut world = self.paused(run, nonce);
        world.requests.as_mut().unwrap().paused = None;
        world
    }

    /// The record of a run in the status write that starts it.
    pub(super) fn recorded(mut self, uid: &str) -> Self {
        let package = self.packages.values().next().map(|p| p.hash.clone()).unwrap();
        let run = crate::instance::change::baseline::CarriedOutRun {
            uid: uid.to_owned(),
            package,
            started: Timestamp::UNIX_EPOCH,
            attempt: 1,
        };
        self.baseline = self.baseline.map(|b| b.ran(Some(run)));
        self
    }

    pub(super) fn next(&self) -> Next {
        next(&InstanceFacts {
            request: self.requested.as_ref(),
            requests: self.requests.as_ref(),
            spec: &self.spec,
            plan: &self.plan,
            uid: &self.uid,
            entries: &self.entries,
            baseline: self.baseline.as_ref(),
            stamp: self.stamp.as_ref().map(|(hash, spec)| FoundStamp { hash, spec: spec.as_ref() }),
            finalizer: self.finalizer,
            stampable: self.stampable,
            created_whole: self.whole,
            deletion: self.deletion,
            package: &|version| self.packages.get(version.name.as_ref()).cloned(),
            package_of_baseline: &|| {
                let baseline = self.baseline.as_ref()?;
                let key = baseline.version_among(self.packages.values().map(|package| &package.key))?;
                self.packages.get(&key.name).cloned()
            },
            refusal: &|source| match source {
                SpecSource::Spec => self.refusal.clone(),
                SpecSource::Stamp => self.stamp_refusal.clone(),
            },
            reference: &|_| self.reference.clone(),
        })
    }
}

fn refusal() -> DriftRefusal {
    DriftRefusal { rule: "some-rule".to_owned(), message: "no".to_owned(), passes: false }
}

pub(super) fn schedule(plan: &str, source: SpecSource) -> Next {
    Next::Schedule { plan: plan.to_owned(), source }
}

pub(super) fn abort(plan: &str) -> Next {
    Next::Answer(RequestAnswer::Abort { plan: plan.to_owned() })
}

pub(super) fn retry(plan: &str) -> Next {
    Next::Answer(RequestAnswer::Retry { plan: plan.to_owned() })
}

pub(super) fn restart(plan: &str) -> Next {
    Next::Answer(RequestAnswer::Restart { plan: plan.to_owned() })
}

pub(super) fn pause(plan: &str) -> Next {
    Next::Answer(RequestAnswer::Pause { plan: plan.to_owned() })
}

pub(super) fn resume(plan: &str) -> Next {
    Next::Answer(RequestAnswer::Resume { plan: plan.to_owned() })
}

pub(super) fn forget(why: Option<&str>) -> Next {
    Next::Answer(RequestAnswer::Remove(why.map(str::to_owned)))
}

/// A plan that failed, as run `r`, and nothing scheduled.
pub(super) fn failed() -> World {
    World::settled()
        .ran("backup", "r", ExecutionStatus::FatalError)
        .with_pending(&[("backup", PendingPlan::Failed)])
        .recorded("r")
}

pub(super) fn report() -> Next {
    Next::Report(refusal())
}
