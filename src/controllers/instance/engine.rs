//! The input of the engine, shared with the threads that run it.

use std::sync::Arc;

use interlock_core::api::stamp::Applied;
use interlock_core::engine::render_cache::Rendered;
use interlock_core::engine::run::{InstanceId, PipeHelper, Run};
use interlock_core::kinds;
use interlock_core::package::Package;

use super::view::InstanceView;
use crate::runtime::pool::Deadline;

/// One run.
pub struct Engine {
    package: Arc<Package>,
    spec: Applied<'static>,
    instance: InstanceId,
    plan: String,
    uid: String,
    rendered: Rendered,
}

impl Engine {
    /// The execution that `planExecution` names, on this spec and package.
    pub fn new(subject: &InstanceView, spec: &Applied<'static>, package: &Arc<Package>) -> Self {
        Self::of(subject, spec, package, subject.plan(), subject.plan_uid())
    }

    /// An execution of a plan, on this spec and package.
    pub fn of(
        subject: &InstanceView,
        spec: &Applied<'static>,
        package: &Arc<Package>,
        plan: &str,
        uid: &str,
    ) -> Self {
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
            rendered: Rendered::default(),
        }
    }

    /// The Instance of the run.
    pub fn instance(&self) -> &InstanceId {
        &self.instance
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
            transient: kinds::transient_rules(),
            helper,
            seed: None,
            rendered: &self.rendered,
            interrupt: deadline,
        }
    }
}
