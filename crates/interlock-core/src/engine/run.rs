//! The run that the engine advances: its plan and package, its Instance, and the values.

use go_template::Interrupt;

use super::render_cache::Rendered;
use crate::api::rule::Rule;
use crate::api::values::Values;
use crate::package::Package;

/// The Instance that a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceId {
    /// Namespace, also of every namespaced object of the package.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid of the object, for owner references.
    pub uid: String,
}

/// One execution of a plan. The same run always renders the same objects.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The package as it was when the run started.
    pub package: &'a Package,
    /// Its Instance.
    pub instance: &'a InstanceId,
    /// Name of the plan.
    pub plan: &'a str,
    /// Id of this execution.
    pub uid: &'a str,
    /// Values of parameters, as stamped.
    pub values: &'a Values<'a>,
    /// Rules of admission whose denial a later try may find lifted, as they wait for another plan.
    pub transient: &'a [Rule],
    /// Its render cache.
    pub rendered: &'a Rendered,
    /// Interrupts a rendering from outside, which fails the task with a transient error.
    /// [`go_template::Never`] never does.
    pub interrupt: &'a dyn Interrupt,
}
