//! The run that the engine is asked about: which plan of which package, for whom, with what.

use go_template::Interrupt;

use crate::api::values::Values;
use crate::plan::package::Package;
use crate::plan::rendered::Rendered;

/// The Instance that a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceId {
    /// Namespace; every namespaced object of the package lives there.
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
    /// Who it is for.
    pub instance: &'a InstanceId,
    /// Name of the plan.
    pub plan: &'a str,
    /// Id of this execution.
    pub uid: &'a str,
    /// Values of parameters, as stamped.
    pub values: &'a Values<'a>,
    /// What its tasks have rendered already.
    pub rendered: &'a Rendered,
    /// Ends a rendering from outside: the task then fails in a way that is tried again.
    /// [`go_template::Never`] where nothing does.
    pub interrupt: &'a dyn Interrupt,
}
