//! The input of the engine, shared with the threads that run it.

use std::sync::Arc;

use go_template::KeyStore;
use interlock_core::api::stamp::Applied;
use interlock_kudo::engine::render_cache::Rendered;
use interlock_kudo::engine::run::{InstanceId, PipeHelper, Run};
use interlock_kudo::engine::seed::{Seed, SeedKey};
use interlock_kudo::package::Package;
use jiff::Timestamp;

use super::view::InstanceView;
use crate::runtime::pool::Deadline;

/// One run.
pub struct Engine {
    package: Arc<Package>,
    spec: Applied<'static>,
    instance: InstanceId,
    plan: String,
    uid: String,
    /// When the run started; the time of its first pass until that is recorded.
    started: Timestamp,
    key: Option<SeedKey>,
    /// Keys that templates of all runs have made.
    keys: Arc<KeyStore>,
    rendered: Rendered,
}

impl Engine {
    /// An execution of a plan, on this spec and package.
    pub fn new(
        subject: &InstanceView,
        spec: &Applied<'static>,
        package: &Arc<Package>,
        (plan, uid): (&str, &str),
        (key, keys): (Option<&SeedKey>, &Arc<KeyStore>),
    ) -> Self {
        let in_progress = subject.progress.as_ref().filter(|progress| progress.uid == uid);
        let carried_out = subject.basis.as_ref().and_then(|basis| basis.run.as_ref());
        let recorded = in_progress.map(|progress| progress.started);
        let recorded = recorded.or(carried_out.filter(|run| run.uid == uid).map(|run| run.started));
        let instance = InstanceId {
            namespace: subject.key.namespace.clone(),
            name: subject.key.name.clone(),
            uid: subject.uid().to_owned(),
        };
        Self {
            package: package.clone(),
            spec: spec.clone(),
            instance,
            plan: plan.to_owned(),
            uid: uid.to_owned(),
            started: recorded.unwrap_or_else(Timestamp::now),
            key: key.cloned(),
            keys: keys.clone(),
            rendered: Rendered::default(),
        }
    }

    /// The Instance of the run.
    pub fn instance(&self) -> &InstanceId {
        &self.instance
    }

    /// When the run started, as its templates know it.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Approximate bytes of its rendered objects.
    pub fn bytes(&self) -> usize {
        self.rendered.bytes()
    }

    /// The run, with a deadline that interrupts its renderings, and the helper of its Pipe tasks.
    pub fn run<'a>(&'a self, deadline: &'a Deadline, helper: &'a PipeHelper) -> Run<'a> {
        Run {
            package: &self.package,
            instance: &self.instance,
            plan: &self.plan,
            uid: &self.uid,
            values: &self.spec.parameters,
            transient: crate::kinds::transient_rules(),
            helper,
            seed: self.key.as_ref().map(|key| Seed { key, started: self.started, keys: &self.keys }),
            rendered: &self.rendered,
            interrupt: deadline,
        }
    }
}
