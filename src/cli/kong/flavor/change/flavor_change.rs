//! What both ways of a change of flavor share: hop by hop, and through an outage.

use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::plan::FlavorPlan;
use interlock_kong::data_plane::rollout::flavor_change::edit::edit;
use kube::api::Patch;
use serde_json::Value;

use super::producer::ProducerRef;
use crate::cli::common::error::CliError;
use crate::cli::common::output;
use crate::cli::kong::flavor::cluster::FoundSources;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

/// How often a write is tried again that another client's write came before.
const TRIES: u32 = 10;

/// A change of flavor under way.
pub(super) struct FlavorChange {
    pub(super) plane: DataPlaneRef,
    pub(super) to: Flavor,
    pub(super) plan: FlavorPlan,
    pub(super) sources: FoundSources,
    /// The producer that is stopped and started.
    pub(super) producer: Option<ProducerRef>,
    /// The longest wait for one step.
    pub(super) limit: Duration,
}

/// Writes that another client's write came before: what that has made of the object is looked at.
#[derive(Default)]
pub(super) struct Conflicts(u32);

/// The error of a change that does not go on.
pub(super) fn unchanged(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("the router flavor of {plane} is not changed"))
}

impl FlavorChange {
    /// Prints a line about the DataPlane.
    pub(super) fn say(&self, text: &str) -> Result<(), CliError> {
        output::line(&format!("dataplane {}: {text}", self.plane.key()))
    }

    pub(super) fn say_live(&self) -> Result<(), CliError> {
        self.say(&format!("router flavor {} is live", self.to))
    }

    /// The error of a change that is refused, and what to do.
    pub(super) fn refused(&self, why: &str, next: &str) -> CliError {
        unchanged(&self.plane).why(why).next(next)
    }

    /// Counts a write that was not made; an error where there were too many.
    pub(super) fn count(&self, conflicts: &mut Conflicts, made: bool) -> Result<(), CliError> {
        conflicts.0 += u32::from(!made);
        if conflicts.0 < TRIES {
            return Ok(());
        }
        Err(CliError::unreached(format!("the router flavor of {} is not changed", self.plane))
            .why("it, or its producer, is changed all the time")
            .next("try again"))
    }

    /// Whether the plan allows the change.
    pub(super) fn permitted(&self, outage: bool) -> Result<(), CliError> {
        let Some(refusal) = self.plan.refusal(outage) else { return Ok(()) };
        let (arguments, to) = (self.plane.arguments(), self.to);
        let show = match outage {
            true => format!("see the plan: `interlock flavor plan {arguments} --to {to} --outage`"),
            false => format!("see the plan: `interlock flavor plan {arguments} --to {to}`"),
        };
        Err(self.refused(&refusal, &show))
    }

    /// What writes a flavor in place of another.
    pub(super) fn edit(&self, object: &Value, from: Flavor, to: Flavor) -> Result<Patch<Value>, CliError> {
        let edit = edit(object, from, to, &self.sources);
        let NamespacedName { namespace, name } = self.plane.namespaced_name();
        let edit = edit.map_err(|why| self.refused(&why.to_string(), &why.remedy(&name, &namespace)))?;
        Ok(Patch::Json(json_patch::Patch(edit)))
    }

    /// Writes to the DataPlane; `false` where it was changed since it was read.
    pub(super) async fn write(&self, patch: Patch<Value>, done: &str) -> Result<bool, CliError> {
        if self.plane.patch(&patch, false).await?.is_none() {
            return Ok(false);
        }
        self.say(done)?;
        Ok(true)
    }

    /// The Deployment of the producer, where one was given.
    pub(super) async fn producer(&self) -> Result<Option<Value>, CliError> {
        match &self.producer {
            Some(producer) => producer.get().await.map(Some),
            None => Ok(None),
        }
    }

    /// `false` where the producer was changed since it was read.
    pub(super) async fn stop_producer(&self, found: Option<&Value>) -> Result<bool, CliError> {
        match (&self.producer, found) {
            (Some(producer), Some(found)) => producer.stop(found, &self.plane.key()).await,
            _ => Ok(true),
        }
    }

    /// Scales it back, or replaces its pods; `false` where the producer was changed since it was read.
    pub(super) async fn start_producer(
        &self,
        found: Option<&Value>,
        is_stopped: bool,
    ) -> Result<bool, CliError> {
        match (&self.producer, found) {
            (Some(producer), Some(found)) if is_stopped => producer.start(found).await,
            (Some(producer), Some(found)) => producer.restart(found).await,
            _ => Ok(true),
        }
    }
}
