//! The run that the engine advances: its plan and package, its Instance, and the values.

use std::sync::LazyLock;

use go_template::Interrupt;
use interlock_core::api::rule::Rule;
use interlock_core::api::values::Values;
use serde_json::Value;

use super::render_cache::Rendered;
use super::seed::Seed;
use crate::package::Package;

/// The Instance that a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceId {
    /// Namespace, also of every namespaced object of the package.
    pub namespace: String,
    pub name: String,
    /// Uid of the object, for owner references.
    pub uid: String,
}

/// The container that keeps the Pod of a Pipe task alive until its files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeHelper {
    /// Its image, which has `/bin/sh`, `sleep` and `cat`.
    pub image: String,
    /// Its `securityContext`, where the cluster asks for one.
    pub security_context: Option<Value>,
}

/// Image of the helper, as KUDO has it.
pub const PIPE_IMAGE: &str = "busybox";

impl Default for PipeHelper {
    fn default() -> Self {
        Self { image: PIPE_IMAGE.to_owned(), security_context: None }
    }
}

impl PipeHelper {
    /// KUDO's own.
    pub fn kudo() -> &'static Self {
        static KUDO: LazyLock<PipeHelper> = LazyLock::new(PipeHelper::default);
        &KUDO
    }
}

/// One execution of a plan. The same run always renders the same objects.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The package as it was when the run started.
    pub package: &'a Package,
    pub instance: &'a InstanceId,
    /// Name of the plan.
    pub plan: &'a str,
    /// Id of this execution.
    pub uid: &'a str,
    /// Values of parameters, as stamped.
    pub values: &'a Values<'a>,
    /// Rules of admission whose denial a later try may find lifted, as they wait for another plan.
    pub transient: &'a [Rule],
    /// The helper of Pipe tasks.
    pub helper: &'a PipeHelper,
    /// What its templates draw from; without one, those that need the time or randomness fail.
    pub seed: Option<Seed<'a>>,
    /// Its render cache.
    pub rendered: &'a Rendered,
    /// Interrupts a rendering from outside, which fails the task with a transient error.
    /// [`go_template::Never`] never does.
    pub interrupt: &'a dyn Interrupt,
}
